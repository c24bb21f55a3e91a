"""A real rig as a scenario describes it: sizes and limits are known here, but only its own node can move it."""

from __future__ import annotations

import numpy as np

from lift_ros.array_types import FloatArray
from lift_ros.errors import UserError
from lift_ros.positioning.problem import Observed


class HardwareDescription:
    """Stands in for a problem wherever only its limits are asked for; it cannot be simulated."""

    def __init__(
        self,
        *,
        observation_size: int,
        action_size: int,
        action_radius: float,
        threshold: float,
        step_limit: int,
        workspace_low: list[float] | None,
        workspace_high: list[float] | None,
    ) -> None:
        self.observation_size = observation_size
        self.action_size = action_size
        self.action_radius = action_radius
        self.threshold = threshold
        self.step_limit = step_limit
        self.workspace = _workspace(workspace_low, workspace_high)

    def reset(self, seed: int) -> Observed:
        """Refuse: a rig is reset by its own node."""
        raise self._refusal()

    def step(self, action: FloatArray) -> Observed:
        """Refuse: a rig is moved by its own node."""
        raise self._refusal()

    def close(self) -> None:
        """Nothing is held."""

    def _refusal(self) -> UserError:
        return UserError(
            "this scenario describes hardware, which cannot be simulated: start your plant node, then "
            "lift run --plant hardware"
        )


def _workspace(low: list[float] | None, high: list[float] | None) -> tuple[FloatArray, FloatArray] | None:
    if low is None and high is None:
        return None
    if low is None or high is None or len(low) != len(high):
        raise UserError(f"workspace_low is {low} and workspace_high is {high}; give both, with one number per axis")
    lowest, highest = np.array(low, dtype=np.float64), np.array(high, dtype=np.float64)
    if not (np.isfinite(lowest).all() and np.isfinite(highest).all() and (lowest < highest).all()):
        raise UserError(f"workspace_low {low} must lie below workspace_high {high} on every axis, all finite")
    return lowest, highest
