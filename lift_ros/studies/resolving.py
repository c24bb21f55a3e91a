"""From labels to settings: everything that a cell of a study depends on, with nothing left to look up."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from lift_ros.errors import UserError
from lift_ros.evaluation.convergence import LOGGING_POLICY, with_step
from lift_ros.policies.augmentations import LEARNED, UNCERTAINTY
from lift_ros.scenario import Scenario, load_scenario, parse_scenario
from lift_ros.studies.cell import Cell
from lift_ros.studies.methods import IORL, PLAIN_RUN, TABLE_3, WARM_START, Method, find_method
from lift_ros.training.options import TrainingOptions, preset
from lift_ros.training.runs import recorded_scenario

# Sections of a scenario without influence: names, and what belongs to other ways of collecting; `collection` and
# `training` are told by the cell's own settings.
_LEFT_OUT = ("description", "units", "guard", "assist", "rig", "collection", "training")
_OF_PICTURES = (
    *("maps", "readout", "grid", "lessons", "eyes", "picture_batch", "shift", "jitter", "composed", "pixel_noise"),
    *("encoder_learning_rate", "picture_memory"),
)
_TRAINED_AXES = ("C", "strategy", "draw", "updates")  # axes that are training options
_NO_MEMORY = {"pairs_memory", "picture_memory"}  # options that change no number
_NOT_JUDGED = {"held_out": 0.0}  # nobody judges a study's models by episodes that were spared
_LEARNS_FIRST = (LEARNED, IORL, UNCERTAINTY)


@dataclass(frozen=True)
class Variation:
    """A scenario with other parameters of its plant, or other numbers of episodes."""

    of: str
    plant: Mapping[str, Any] = field(default_factory=dict)
    episodes: int | None = None
    train_after: int | None = None


@dataclass(frozen=True)
class Quick:
    """How little `--quick` does."""

    episodes: int
    train_after: int
    updates: int
    contexts: int
    axes: Mapping[str, Any] = field(default_factory=dict)


def cell_of(
    labels: Mapping[str, Any],
    *,
    variations: Mapping[str, Variation],
    runs: Mapping[str, Mapping[str, Any]],
    methods: Mapping[str, Method],
    options: Mapping[str, Any],
    evaluation: Mapping[str, Any],
    quick: Quick | None,
    where: str,
) -> Cell:
    """Return the cell that has these labels."""
    judged = dict(evaluation) if quick is None else {**evaluation, "contexts": quick.contexts}
    measure = labels.get("measure", "policies")
    method = find_method(labels.get("method", LOGGING_POLICY), methods, where)
    name = labels["scenario"]
    if name in runs:
        return _cell_from_runs(labels, runs[name], method, options, judged, quick, f"{where}: runs.{name}")
    # Most cells of a grid have their scenario in common, and making one takes longer than all the rest.
    scenario = _vary(name, _Frozen(variations.get(name, Variation(name))), labels.get("l"), labels.get("noise", 0.0))
    content = _described(scenario)
    settings: dict[str, Any] = {"measure": measure}
    if measure == "paths" or (measure == "policies" and method.is_yardstick):
        settings |= {"scenario": content, "policy": method.algorithm, "evaluation": judged}
        return Cell(labels, settings)
    if measure == "values":
        gamma = TrainingOptions().gamma
        return Cell(labels, {**settings, "scenario": content, "seed": labels.get("data", 0), "gamma": gamma})
    recording = _recording(scenario, content, method, labels, options, quick, where)
    if measure == "C":
        return Cell(labels, {**settings, "recording": recording, "gamma": TrainingOptions().gamma})
    if measure == "data":
        return Cell(labels, {**settings, "recording": recording})
    changes = method.training()
    if method.algorithm == WARM_START:  # it plays the later episodes itself
        online = {"online_episodes": recording["episodes"] - recording["train_after"]}
        online |= {} if quick is None else {"most_updates": quick.updates}
        changes = {**TABLE_3, **online, **changes}
        recording["episodes"] = recording["train_after"]
    trained = _training(scenario, changes, labels, options, quick, labels.get("training", 0))
    settings |= {
        "scenario": content,
        "recording": recording,
        "training": trained,
        "action_radius": scenario.action_radius,
        "evaluation": judged,
    }
    return Cell(labels, settings)


def _cell_from_runs(
    labels: Mapping[str, Any],
    run: Mapping[str, Any],
    method: Method,
    options: Mapping[str, Any],
    judged: Mapping[str, Any],
    quick: Quick | None,
    where: str,
) -> Cell:
    """Return a cell that begins from recorded runs, which nothing can be added to."""
    if labels.get("measure", "policies") != "policies" or method.collected != PLAIN_RUN or method.is_yardstick:
        raise UserError(
            f"{where}: method {labels.get('method')!r} with measure {labels.get('measure', 'policies')!r} would move a "
            "plant, and runs are recorded; allowed: measure policies with methods that learn from what is there"
        )
    misplaced = [axis for axis in ("l", "noise", "n", "p", "episodes", "train_after") if axis in labels]
    if misplaced:
        raise UserError(f"{where}: the axis {misplaced[0]} says how episodes are collected, and these are recorded")
    hashes, recorded = _facts_of(tuple(run["paths"]))
    scenario = load_scenario(run["scenario"]) if run["scenario"] else None
    radius = run["action_radius"] or (None if scenario is None else scenario.action_radius)
    radius = radius or (None if recorded is None else recorded.action_radius)
    if radius is None:
        raise UserError(f"{where}: the runs do not tell the longest action; give action_radius, or name a scenario")
    seen = scenario or recorded
    settings = {
        "measure": "policies",
        "runs": list(hashes),
        "scenario": None if scenario is None else _described(scenario),
        "training": _training(seen, method.training(), labels, options, quick, labels.get("training", 0)),
        "action_radius": radius,
        "evaluation": dict(judged),
    }
    return Cell(labels, settings, tuple(run["paths"]))


@cache
def _facts_of(paths: tuple[str, ...]) -> tuple[tuple[str, ...], Scenario | None]:
    """Return the hash of each run's files, and the scenario of the first where it tells one."""
    from lift_ros.bags.reader import RunReader
    from lift_ros.training.runs import hash_of_first

    hashes = []
    for path in paths:
        found = hash_of_first(path, len(RunReader(path).episode_indices))
        if found is None:
            raise UserError(f"{path} is still being recorded; a study begins from finished runs")
        hashes.append(found)
    return tuple(hashes), recorded_scenario(RunReader(paths[0]).facts, paths[0])


