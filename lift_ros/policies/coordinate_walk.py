"""The coordinate walk: a routine that always arrives, but slowly and on detours."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Generator, Sequence

import numpy as np

from lift_ros.array_types import FloatArray
from lift_ros.errors import UserError
from lift_ros.policies.displacement import DisplacementReader
from lift_ros.policies.routines import GeneratorPolicy, Routine
from lift_ros.positioning.ball import shorten
from lift_ros.seeds import generator

DEFAULT_STEP = 0.025
STEP_FLOOR = 1e-3
MOST_NOISE = 100.0
_CERTAINTY = 3.0  # standard deviations by which n steps of length l must exceed their noise, which grows with √n


class CoordinateWalk(GeneratorPolicy):
    """Walks along one axis after the other with steps of length l, and halves l after each round.

    It leaves an axis when the coordinate is within l/2 of its goal or the last `patience` steps did not bring it
    closer. It is written as scripted routines are: its state is its place in nested loops, forgotten on `reset`, and
    when the plant's next goal begins.
    """

    def __init__(
        self,
        dim: int,
        step: float = DEFAULT_STEP,
        goal: Sequence[float] | None = None,
        floor: float = STEP_FLOOR,
        patience: int = 1,
    ) -> None:
        if not 0 < floor <= step < math.inf:
            raise UserError(f"the walk needs 0 < floor <= step, not step={step!r}, floor={floor!r}")
        arguments = {"reader": DisplacementReader(dim, goal), "step": float(step), "floor": float(floor)}
        super().__init__(_walk, {**arguments, "patience": patience}, "coordinate_walk")


def _walk(observation: FloatArray, reader: DisplacementReader, step: float, floor: float, patience: int) -> Routine:
    while True:
        observation = yield from _approach(observation, reader, step, floor, patience)


def _approach(
    observation: FloatArray, reader: DisplacementReader, length: float, floor: float, patience: int
) -> Generator[FloatArray, FloatArray, FloatArray]:
    """Walk until the plant's next goal begins, and return the observation that says so."""
    goal_number, displacement = reader.read(observation)
    skipped = 0
    while True:
        for axis in range(reader.dim):
            stands_still = length == floor and skipped > reader.dim
            direction = -1.0 if displacement[axis] > 0 else 1.0
            gaps = deque([math.inf] * patience, maxlen=patience)  # the oldest is what the present one is compared with
            skipped += 1
            while stands_still or length / 2 < abs(displacement[axis]) < gaps[0]:
                stands_still, skipped = False, 1
                gaps.append(abs(float(displacement[axis])))
                action = np.zeros(reader.dim)
                action[axis] = direction * length
                observation = yield action
                number, displacement = reader.read(observation)
                if number != goal_number:
                    return observation
                if patience > 1 and displacement[axis] * direction > 0:
                    break  # the goal is passed, which a single step tells by itself
        length = max(length / 2, floor)


class NoisyCoordinateWalk(CoordinateWalk):
    """The coordinate walk with Gaussian noise on each action, `noise` times as wide as the step is long.

    With noise of 2 little of the walk can be seen in its steps. So that noise alone does not make it leave its axes and
    halve its steps, it judges progress over as many steps as carry it thrice as far as the noise does.
    """

    def __init__(
        self,
        dim: int,
        action_radius: float,
        step: float = DEFAULT_STEP,
        noise: float = 1.0,
        goal: Sequence[float] | None = None,
        floor: float = STEP_FLOOR,
    ) -> None:
        if not 0 <= noise <= MOST_NOISE:
            raise UserError(f"noise must be a number from 0 to {MOST_NOISE:g}, not {noise!r}")
        super().__init__(dim, step, goal, floor, patience=max(1, math.ceil((_CERTAINTY * noise) ** 2)))
        self._radius, self._noise = float(action_radius), float(noise)
        self._rng: np.random.Generator | None = None

    def begin_episode(self, seed: int) -> None:
        """Seed the noise of one episode; it goes on over hand-offs."""
        self._rng = generator(seed, "noisy_coordinate_walk")

    def act(self, observation: FloatArray) -> FloatArray:
        """Return the next step of the walk with noise, shortened onto the ball."""
        if self._rng is None:
            raise UserError("the noisy walk needs a seed: call begin_episode(seed) before the first step")
        action = super().act(observation)
        spread = self._noise * np.abs(action).max()  # a step goes along one axis
        return shorten(action + self._rng.normal(0.0, spread, action.size), self._radius)
