"""Recorded runs as training data, with all that the model file says of where they came from."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lift_ros.bags import RunReader, load_arrays
from lift_ros.errors import UserError
from lift_ros.scenario import Scenario, parse_scenario
from lift_ros.training.data import TrainingData, from_arrays


@dataclass(frozen=True)
class Recorded:
    """Episodes of one run or more, ready for training."""

    data: TrainingData
    sources: list[dict[str, Any]]  # per run: path, hash of its files, numbers of its episodes
    left_out: list[str]  # what was not used, and why
    scenario: Scenario | None  # if all runs come from the same one
    action_radius: float | None  # if the runs tell it


def load_runs(paths: Sequence[str | Path], *, reward: str | None = None, skip_bad: bool = False) -> Recorded:
    """Load runs whole; with `reward` "hindsight" steps without reward are labelled; None leaves it to the scenario."""
    arrays = load_arrays(paths, skip_bad=skip_bad)
    left_out = []
    for entry in arrays.left_out:
        where = "" if entry.episode is None else f", episode {entry.episode}"
        left_out.append(f"{entry.bag}{where}: {entry.reason}")
    sources: list[dict[str, Any]] = []
    scenarios: list[Scenario | None] = []
    for number, path in enumerate(paths):
        reader = RunReader(path, skip_bad=skip_bad)
        count = int((arrays.runs == number).sum())
        sources.append({"path": Path(path).name, "sha256": _hash(reader), "episodes": count})
        scenarios.append(_scenario(reader.facts, str(path)))
    data, not_labelled = from_arrays(arrays, reward or _wished_reward(scenarios))
    left_out += [f"{count} episodes {reason}" for reason, count in not_labelled.items()]
    radii = {None if scenario is None else scenario.action_radius for scenario in scenarios}
    if len(radii) > 1:
        raise UserError(f"the runs come from plants with different action radii {sorted(map(str, radii))}; train apart")
    same = scenarios[0] if all(scenario == scenarios[0] for scenario in scenarios) else None
    return Recorded(data, sources, left_out, same, radii.pop())


def _wished_reward(scenarios: Sequence[Scenario | None]) -> str:
    wishes = {scenario.training.reward for scenario in scenarios if scenario is not None}
    return "hindsight" if "hindsight" in wishes else "recorded"


def _scenario(facts: dict[str, Any], source: str) -> Scenario | None:
    parameters = facts.get("parameters")
    if not isinstance(parameters, dict) or "plant" not in parameters:
        return None
    return parse_scenario(parameters, str(facts.get("scenario", "recorded")), f"facts of {source}")


def _hash(reader: RunReader) -> str:
    total = hashlib.sha256()
    for path in sorted(set(reader.files.values())):
        with open(path, "rb") as stream:
            while block := stream.read(2**20):
                total.update(block)
    return total.hexdigest()
