"""The coordinate walk: a routine that always arrives, but slowly and on detours; as a class and as a generator."""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence

import numpy as np

from lift_ros.array_types import FloatArray
from lift_ros.errors import UserError
from lift_ros.policies.displacement import DisplacementReader
from lift_ros.positioning.ball import shorten
from lift_ros.seeds import generator

DEFAULT_STEP = 0.025
STEP_FLOOR = 1e-3


def _check_step(step: float, floor: float) -> None:
    if not 0 < floor <= step < math.inf:
        raise UserError(f"the walk needs 0 < floor <= step, not step={step!r}, floor={floor!r}")


class CoordinateWalk:
    """Walks along one axis after the other with steps of length l, and halves l after each round.

    It leaves an axis when the coordinate is within l/2 of its goal or the last step did not bring it closer. Its
    state (axis, step size, direction) is forgotten on `reset`, and when the plant's next goal begins.
    """

    def __init__(
        self, dim: int, step: float = DEFAULT_STEP, goal: Sequence[float] | None = None, floor: float = STEP_FLOOR
    ) -> None:
        _check_step(step, floor)
        self._reader = DisplacementReader(dim, goal)
        self._initial_step, self._floor = float(step), float(floor)
        self._goal_number = 0
        self.axis = 0  # along which the walk goes
        self.step_size = self._initial_step  # l
        self.direction = 0.0  # along the axis: 1, −1, or 0 before the first step on it
        self._gap = math.inf  # distance along the axis before the last step on it

    def reset(self) -> None:
        """Begin anew: first axis, initial step size, no direction."""
        self.axis = 0
        self.step_size = self._initial_step
        self._enter_axis()

    def act(self, observation: FloatArray) -> FloatArray:
        """Return the next step of the walk."""
        goal_number, displacement = self._reader.read(observation)
        if goal_number != self._goal_number:
            self._goal_number = goal_number
            self.reset()
        skipped = 0
        while self._is_done(float(displacement[self.axis])) and not self._stands_still(skipped):
            self._next_axis()
            skipped += 1
        here = float(displacement[self.axis])
        if self.direction == 0.0:
            self.direction = -1.0 if here > 0 else 1.0
        self._gap = abs(here)
        action = np.zeros(self._reader.dim)
        action[self.axis] = self.direction * self.step_size
        return action

    def _is_done(self, here: float) -> bool:
        return abs(here) <= self.step_size / 2 or abs(here) >= self._gap

    def _stands_still(self, skipped: int) -> bool:
        """Whether a whole round at the smallest step size found nothing to do; then any step is as good."""
        return self.step_size == self._floor and skipped > self._reader.dim

    def _next_axis(self) -> None:
        self.axis += 1
        if self.axis == self._reader.dim:
            self.axis = 0
            self.step_size = max(self.step_size / 2, self._floor)
        self._enter_axis()

    def _enter_axis(self) -> None:
        self._gap = math.inf
        self.direction = 0.0


def coordinate_walk(
    observation: FloatArray,
    dim: int,
    step: float = DEFAULT_STEP,
    goal: Sequence[float] | None = None,
    floor: float = STEP_FLOOR,
) -> Generator[FloatArray, FloatArray, None]:
    """Walk like `CoordinateWalk`, written as scripted routines are: its state is its place in nested loops."""
    _check_step(step, floor)
    reader = DisplacementReader(dim, goal)
    while True:
        observation = yield from _approach(observation, reader, step, floor)


def _approach(
    observation: FloatArray, reader: DisplacementReader, length: float, floor: float
) -> Generator[FloatArray, FloatArray, FloatArray]:
    """Walk until the plant's next goal begins, and return the observation that says so."""
    goal_number, displacement = reader.read(observation)
    skipped = 0
    while True:
        for axis in range(reader.dim):
            stands_still = length == floor and skipped > reader.dim
            gap, direction = math.inf, -1.0 if displacement[axis] > 0 else 1.0
            skipped += 1
            while stands_still or length / 2 < abs(displacement[axis]) < gap:
                stands_still, skipped, gap = False, 1, abs(float(displacement[axis]))
                action = np.zeros(reader.dim)
                action[axis] = direction * length
                observation = yield action
                number, displacement = reader.read(observation)
                if number != goal_number:
                    return observation
        length = max(length / 2, floor)


class NoisyCoordinateWalk:
    """The coordinate walk with Gaussian noise on each action, `noise` times as wide as the step is long."""

    def __init__(
        self,
        dim: int,
        action_radius: float,
        step: float = DEFAULT_STEP,
        noise: float = 1.0,
        goal: Sequence[float] | None = None,
        floor: float = STEP_FLOOR,
    ) -> None:
        if not 0 <= noise < math.inf:
            raise UserError(f"noise must be a finite number >= 0, not {noise!r}")
        self._walk = CoordinateWalk(dim, step, goal, floor)
        self._radius, self._noise = float(action_radius), float(noise)
        self._rng: np.random.Generator | None = None

    def begin_episode(self, seed: int) -> None:
        """Seed the noise of one episode."""
        self._rng = generator(seed, "noisy_coordinate_walk")

    def reset(self) -> None:
        """Begin the walk anew; the noise goes on."""
        self._walk.reset()

    def act(self, observation: FloatArray) -> FloatArray:
        """Return the next step of the walk with noise, shortened onto the ball."""
        if self._rng is None:
            raise UserError("the noisy walk needs a seed: call begin_episode(seed) before the first step")
        action = self._walk.act(observation)
        spread = self._noise * self._walk.step_size
        return shorten(action + self._rng.normal(0.0, spread, action.size), self._radius)
