"""The direct policy: the largest possible step towards the goal, as if nothing distorted it."""

from __future__ import annotations

from collections.abc import Sequence

from lift_ros.array_types import FloatArray
from lift_ros.policies.displacement import DisplacementReader
from lift_ros.positioning.ball import shorten


class DirectPolicy:
    """Proposes clip_λ(s_W − s)."""

    def __init__(self, dim: int, action_radius: float, goal: Sequence[float] | None = None) -> None:
        self._reader = DisplacementReader(dim, goal)
        self._radius = float(action_radius)

    def reset(self) -> None:
        """Nothing to forget."""

    def act(self, observation: FloatArray) -> FloatArray:
        """Return the largest possible step towards the goal."""
        _, displacement = self._reader.read(observation)
        return shorten(-displacement, self._radius)
