"""What tables, plots and claims show of cells: one number per metric, over all contexts of all seeds."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from lift_ros.array_types import FloatArray
from lift_ros.seeds import generator

RESAMPLES = 1000
Row: TypeAlias = tuple[Mapping[str, Any], Mapping[str, Any]]  # labels and result of a cell
_CONFIDENCE = 0.95


@dataclass(frozen=True)
class Metric:
    """Values of one cell, one per context or one in all, and what is made of those of several cells."""

    title: str
    values: Callable[[Mapping[str, Any]], list[float] | None]  # None where a result does not have it
    more_is_better: bool = False
    middle: Callable[..., Any] = np.median


def _distances(step: int) -> Callable[[Mapping[str, Any]], list[float] | None]:
    """Return distances after so many steps; below θ nobody can be told apart, since episodes end there."""

    def get(result: Mapping[str, Any]) -> list[float] | None:
        known = result.get("distances")
        return None if known is None else [max(value, result["threshold"]) for value in known[str(step)]]

    return get


def _arrivals(result: Mapping[str, Any]) -> list[float] | None:
    known = result.get("arrivals")
    return None if known is None else [math.inf if value is None else float(value) for value in known]


def _arrived(result: Mapping[str, Any]) -> list[float] | None:
    known = result.get("arrivals")
    return None if known is None else [float(value is not None) for value in known]


def _number(name: str, section: str | None = None) -> Callable[[Mapping[str, Any]], list[float] | None]:
    def get(result: Mapping[str, Any]) -> list[float] | None:
        value = (result.get(section, {}) if section else result).get(name)
        return None if value is None else [float(value)]

    return get


METRICS: Mapping[str, Metric] = {
    "success": Metric("success", _arrived, more_is_better=True, middle=np.mean),
    "steps": Metric("steps to θ", _arrivals),
    "distance_5": Metric("distance at 5", _distances(5)),
    "distance_10": Metric("distance at 10", _distances(10)),
    "distance_30": Metric("distance at 30", _distances(30)),
    "quality": Metric("trajectory quality", _number("quality"), more_is_better=True),
    "exploration": Metric("state exploration", _number("exploration"), more_is_better=True),
    "coverage": Metric("state-action coverage", _number("coverage"), more_is_better=True),
    "steps_recorded": Metric("steps per episode", _number("steps")),
    "augmented_steps": Metric("steps per augmented episode", _number("augmented_steps", "collection")),
}
OF_POLICIES = ("success", "steps", "distance_10", "distance_30")
OF_DATA = ("quality", "exploration", "coverage", "steps_recorded")


@dataclass(frozen=True)
class Summary:
    """A metric over all seeds and contexts of a group of cells."""

    middle: float
    low: float  # quartiles of all values
    high: float
    interval: tuple[float, float]  # of confidence of the middle
    cells: int


def summarise(cells: Sequence[Row], metric: Metric) -> Summary | None:
    """Return a metric of cells that differ in their seeds only, each as its labels and its result; None without any.

    A result that several cells share, since it does not depend on where they differ, counts once.
    """
    different = {id(result): (labels, result) for labels, result in cells}
    rows = [(labels, metric.values(result)) for labels, result in different.values()]
    known = [(labels, values) for labels, values in rows if values is not None]
    if not known:
        return None
    table = np.array([values for _, values in known])
    low, high = (float(np.quantile(table, share, method="higher")) for share in (0.25, 0.75))
    groups = _by_data([labels for labels, _ in known])
    return Summary(_middle(table, metric), low, high, _interval(table, groups, metric), len(known))


def _middle(table: FloatArray, metric: Metric) -> float:
    if metric.middle is np.median:
        return float(np.quantile(table, 0.5, method="higher"))  # infinite ones must not be averaged
    return float(metric.middle(table))


def _by_data(labels: Sequence[Mapping[str, Any]]) -> list[list[int]]:
    groups: dict[Any, list[int]] = {}
    for number, each in enumerate(labels):
        groups.setdefault(each.get("data"), []).append(number)
    return list(groups.values())


def _interval(table: FloatArray, groups: Sequence[Sequence[int]], metric: Metric) -> tuple[float, float]:
    """Return a bootstrap interval: data sets are drawn anew, then trainings on them, then contexts, which all share."""
    rng = generator(0, "bootstrap")
    contexts = table.shape[1]
    found = []
    for _ in range(RESAMPLES):
        rows = [
            group[pick]
            for group in (groups[number] for number in rng.integers(len(groups), size=len(groups)))
            for pick in rng.integers(len(group), size=len(group))
        ]
        columns = rng.integers(contexts, size=contexts)
        found.append(_middle(table[np.ix_(rows, columns)], metric))
    tail = (1 - _CONFIDENCE) / 2
    low, high = np.quantile(found, (tail, 1 - tail), method="higher").tolist()
    return low, high
