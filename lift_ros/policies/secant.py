"""The secant policy: what a person would write where the displacement is observed, without any learning."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from lift_ros.array_types import FloatArray
from lift_ros.errors import UserError
from lift_ros.policies.displacement import DisplacementReader
from lift_ros.positioning.ball import shorten

_LEAST_DETERMINANT = 0.1  # of the map after an update over that before; Powell's choice keeps it from being singular
_SHORTEST_STEP = 1e-9  # of the action radius; the change that a shorter action makes is rounding
_PATIENCE = 5  # steps that come no closer than before: such a map goes in circles, so start over


class SecantPolicy:
    """Learns the map from action to change of the displacement while it acts: Broyden's update, from a multiple of 1.

    It keeps the inverse of the map, so that one action costs two products. Each action removes the displacement under
    the map known so far, shortened onto the ball. The map is kept when the plant's next goal begins, as the plant stays
    the same; it is forgotten on `reset`, and when it has led nowhere for some steps.
    """

    def __init__(self, dim: int, action_radius: float, gain: float = 1.0, goal: Sequence[float] | None = None) -> None:
        if not 0 < gain < math.inf:
            raise UserError(
                f"gain, by which an action is multiplied to give the movement, must be finite and above 0, not {gain!r}"
            )
        self._reader = DisplacementReader(dim, goal)
        self._radius, self._gain = float(action_radius), float(gain)
        self.reset()

    def reset(self) -> None:
        """Forget the map and all steps."""
        self._inverse = np.eye(self._reader.dim) / self._gain
        self._goal_number = -1
        self._action = self._displacement = np.zeros(self._reader.dim)  # of the last step
        self._closest, self._idle_steps = math.inf, 0

    def act(self, observation: FloatArray) -> FloatArray:
        """Learn from what the last action did, and return the action that removes the displacement."""
        number, displacement = self._reader.read(observation)
        if number != self._goal_number:
            self._goal_number, self._closest, self._idle_steps = number, math.inf, 0
        else:
            self._learn(self._action, displacement - self._displacement)
        self._watch(float(np.linalg.norm(displacement)))
        self._displacement = displacement.copy()
        self._action = shorten(-(self._inverse @ displacement), self._radius)
        return self._action

    def _watch(self, distance: float) -> None:
        """Start over with the initial map where the present one has not come closer for long."""
        self._idle_steps = 0 if distance < self._closest else self._idle_steps + 1
        self._closest = min(distance, self._closest)
        if self._idle_steps == _PATIENCE:
            self._inverse = np.eye(self._reader.dim) / self._gain
            self._closest, self._idle_steps = distance, 0

    def _learn(self, action: FloatArray, change: FloatArray) -> None:
        """Update the inverse such that the map leads from `action` to `change`, or as close as keeps it regular."""
        square = float(action @ action)
        if square < (_SHORTEST_STEP * self._radius) ** 2:
            return
        explained = self._inverse @ change  # the action that the map held responsible
        ratio = float(action @ explained) / square  # of the determinants after and before a whole update
        share = 1.0
        if abs(ratio) < _LEAST_DETERMINANT:
            share = (1.0 - math.copysign(_LEAST_DETERMINANT, ratio)) / (1.0 - ratio)
        factor = share / (square * (1.0 + share * (ratio - 1.0)))
        self._inverse = self._inverse + np.outer(factor * (action - explained), action @ self._inverse)
