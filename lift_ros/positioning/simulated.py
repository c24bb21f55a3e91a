"""One simulated positioning problem in plain floats: in few dimensions faster than arrays, and with the same bits."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from lift_ros.array_types import FloatArray
from lift_ros.errors import UserError
from lift_ros.positioning.distortions import Columns, norm
from lift_ros.positioning.dynamics import HIGH, LOW, Beginning, Dynamics
from lift_ros.positioning.problem import Bounds, Observed


class Mover:
    """The state of one episode: position, goal and context."""

    def __init__(self, dynamics: Dynamics) -> None:
        self.dynamics = dynamics
        self._move = dynamics.distortion.move
        self._radius = dynamics.action_radius
        self._size = dynamics.dim
        self._shape = (dynamics.dim,)
        self._observes_position = dynamics.observation == "position"
        self._position: list[float] = []
        self._displacement: list[float] = []
        self._goal: list[float] = []
        self._coefficients: Columns = ()
        self.distance = math.nan  # ‖s − s_W‖

    def reset(self, seed: int) -> Beginning:
        """Begin the episode of this seed."""
        start = self.dynamics.start(seed)
        self._position, self._goal = start.position.tolist(), start.goal.tolist()
        self._coefficients = self.dynamics.distortion.coefficients(start.context)
        self._measure()
        return start

    def step(self, action: npt.ArrayLike) -> None:
        """Move by one action, shortened onto the ball where it is longer than λ."""
        array = np.asarray(action, dtype=np.float64)
        if array.shape != self._shape:
            raise UserError(f"an action has {self._size} entries, not shape {array.shape}")
        values: list[float] = array.tolist()
        length = norm(values)
        if not length <= self._radius:  # also where it is NaN
            if not math.isfinite(length):
                raise UserError(f"an action must be finite, not {values}")
            factor = self._radius / length
            values = [value * factor for value in values]
        moved = self._move(self._position, values, self._coefficients)
        self._position = [LOW if value < LOW else HIGH if value > HIGH else value for value in moved]
        self._measure()

    def position(self) -> FloatArray:
        """Return s as an array of its own."""
        return np.array(self._position)

    def observation(self) -> FloatArray:
        """Return what is observed as an array of its own."""
        return np.array(self._position if self._observes_position else self._displacement)

    def _measure(self) -> None:
        goal = self._goal
        self._displacement = [value - goal[k] for k, value in enumerate(self._position)]
        self.distance = norm(self._displacement)


class SimulatedPositioning:
    """A `Problem` that simulates one context at a time."""

    def __init__(self, dynamics: Dynamics) -> None:
        self.dynamics = dynamics
        self.observation_size = self.action_size = dynamics.dim
        self.action_radius, self.threshold = dynamics.action_radius, dynamics.threshold
        self.step_limit = dynamics.step_limit
        self.workspace: Bounds = np.full(dynamics.dim, LOW), np.full(dynamics.dim, HIGH)  # movements beyond stop there
        self._mover = Mover(dynamics)
        self._start: Beginning | None = None

    def reset(self, seed: int) -> Observed:
        """Begin the episode that `seed` determines."""
        self._start = self._mover.reset(seed)
        return self._observed(self._start, float("nan"))

    def step(self, action: FloatArray) -> Observed:
        """Apply one action."""
        if self._start is None:
            raise UserError("reset(seed) the problem before its first step")
        self._mover.step(action)
        return self._observed(self._start, -self._mover.distance)

    def close(self) -> None:
        """Nothing is held."""

    def _observed(self, start: Beginning, reward: float) -> Observed:
        mover = self._mover
        return Observed(
            mover.observation(),
            mover.position(),
            start.goal.copy(),
            start.context.flatten(),
            reward,
            mover.distance <= self.dynamics.threshold,
        )
