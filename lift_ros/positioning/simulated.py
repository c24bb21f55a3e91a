"""One simulated positioning problem in plain floats: in few dimensions faster than arrays, and with the same bits."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lift_ros.errors import UserError
from lift_ros.positioning.distortions import Columns, norm
from lift_ros.positioning.dynamics import HIGH, LOW, Dynamics, Start
from lift_ros.positioning.problem import Bounds, Observed

FloatArray = npt.NDArray[np.float64]


class Moved(NamedTuple):
    """Where one step led."""

    position: FloatArray
    displacement: FloatArray
    distance: float


class Mover:
    """The state of one episode: position, goal and context."""

    def __init__(self, dynamics: Dynamics) -> None:
        self.dynamics = dynamics
        self._position: list[float] = []
        self._goal: list[float] = []
        self._coefficients: Columns = ()

    def reset(self, seed: int) -> tuple[Start, Moved]:
        """Begin the episode of this seed and return where it starts."""
        start = self.dynamics.start(seed)
        self._position, self._goal = start.position.tolist(), start.goal.tolist()
        self._coefficients = self.dynamics.distortion.coefficients(start.context)
        return start, self._moved()

    def step(self, action: npt.ArrayLike) -> Moved:
        """Move by one action, shortened onto the ball where it is longer than λ."""
        dynamics = self.dynamics
        values: list[float] = np.asarray(action, dtype=np.float64).tolist()
        if not isinstance(values, list) or len(values) != dynamics.dim:
            raise UserError(f"an action has {dynamics.dim} entries, not shape {np.shape(action)}")
        length = norm(values)
        if not math.isfinite(length):
            raise UserError(f"an action must be finite, not {values}")
        if length > dynamics.action_radius:
            factor = dynamics.action_radius / length
            values = [value * factor for value in values]
        moved = dynamics.distortion.move(self._position, values, self._coefficients)
        self._position = [LOW if value < LOW else HIGH if value > HIGH else value for value in moved]
        return self._moved()

    def _moved(self) -> Moved:
        displacement = [here - there for here, there in zip(self._position, self._goal, strict=True)]
        return Moved(np.array(self._position), np.array(displacement), norm(displacement))


class SimulatedPositioning:
    """A `Problem` that simulates one context at a time."""

    def __init__(self, dynamics: Dynamics) -> None:
        self.dynamics = dynamics
        self._mover = Mover(dynamics)
        self._start: Start | None = None

    @property
    def observation_size(self) -> int:
        """Number of entries of an observation."""
        return self.dynamics.dim

    @property
    def action_size(self) -> int:
        """Number of entries of an action."""
        return self.dynamics.dim

    @property
    def action_radius(self) -> float:
        """Radius λ of the action ball."""
        return self.dynamics.action_radius

    @property
    def step_limit(self) -> int:
        """Number of steps after which the caller ends an episode."""
        return self.dynamics.step_limit

    @property
    def threshold(self) -> float:
        """Distance θ to the goal at which an episode terminates."""
        return self.dynamics.threshold

    @property
    def workspace(self) -> Bounds:
        """Lowest and highest position; a movement beyond stops there."""
        return np.full(self.dynamics.dim, LOW), np.full(self.dynamics.dim, HIGH)

    def reset(self, seed: int) -> Observed:
        """Begin the episode that `seed` determines."""
        self._start, moved = self._mover.reset(seed)
        return self._observed(moved, self._start, float("nan"))

    def step(self, action: FloatArray) -> Observed:
        """Apply one action."""
        if self._start is None:
            raise UserError("reset(seed) the problem before its first step")
        moved = self._mover.step(action)
        return self._observed(moved, self._start, -moved.distance)

    def close(self) -> None:
        """Nothing is held."""

    def _observed(self, moved: Moved, start: Start, reward: float) -> Observed:
        values = moved.position if self.dynamics.observation == "position" else moved.displacement
        return Observed(
            values.copy(),
            moved.position,
            start.goal.copy(),
            start.context.flatten(),
            reward,
            moved.distance <= self.dynamics.threshold,
        )
