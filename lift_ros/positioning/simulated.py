"""One simulated positioning problem in plain floats: in few dimensions faster than arrays, and with the same bits."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from lift_ros.array_types import FloatArray
from lift_ros.errors import UserError
from lift_ros.positioning.distortions import Columns, norm
from lift_ros.positioning.dynamics import HIGH, LOW, Beginning, Dynamics
from lift_ros.positioning.problem import Limits, Observed


class SimulatedPositioning:
    """A `Problem` that simulates one context at a time."""

    def __init__(self, dynamics: Dynamics) -> None:
        self.dynamics = dynamics
        size = dynamics.dim
        box = np.full(size, LOW), np.full(size, HIGH)  # movements beyond stop there
        self.limits = Limits(size, size, dynamics.action_radius, dynamics.step_limit, box)
        self._move = dynamics.distortion.move
        self._radius = dynamics.action_radius
        self._shape = (size,)
        self._observes_position = dynamics.observation == "position"
        self.start: Beginning | None = None  # of the present episode
        self.position: list[float] = []  # s
        self._displacement: list[float] = []
        self._goal: list[float] = []
        self._coefficients: Columns = ()
        self.distance = math.nan  # ‖s − s_W‖

    def reset(self, seed: int) -> Observed:
        """Begin the episode that `seed` determines."""
        self.start = start = self.dynamics.start(seed)
        self._goal = start.goal.tolist()
        self._coefficients = self.dynamics.distortion.coefficients(start.context)
        self._stand(start.position.tolist())
        return self._observed(start, math.nan)

    def step(self, action: npt.ArrayLike) -> Observed:
        """Apply one action."""
        return self._observed(self.advance(action), -self.distance)

    def advance(self, action: npt.ArrayLike) -> Beginning:
        """Move by one action, shortened onto the ball where it is longer than λ; return how the episode began."""
        if self.start is None:
            raise UserError("reset the problem before its first step")
        array = np.asarray(action, dtype=np.float64)
        if array.shape != self._shape:
            raise UserError(f"an action has {self._shape[0]} entries, not shape {array.shape}")
        values: list[float] = array.tolist()
        length = norm(values)
        if not length <= self._radius:  # also where it is NaN
            if not math.isfinite(length):
                raise UserError(f"an action must be finite, not {values}")
            factor = self._radius / length
            values = [value * factor for value in values]
        moved = self._move(self.position, values, self._coefficients)
        self._stand([LOW if value < LOW else HIGH if value > HIGH else value for value in moved])
        return self.start

    def observation(self) -> FloatArray:
        """Return what is observed as an array of its own."""
        return np.array(self.position if self._observes_position else self._displacement)

    def stand_at(self, position: npt.ArrayLike) -> FloatArray:
        """Go on from another position in the same context, which no plant can; return what is observed there."""
        array = np.asarray(position, dtype=np.float64)
        if array.shape != self._shape or not (np.abs(array) <= HIGH).all():
            raise UserError(f"a position has {self._shape[0]} entries within [{LOW:g}, {HIGH:g}], not {position!r}")
        self._stand(array.tolist())
        return self.observation()

    def close(self) -> None:
        """Nothing is held."""

    def _stand(self, position: list[float]) -> None:
        goal = self._goal
        self.position = position
        self._displacement = [value - goal[k] for k, value in enumerate(position)]
        self.distance = norm(self._displacement)

    def _observed(self, start: Beginning, reward: float) -> Observed:
        return Observed(
            self.observation(),
            np.array(self.position),
            start.goal.copy(),
            start.context.flatten(),
            reward,
            self.distance <= self.dynamics.threshold,
        )
