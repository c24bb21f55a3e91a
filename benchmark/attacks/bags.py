"""Attacks with bags: damaged MCAP files, journals that a crash has left, and metadata.yaml with forged facts."""

from __future__ import annotations

import contextlib
import json
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmark.attacks.damage import damaged, damaged_document, twisted
from lift_ros.bags import RunReader, RunWriter, load_arrays, read_run
from lift_ros.bags.metadata import CHECKSUM_KEY, FACTS_KEY, FILE_NAME, METADATA_NAME, RunMetadata
from lift_ros.bags.replaying import recorded_messages, recorded_topics
from lift_ros.collection.loop import collect
from lift_ros.collection.plan import CollectionPlan
from lift_ros.collection.records import Episode, Outcome, same
from lift_ros.errors import UserError
from lift_ros.evaluation.guard_summary import guard_changes
from lift_ros.evaluation.run_facts import threshold_of, units_of
from lift_ros.scenario import load_scenario
from lift_ros.training.runs import recorded_scenario

_EPISODES = 3


def _facts_and_episodes() -> tuple[dict[str, Any], list[Episode]]:
    scenario = load_scenario("po-none-d2")
    plan = CollectionPlan.make(scenario, p=0.0, train_after=0)
    facts = plan.facts(scenario, seed=0, made_by="collect")
    count = {"episodes": _EPISODES, "seed": 0, "p": 0.0}
    return facts, list(collect(scenario.make_problem, scenario.make_logging_policy, None, progress=False, **count))


class _Run:
    """A run of which each case damages something and then puts it back."""

    def __init__(self, folder: Path) -> None:
        self.run = folder / "run"
        self.facts, self.episodes = _facts_and_episodes()
        with RunWriter(self.run, self.facts, sync=False, reserve=0) as writer:
            for episode in self.episodes:
                writer.write_episode(episode)

    def reads_truly(self) -> bool:
        """Whether all that can be read is what was written; UserError where the run is refused."""
        reader = RunReader(self.run, skip_bad=True)
        kept = list(reader)
        true = all(same(episode, self.episodes[episode.index]) for episode in kept)
        complete = len(kept) == _EPISODES or bool(reader.left_out)
        return true and complete and same(read_run(self.run), self.episodes)


class Files(_Run):
    """Damaged MCAP files: what is read is what was written, or it is refused."""

    def case(self, rng: np.random.Generator) -> bool:
        """Read a run with one damaged file in all ways there are."""
        files = sorted(self.run.glob("*.mcap"))
        path = files[int(rng.integers(len(files)))]
        good = path.read_bytes()
        path.write_bytes(damaged(good, rng))
        try:
            for read in (recorded_topics, lambda run: list(recorded_messages(run, ("/lift/step",)))):
                with contextlib.suppress(UserError):
                    read(self.run)
            arrays = load_arrays(self.run, skip_bad=True)
            true = all(
                np.array_equal(
                    arrays.actions[arrays.offsets[place] : arrays.offsets[place + 1]],
                    [step.action for step in self.episodes[index].steps],
                )
                for place, index in enumerate(arrays.episodes)
            )
            return self.reads_truly() and true
        finally:
            path.write_bytes(good)


class Metadata(_Run):
    """Damaged metadata.yaml, and facts that anybody can write with a right checksum."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._path = self.run / FILE_NAME
        self._good = self._path.read_bytes()
        self._tree = json.loads(self._good)

    def case(self, rng: np.random.Generator) -> bool:
        """Read the run and all that commands take from its facts."""
        what = rng.random()
        if what < 0.4:
            facts = json.dumps(twisted(self.facts, rng))
            tree = json.loads(self._good)
            checksum = f"{zlib.crc32(facts.encode()):08x}"
            tree["rosbag2_bagfile_information"]["custom_data"] = {FACTS_KEY: facts, CHECKSUM_KEY: checksum}
            content = json.dumps(tree).encode()
        else:
            content = damaged(self._good, rng) if what < 0.6 else damaged_document(self._tree, rng)
        self._path.write_bytes(content)
        entrance = rng.integers(3)
        if entrance == 0:
            RunMetadata.load(self.run, self.facts)
            return True
        if entrance == 1:
            return self.reads_truly()
        facts = RunReader(self.run).facts
        recorded_scenario(facts, METADATA_NAME)
        units_of(facts)
        threshold_of(facts)
        guard_changes(facts, self.episodes)
        return True


class Journals(_Run):
    """Damaged journals: finished episodes stay true, and what is recovered was recorded."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        writer = RunWriter(self.run, self.facts, sync=False, reserve=0)
        self._steps = [replace(step, episode=_EPISODES) for step in self.episodes[-1].steps]
        for step in self._steps:
            writer.write_step(step)
        writer._release()  # as a crash does
        (self._path,) = self.run.glob("*.active")
        self._good = self._path.read_bytes()

    def case(self, rng: np.random.Generator) -> bool:
        """Read the run as after a crash."""
        self._path.write_bytes(damaged(self._good, rng))
        episodes = read_run(self.run)
        finished, rest = episodes[:_EPISODES], episodes[_EPISODES:]
        true = all(
            episode.outcome is Outcome.RECOVERED and same(episode.steps, self._steps[: len(episode.steps)])
            for episode in rest
        )
        return same(finished, self.episodes) and true
