"""A fibre coupled by its power. Encoders that count from anywhere tell no policy without memory which way to go."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from lift_ros.array_types import FloatArray
from lift_ros.positioning.problem import Limits, Observed

RADIUS = 10.0  # µm
_DARK = -40.0  # dB that the detector shows without light
_REACHED = -0.5


class FibreRig:
    """Three axes in µm; the observation is the power in dB and three encoders.

    These begin at any number (`arbitrary`), at zero (`start`), or tell where the best place is (`absolute`).
    """

    limits = Limits(4, 3, RADIUS, 2000)

    def __init__(self, encoders: str = "arbitrary") -> None:
        self._encoders = encoders

    def reset(self, seed: int) -> Observed:
        """Begin the episode that `seed` determines."""
        rng = np.random.default_rng(seed)
        self._offset = rng.uniform([-15, -15, -6], [15, 15, 6])  # from the best place
        zeros = {"arbitrary": rng.uniform(-50, 50, 3), "start": -self._offset, "absolute": np.zeros(3)}
        self._zero = zeros[self._encoders]
        return self._observed()

    def step(self, action: FloatArray) -> Observed:
        """Move; nothing ends this stage."""
        self._offset = self._offset + action
        return self._observed()

    def close(self) -> None:
        """Hold nothing."""

    def _observed(self) -> Observed:
        power = max(_DARK, -0.3 * float(self._offset @ self._offset))
        encoders = self._offset + self._zero
        return Observed(np.append(power, encoders), position=encoders.copy(), terminated=power > _REACHED)


def couple(observation: FloatArray, step: float = 0.5) -> Generator[FloatArray, FloatArray, None]:
    """Search on a square spiral until there is light, then climb axis by axis."""
    side = 0
    while observation[0] <= _DARK:
        side += 1
        for _ in range(side):
            move = np.zeros(3)
            move[side % 2] = 4 * step * (-1) ** (side // 2)
            observation = yield move
    while True:
        for axis in range(3):
            move = np.zeros(3)
            move[axis] = step
            for _ in range(2):  # forward, then back
                while True:
                    before = observation[0]
                    observation = yield move
                    if observation[0] <= before:
                        break
                move = -move
