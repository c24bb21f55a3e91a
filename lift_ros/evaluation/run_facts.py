"""What a run's facts tell plots: in which units it was measured, and at which distance an episode has arrived."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lift_ros.configuration import check_mapping
from lift_ros.scenario import UNITS_KEYS, Units


def units_of(facts: Mapping[str, Any]) -> Units:
    """Return the units that the run's scenario names; imported runs and older ones name none."""
    return Units(**check_mapping((facts.get("parameters") or {}).get("units"), UNITS_KEYS, "facts: units"))


def threshold_of(facts: Mapping[str, Any]) -> float | None:
    """Return θ of the run's plant, or of the mapping by which it was imported; None where neither tells it."""
    plant = (facts.get("parameters") or {}).get("plant") or {}
    goal = (facts.get("mapping") or {}).get("goal")
    found = plant.get("threshold", goal.get("within") if isinstance(goal, dict) else None)
    return None if found is None else float(found)
