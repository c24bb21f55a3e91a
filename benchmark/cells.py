"""What the results are made of: one cell per scenario, method, draw and seed, and how one is computed.

Data seeds and contexts are other ones than those on which presets are chosen.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from lift_ros.bags import RunWriter
from lift_ros.bags.arrays import EpisodeArrays
from lift_ros.collection.loop import collect
from lift_ros.collection.records import Source
from lift_ros.evaluation.convergence import (
    DIRECT,
    LOGGING_POLICY,
    SECANT,
    Convergence,
    context_seeds,
    converge,
    yardsticks,
)
from lift_ros.policies.protocol import Policy
from lift_ros.scenario import OPTIMAL, Scenario, load_scenario
from lift_ros.seeds import derive_seed
from lift_ros.training import LearnedPolicy, TrainingOptions, load_runs, preset, train
from lift_ros.training.runs import RecordedRuns

DATA_SEEDS = tuple(range(1000, 1010))
FEWER_SEEDS = DATA_SEEDS[:3]  # for all but the main methods with the draw of the preset
CONTEXTS = 200
STEPS = 50
DRAWS = ("transitions", "episodes")
# Sections of a scenario without influence: cells are collected without a guard, and see all values and no picture.
NOT_MEASURED = ("guard", "units", "sees", "picture")
NOTHING_SAID = (("anchor_to", None),)  # keys of training that came later
NO_PICTURES = (("picture_size", 0), ("cameras", 1))  # parameters of plants
OF_PICTURES = (  # options that nobody heeds who sees no picture
    *("maps", "readout", "grid", "lessons", "eyes", "picture_batch", "shift", "jitter", "composed", "pixel_noise"),
    *("encoder_learning_rate", "picture_memory"),
)
YARDSTICKS = (LOGGING_POLICY, DIRECT, SECANT, OPTIMAL)

SHIPPED = (
    *(f"po-{distortion}-d{dim}" for dim in (2, 5) for distortion in ("blend", "rot", "scale", "regrot", "sin", "sqrt")),
    "fetch-reach",
    "fetch-touch-and-place",
)


@dataclass(frozen=True)
class Variation:
    """A shipped scenario with other parameters of its plant, or another number of episodes."""

    of: str
    plant: Mapping[str, Any] = field(default_factory=dict)
    episodes: int | None = None


VARIATIONS = {
    "rot, d=5, σ=0.5": Variation("po-rot-d5", {"sigma": 0.5}),
    "blend, d=8": Variation("po-blend-d5", {"dim": 8, "step_limit": 2000}),
    "blend, d=3, σ=0.3": Variation("po-blend-d5", {"dim": 3, "sigma": 0.3}),
    "regrot, d=4, σ=0.3": Variation("po-regrot-d5", {"dim": 4, "sigma": 0.3}),
    "blend, d=5, 20 episodes": Variation("po-blend-d5", episodes=20),
}
# Collecting touch-and-place takes most of the time: 300 of the scenario's 1000 episodes are recorded.
FEWER_EPISODES = {"fetch-touch-and-place": 300}
SCENARIOS = (*SHIPPED, *VARIATIONS)


@dataclass(frozen=True)
class Method:
    """How a policy comes about: which episodes it learns from, and what differs from the preset `fast`."""

    changes: Mapping[str, Any] = field(default_factory=dict)
    lifted: bool = False  # collected with LIFT rather than by the logging policy alone
    scenarios: Sequence[str] = SCENARIOS


# The paper's CQL on plain transitions knows no anchor: the drawn action is the routine's there.
_PLAIN = {"strategy": "none", "anchor": 0.0}
_LIFTED = ("po-blend-d2", "po-blend-d5", "fetch-reach", "fetch-touch-and-place")
METHODS = {
    "CQL-SC": Method(),
    "clone": Method({"algorithm": "clone"}),
    "CQL": Method(_PLAIN),
    "LIFT": Method(_PLAIN, lifted=True, scenarios=_LIFTED),
    "LIFT-SC": Method(lifted=True, scenarios=_LIFTED),
}
MAIN = ("CQL-SC", "clone")


@dataclass(frozen=True)
class Cell:
    """One policy: for which scenario, by which method and draw, with which seed of data and training."""

    scenario: str
    method: str
    draw: str = ""  # yardsticks learn nothing: they have neither draw nor seed
    seed: int = 0

    @property
    def name(self) -> str:
        return f"{self.scenario} | {self.method}" + (f" | {self.draw} | {self.seed}" if self.draw else "")

    @property
    def is_main(self) -> bool:
        """Whether it belongs to the tables of the preset as it is; the others stand beside it."""
        return self.method in YARDSTICKS or (self.method in MAIN and self.draw == default_draw(self.scenario))

    @property
    def data(self) -> tuple[str, int]:
        """What cells have in common that share recorded episodes."""
        return self.scenario, self.seed


def all_cells() -> Iterator[Cell]:
    """Yield all cells, the ones that say most first: yardsticks, then the main methods as the preset draws."""
    yield from (Cell(name, yardstick) for name in SCENARIOS for yardstick in yardsticks(make_scenario(name)))
    for seed in DATA_SEEDS:
        yield from (Cell(name, method, default_draw(name), seed) for name in SCENARIOS for method in MAIN)
    for seed in FEWER_SEEDS:
        for scenario in SCENARIOS:
            methods = [name for name, method in METHODS.items() if scenario in method.scenarios]
            cells = [Cell(scenario, name, draw, seed) for name in methods for draw in DRAWS]
            yield from (cell for cell in cells if not cell.is_main)


@cache
def make_scenario(name: str) -> Scenario:
    """Return a shipped scenario, or a variation of one, with as many episodes as are recorded here."""
    return vary(name, VARIATIONS.get(name, Variation(name, episodes=FEWER_EPISODES.get(name))))


def vary(name: str, variation: Variation) -> Scenario:
    """Return a variation of a shipped scenario under this name."""
    scenario = load_scenario(variation.of)
    episodes = variation.episodes or scenario.collection.episodes
    first = scenario.collection.train_after * episodes // scenario.collection.episodes
    return replace(
        scenario,
        name=name,
        plant=replace(scenario.plant, parameters={**scenario.plant.parameters, **variation.plant}),
        collection=replace(scenario.collection, episodes=episodes, train_after=first),
    )


@cache
def default_draw(scenario: str) -> str:
    """Return how the preset draws in this scenario."""
    return preset("fast", make_scenario(scenario)).draw


def training_options(cell: Cell) -> TrainingOptions:
    """Return what a cell is trained with."""
    changes = {**METHODS[cell.method].changes, "draw": cell.draw}
    return preset("fast", make_scenario(cell.scenario), seed=cell.seed, **changes)


def fingerprint(cell: Cell) -> str:
    """Return a hash of all settings that a cell depends on: a stored one with another hash is outdated."""
    scenario = make_scenario(cell.scenario)
    described = {name: value for name, value in scenario.as_dict().items() if name not in NOT_MEASURED}
    plant: dict[str, Any] = described["plant"]
    described["plant"] = {name: value for name, value in plant.items() if (name, value) not in NO_PICTURES}
    training = described["training"]
    described["training"] = {
        name: value for name, value in training.items() if name not in OF_PICTURES and (name, value) not in NOTHING_SAID
    }
    settings: list[Any] = [described, CONTEXTS, STEPS]
    if cell.method in METHODS:
        options = training_options(cell)
        unused = {*OF_PICTURES, *(() if options.algorithm == "CQL" and options.anchor else ("anchor_rise",))}
        settings.append({name: value for name, value in options.as_dict().items() if name not in unused})
        if METHODS[cell.method].lifted:
            augmentor = preset("fast", scenario, seed=cell.seed).as_dict()
            settings.append({name: value for name, value in augmentor.items() if name not in OF_PICTURES})
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Effort:
    """How much is done for a cell; less than everything for a quick look."""

    contexts: int = CONTEXTS
    updates: int | None = None
    episodes: int | None = None


def compute(cell: Cell, folder: Path, effort: Effort) -> dict[str, Any]:
    """Collect into `folder` what is not there yet, train, evaluate, and return what is worth keeping as JSON values."""
    scenario = with_effort(make_scenario(cell.scenario), effort)
    facts: dict[str, Any] = {**asdict(cell), "settings": fingerprint(cell)}
    policy: Policy
    patience = None
    if cell.method in METHODS:
        recorded = Recordings(scenario, cell.seed, folder, effort).load(METHODS[cell.method].lifted)
        policy, seconds = trained(recorded, scenario, training_options(cell), effort)
        facts |= {"collection": _collection(recorded.arrays), "training_cpu_seconds": round(seconds, 2)}
    else:
        policy = yardsticks(scenario)[cell.method]
        patience = scenario.limits.step_limit if cell.method == LOGGING_POLICY else None
    seeds = context_seeds(derive_seed(0, "results"), effort.contexts)
    return {**facts, **_outcome(converge(scenario, policy, seeds, steps=STEPS, patience=patience))}


def with_effort(scenario: Scenario, effort: Effort) -> Scenario:
    """Return the scenario with as many episodes as the effort allows."""
    if effort.episodes is None:
        return scenario
    collection = replace(scenario.collection, episodes=effort.episodes, train_after=effort.episodes // 2)
    return replace(scenario, collection=collection)


def trained(
    recorded: RecordedRuns,
    scenario: Scenario,
    options: TrainingOptions,
    effort: Effort,
    eyes: LearnedPolicy | None = None,
) -> tuple[LearnedPolicy, float]:
    """Return the policy and the processor time of its training; `eyes` is a model whose encoder is taken."""
    if effort.updates is not None:
        options = options.replaced({"updates": effort.updates, "lessons": effort.updates})
    started = time.process_time()
    policy = train(recorded, options, action_radius=scenario.action_radius, threads=1, eyes=eyes).policy
    return policy, time.process_time() - started


class Recordings:
    """Episodes of the logging policy, and others of which those after the first ones are augmented.

    Both kinds begin with the same episodes, on which the augmentor is trained, and go on in the same contexts.
    """

    def __init__(self, scenario: Scenario, seed: int, folder: Path, effort: Effort) -> None:
        self._scenario, self._seed, self._effort = scenario, seed, effort
        self._place = folder / hashlib.sha256(f"{scenario.name} {seed}".encode()).hexdigest()[:16]
        self._augmentor: tuple[LearnedPolicy, float] | None = None

    def augmentor(self) -> tuple[LearnedPolicy, float]:
        """Return the policy that was trained on the first episodes, and the processor time of its training."""
        if self._augmentor is None:
            options = preset("fast", self._scenario, seed=self._seed)
            self._augmentor = trained(load_runs([self._first()]), self._scenario, options, self._effort)
        return self._augmentor

    def load(self, lifted: bool) -> RecordedRuns:
        """Return all episodes, recorded where they are not there yet."""
        settings = self._scenario.collection
        rest = self._place / ("lifted" if lifted else "plain")
        if not rest.exists():
            augmentor = self.augmentor()[0] if lifted else None
            later = derive_seed(self._seed, "episodes after the first")
            _record(rest, self._scenario, settings.episodes - settings.train_after, later, augmentor)
        return load_runs([self._first(), rest])

    def _first(self) -> Path:
        first = self._place / "first"
        if not first.exists():
            _record(first, self._scenario, self._scenario.collection.train_after, self._seed)
        return first


def _record(run: Path, scenario: Scenario, episodes: int, seed: int, augmentor: Policy | None = None) -> None:
    with RunWriter(run, {"scenario": scenario.name, "parameters": scenario.as_dict()}, 100, sync=False) as writer:
        collect(
            scenario,
            augmentor=augmentor,
            episodes=episodes,
            seed=seed,
            p=0.0 if augmentor is None else scenario.collection.p,
            budget=scenario.collection.augmentation_budget,
            on_episode=writer.write_episode,
            progress=False,
        )


def _collection(arrays: EpisodeArrays) -> dict[str, Any]:
    lengths = np.diff(arrays.offsets)
    by_augmentor = np.add.reduceat(arrays.sources == int(Source.AUGMENTOR), arrays.offsets[:-1]) > 0
    return {
        "episodes": len(arrays),
        "steps": arrays.steps,
        "reached": round(float(arrays.terminated.mean()), 4),
        "plain_steps_per_episode": _mean(lengths[~by_augmentor]),
        "augmented_steps_per_episode": _mean(lengths[by_augmentor]),
    }


def _mean(values: Any) -> float | None:
    return round(float(np.mean(values)), 2) if len(values) else None


def _outcome(reached: Convergence) -> dict[str, Any]:
    return {
        "success": reached.success,
        "arrivals": [None if np.isnan(value) else int(value) for value in reached.arrivals],
        "median_distances": [float(f"{value:.3g}") for value in np.median(reached.distances, axis=0)],
    }
