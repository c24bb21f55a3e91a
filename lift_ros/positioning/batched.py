"""Thousands of contexts at once, with the same bits as one at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lift_ros.array_types import BoolArray, FloatArray, IntArray
from lift_ros.errors import UserError
from lift_ros.positioning.distortions import Columns, norm, squared_norm
from lift_ros.positioning.dynamics import HIGH, LOW, Dynamics

_CLEARLY_INSIDE = 1 - 1e-12  # so far below the squared radius rounding cannot change which action is too long


class BatchedStep(NamedTuple):
    """What one step of all contexts gave; one row each."""

    observations: FloatArray
    rewards: FloatArray
    terminated: BoolArray


class BatchedPositioning:
    """The batched twin of `SimulatedPositioning`. A context that has reached its goal stays there.

    Inside, coordinates are rows and contexts columns, so that each operation runs over contiguous memory; the arrays
    that go in and out have one row per context.
    """

    def __init__(self, dynamics: Dynamics) -> None:
        self.dynamics = dynamics
        self._coefficients: Columns = ()
        self._position = self._goal = np.empty((dynamics.dim, 0))
        self.distances = np.empty(0)  # to the goal, of each context
        self.reached = np.empty(0, dtype=np.bool_)  # which contexts have reached their goal
        self._last_steps = np.empty(0, dtype=np.int64)  # the step that reached the goal, of those that have
        self._step_count = 0
        self._goal_is_origin = False

    @property
    def steps(self) -> IntArray:
        """Number of steps each context has made; it stops counting at the goal."""
        return np.where(self.reached, self._last_steps, self._step_count)

    def reset(self, seeds: Sequence[int]) -> FloatArray:
        """Begin one episode per seed and return the observations."""
        if not len(seeds):
            raise UserError("a batch needs at least 1 seed")
        starts = [self.dynamics.start(seed) for seed in seeds]
        self._position = np.ascontiguousarray(np.array([start.position for start in starts]).T)
        self._goal = np.ascontiguousarray(np.array([start.goal for start in starts]).T)
        self._goal_is_origin = not self._goal.any()
        self._coefficients = self.dynamics.distortion.coefficients(np.array([start.context for start in starts]))
        self._last_steps = np.zeros(len(starts), dtype=np.int64)
        self._step_count = 0
        self.distances = norm(self._position - self._goal)
        self.reached = np.zeros(len(starts), dtype=np.bool_)
        return self._observations()

    def step(self, actions: npt.ArrayLike) -> BatchedStep:
        """Move every context that has not reached its goal by its row of `actions`."""
        action = np.ascontiguousarray(np.asarray(actions, dtype=np.float64).T)
        if action.shape != self._position.shape:
            raise UserError(f"actions must have shape {self._position.shape[::-1]}, not {action.shape[::-1]}")
        action = self._shortened(action)
        if self.reached.any():
            action = action * ~self.reached
        position = self._position = self._moved(action)
        self.distances = norm(position if self._goal_is_origin else position - self._goal)
        reached = self.distances <= self.dynamics.threshold
        self._step_count += 1
        if reached.any():
            self._last_steps[reached & ~self.reached] = self._step_count
        self.reached = reached
        return BatchedStep(self._observations(), -self.distances, reached)

    def _moved(self, action: FloatArray) -> FloatArray:
        position = np.empty_like(action)
        moved = self.dynamics.distortion.move(self._position, action, self._coefficients)
        for row, column in zip(position, moved, strict=True):
            np.maximum(column, LOW, out=row)
        return np.minimum(position, HIGH, out=position)

    def _shortened(self, action: FloatArray) -> FloatArray:
        radius = self.dynamics.action_radius
        squares = squared_norm(action)
        if float(squares.max()) <= radius * radius * _CLEARLY_INSIDE:
            return action
        length = np.sqrt(squares)
        if not np.isfinite(length.max()):
            raise UserError("all actions must be finite")
        factor = np.divide(radius, length, out=np.ones_like(length), where=length > radius)
        return np.asarray(action * factor)

    def _observations(self) -> FloatArray:
        if self.dynamics.observation == "position":
            return self._position.T
        return (self._position - self._goal).T
