"""The episodes that policies of a study learn from: recorded once for all cells that share them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from lift_ros.bags import RunWriter
from lift_ros.collection.loop import collect
from lift_ros.policies.augmentations import LEARNED, UncertaintyModel
from lift_ros.policies.protocol import Policy
from lift_ros.scenario import Scenario, parse_scenario
from lift_ros.seeds import derive_seed
from lift_ros.studies.cell import fingerprint
from lift_ros.studies.methods import IORL, PLAIN_RUN
from lift_ros.studies.store import Store
from lift_ros.training.options import TrainingOptions
from lift_ros.training.runs import RecordedRuns, fit_to_runs, load_runs

_EPISODES_PER_FILE = 100
_TICK = 1_000_000  # [ns]


class Ticks:
    """A clock that counts how often it is asked, so that the same settings give the same bytes of a bag."""

    def __init__(self) -> None:
        self._asked = 0

    def __call__(self) -> int:
        """Return a time later than the one before."""
        self._asked += 1
        return self._asked * _TICK


def as_scenario(content: Mapping[str, Any]) -> Scenario:
    """Return the scenario that a cell's settings hold."""
    return parse_scenario(dict(content), "study", "the study's scenario")


def as_options(content: Mapping[str, Any]) -> TrainingOptions:
    """Return the training options that a cell's settings hold."""
    return TrainingOptions().replaced(content)


class Recordings:
    """Episodes of the logging policy alone, and others that were collected after them, as a cell's settings say.

    Whoever augments learns from the first ones; plain and augmented ones go on in the same contexts.
    """

    def __init__(self, settings: Mapping[str, Any], store: Store) -> None:
        self._settings, self._store = settings, store
        self.scenario = as_scenario(settings["scenario"])

    def load(self) -> RecordedRuns:
        """Return all episodes, recorded where they are not there yet."""
        return load_runs(self.runs())

    def runs(self) -> list[Path]:
        """Return the runs, recorded where they are not there yet."""
        return [run for run in (self.first(), self._later()) if run is not None]

    def first(self) -> Path | None:
        """Return the run with the episodes of the logging policy alone."""
        if not self._settings["train_after"]:
            return None
        described = {name: self._settings[name] for name in ("scenario", "seed", "train_after")}
        make = partial(self._record, episodes=self._settings["train_after"], seed=self._settings["seed"])
        return self._store.recording(fingerprint(described), make)

    def _later(self) -> Path | None:
        episodes = self._settings["episodes"] - self._settings["train_after"]
        if not episodes:
            return None
        seed = derive_seed(self._settings["seed"], "episodes after the first")

        def make(run: Path) -> None:
            self._record(run, episodes=episodes, seed=seed, augmentor=self.augmentor(), p=self._settings["p"])

        return self._store.recording(fingerprint(self._settings), make)

    def augmentor(self) -> Policy | None:
        """Return who acts beside the logging policy: trained on, or fitted to, the first episodes where it learns."""
        name = self._settings["collected"]
        if name == PLAIN_RUN:
            return None
        if name in (LEARNED, IORL):
            return _learning()[name](self.scenario, self._load_first(), as_options(self._settings["augmentor"]))
        policy = self.scenario.make_augmentation(name)
        if isinstance(policy, UncertaintyModel):
            first = self.first()
            fit_to_runs(policy, [] if first is None else [first])
        return policy

    def _load_first(self) -> RecordedRuns:
        first = self.first()
        return load_runs([] if first is None else [first])

    def _record(self, run: Path, episodes: int, seed: int, augmentor: Policy | None = None, p: float = 0.0) -> None:
        facts = {"scenario": self.scenario.name, "parameters": self.scenario.as_dict(), "seed": seed}
        with RunWriter(run, facts, _EPISODES_PER_FILE, sync=False) as writer:
            collect(
                self.scenario,
                augmentor=augmentor,
                episodes=episodes,
                seed=seed,
                p=0.0 if augmentor is None else p,
                budget=0 if augmentor is None else self._settings["n"],
                on_episode=writer.write_episode,
                progress=False,
                clock=Ticks(),
            )


def _learning() -> Mapping[str, Callable[[Scenario, RecordedRuns, TrainingOptions], Policy]]:
    return {LEARNED: _train_augmentor, IORL: _train_uncertainty}


def _train_augmentor(scenario: Scenario, recorded: RecordedRuns, options: TrainingOptions) -> Policy:
    from lift_ros.training.trainer import train

    return train(recorded, options, action_radius=scenario.action_radius, threads=1).policy


def _train_uncertainty(scenario: Scenario, recorded: RecordedRuns, options: TrainingOptions) -> Policy:
    from lift_ros.studies.iorl import train_uncertainty

    return train_uncertainty(scenario, recorded, options)
