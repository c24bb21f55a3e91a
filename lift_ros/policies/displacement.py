"""The displacement s − s_W that is still to be removed, as routines read it, and the policy that goes straight."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from lift_ros.array_types import FloatArray, IntArray
from lift_ros.errors import UserError
from lift_ros.positioning.ball import shorten


class DisplacementReader:
    """Finds the displacement in an observation, also where several goals have to be reached in turn.

    An observation is one block of `dim` entries per goal. A block that is all zero belongs to a goal that was reached
    (the plant zeroes it), so the first other block counts; the last block counts if all are zero.
    """

    def __init__(self, dim: int, goal: Sequence[float] | None = None) -> None:
        if dim < 1:
            raise UserError(f"a policy needs actions of at least 1 entry, not {dim}")
        if goal is not None and len(goal) != dim:
            raise UserError(f"goal must have {dim} entries, not {len(goal)}")
        self.dim = dim
        self._goal = None if goal is None else np.array(goal, dtype=np.float64)

    def read(self, observation: FloatArray) -> tuple[int, FloatArray]:
        """Return the number of the goal that is next, and the displacement to it."""
        values = np.asarray(observation, dtype=np.float64)
        blocks, rest = divmod(values.size, self.dim)
        if rest or not blocks:
            raise UserError(
                f"an observation of {values.size} entries does not hold displacements of {self.dim} entries each"
            )
        if blocks == 1:
            return 0, values if self._goal is None else values - self._goal
        for block in range(blocks - 1):
            displacement = values[block * self.dim : (block + 1) * self.dim]
            if displacement.any():
                return block, displacement
        return blocks - 1, values[-self.dim :]


def goal_numbers(observations: npt.NDArray[np.floating[Any]], dim: int) -> IntArray:
    """Return for each row of observations which goal is next, as `DisplacementReader` counts them."""
    blocks, rest = divmod(observations.shape[1], dim)
    if rest or blocks < 2:
        return np.zeros(len(observations), dtype=np.int64)
    pending = np.asarray(observations.reshape(len(observations), blocks, dim).any(axis=2))
    pending[:, -1] = True
    return np.asarray(np.argmax(pending, axis=1), dtype=np.int64)


class DirectPolicy:
    """Proposes clip_λ(s_W − s): the largest possible step towards the goal, as if nothing distorted it."""

    def __init__(self, dim: int, action_radius: float, goal: Sequence[float] | None = None) -> None:
        self._reader = DisplacementReader(dim, goal)
        self._radius = float(action_radius)

    def reset(self) -> None:
        """Nothing to forget."""

    def act(self, observation: FloatArray) -> FloatArray:
        """Return the largest possible step towards the goal."""
        _, displacement = self._reader.read(observation)
        return shorten(-displacement, self._radius)