class _Frozen:
    """A variation that can be the key of a cache."""

    def __init__(self, variation: Variation) -> None:
        self.variation = variation
        self._text = repr(variation)

    def __hash__(self) -> int:
        return hash(self._text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Frozen) and other._text == self._text


@cache
def _vary(name: str, frozen: _Frozen, step: float | None, noise: float) -> Scenario:
    """Return the scenario of a cell."""
    variation = frozen.variation
    scenario = load_scenario(variation.of)
    data = scenario.as_dict()
    data["plant"] |= variation.plant
    changes = {"episodes": variation.episodes, "train_after": variation.train_after}
    data["collection"] |= {key: value for key, value in changes.items() if value is not None}
    if variation.episodes is not None and variation.train_after is None:
        before = scenario.collection
        data["collection"]["train_after"] = before.train_after * variation.episodes // before.episodes
    varied = parse_scenario(data, name, f"scenario {name!r} of the study")
    if step is not None:
        varied = with_step(varied, step)
    return _with_noise(varied, noise) if noise else varied


def _with_noise(scenario: Scenario, noise: float) -> Scenario:
    """Return the scenario with noise on the steps of its walk; without any it stays the walk itself."""
    policy = scenario.logging_policy
    if policy.name != "coordinate_walk":
        raise UserError(f"noise is added to the coordinate walk, but the routine of {scenario.name} is {policy.name}")
    arguments = {**policy.arguments, "noise": noise, "action_radius": scenario.action_radius}
    return replace(scenario, logging_policy=replace(policy, name="noisy_coordinate_walk", arguments=arguments))


def _described(scenario: Scenario) -> dict[str, Any]:
    return {name: value for name, value in scenario.as_dict().items() if name not in _LEFT_OUT}


def _recording(
    scenario: Scenario,
    content: Mapping[str, Any],
    method: Method,
    labels: Mapping[str, Any],
    options: Mapping[str, Any],
    quick: Quick | None,
    where: str,
) -> dict[str, Any]:
    """Return how the episodes of a cell are collected; what nobody heeds is left out."""
    settings = scenario.collection
    episodes = labels.get("episodes", settings.episodes)
    first = labels.get("train_after", settings.train_after)
    if quick is not None:
        episodes, first = min(episodes, quick.episodes), min(first, quick.train_after)
    if first > episodes:
        raise UserError(f"{where}: train_after is {first}, but there are only {episodes} episodes")
    if method.collected in _LEARNS_FIRST and not first:
        raise UserError(f"{where}: who augments learns from the first episodes, but train_after is 0")
    seed = labels.get("data", 0)
    augmented = method.collected != PLAIN_RUN
    augmentor = None
    if method.collected in (LEARNED, IORL):
        augmentor = _training(scenario, {}, labels, options, quick, seed)
    return {
        "scenario": dict(content),
        "seed": seed,
        "episodes": episodes,
        "train_after": first,
        "collected": method.collected,
        "p": float(labels.get("p", settings.p)) if augmented else 0.0,
        "n": labels.get("n", settings.augmentation_budget) if augmented else 0,
        "augmentor": augmentor,
    }


def _training(
    scenario: Scenario | None,
    changes: Mapping[str, Any],
    labels: Mapping[str, Any],
    options: Mapping[str, Any],
    quick: Quick | None,
    seed: int,
) -> dict[str, Any]:
    """Return the options of a training as JSON values: preset, scenario, study, axes, then method."""
    axes = {name: labels[name] for name in _TRAINED_AXES if name in labels}
    fewer = {} if quick is None else {"updates": quick.updates, "lessons": quick.updates}
    wanted = {**_NOT_JUDGED, **options, **axes, **changes, **fewer}
    own = {} if scenario is None else {key: value for key, value in scenario.training.items() if value is not None}
    sees_pictures = scenario is not None and scenario.model_sight.image
    # Cells of a grid mostly differ in their seeds, and checking options takes longer than all the rest.
    text = json.dumps([labels.get("preset", "fast"), own, wanted], sort_keys=True, default=str)
    return {**_checked_options(text, sees_pictures), "seed": seed}


@cache
def _checked_options(text: str, sees_pictures: bool) -> dict[str, Any]:
    name, own, wanted = json.loads(text)
    chosen = preset(name).replaced(own).replaced(wanted)
    unused = _NO_MEMORY | (set() if sees_pictures else set(_OF_PICTURES))
    return {key: value for key, value in chosen.as_dict().items() if key not in unused}
