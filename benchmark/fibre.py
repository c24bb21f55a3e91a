"""A fibre rig on paper: it sees the power in dB and three encoders; its routine searches in a spiral, then climbs."""

from __future__ import annotations

import math

import numpy as np

from lift_ros.array_types import FloatArray
from lift_ros.positioning.problem import Limits, Observed

LIMITS = Limits(
    observation_size=4,
    action_size=3,
    action_radius=0.2,
    step_limit=600,
    workspace=(np.full(3, -1.0), np.full(3, 1.0)),
)
FLOOR, LIT, ALIGNED = -60.0, -55.0, -0.35  # [dB] dark, worth climbing, done
WIDTHS = np.array([0.045, 0.045, 0.2])  # of the beam, in units of the stage
STEP = 0.04  # of the search
NOISE = 0.02  # [dB]


class Fibre:
    """The stage begins near a fibre of unknown place, with encoders whose zero is somewhere else in each episode."""

    limits = LIMITS

    def __init__(self) -> None:
        self._rng = np.random.default_rng()
        self._position = self._goal = self._zero = np.zeros(3)

    def reset(self, seed: int) -> Observed:
        """Begin the episode that `seed` determines."""
        self._rng = np.random.default_rng(seed)
        self._position = self._rng.uniform(-0.5, 0.5, 3)
        angle, distance = self._rng.uniform(0.0, 2.0 * math.pi), self._rng.uniform(0.15, 0.34)
        offset = [distance * math.cos(angle), distance * math.sin(angle), self._rng.uniform(-0.1, 0.1)]
        self._goal = self._position + np.array(offset)
        self._zero = self._rng.uniform(-0.5, 0.5, 3)
        return self._observed()

    def step(self, action: FloatArray) -> Observed:
        """Move, as far as the stage reaches."""
        self._position = np.clip(self._position + action, -1.0, 1.0)
        return self._observed()

    def close(self) -> None:
        """Hold nothing."""

    def _observed(self) -> Observed:
        offset = (self._position - self._goal) / WIDTHS
        power = max(FLOOR, -10.0 * math.log10(math.e) * float(offset @ offset))
        seen = power + self._rng.normal(0.0, NOISE)
        values = np.array([seen, *(self._position - self._zero)])
        return Observed(values, self._position, goal=self._goal, terminated=seen >= ALIGNED)


class SpiralAndClimb:
    """Searches in a square spiral until there is light, then climbs axis by axis with shorter and shorter steps."""

    def reset(self) -> None:
        """Search anew from here."""
        self._turn, self._left, self._leg = 0, 1, 1
        self._axis, self._step, self._best = 0, STEP, -math.inf
        self._tried = 0  # moves that brought nothing since the last that did
        self._last: FloatArray | None = None

    def act(self, observation: FloatArray) -> FloatArray:
        """Return the next move of the search, or of the climb where there is light."""
        power = float(observation[0])
        return self._climb(power) if power > LIT or self._last is not None else self._search()

    def _search(self) -> FloatArray:
        if self._left == 0:
            self._turn += 1
            self._leg += self._turn % 2 == 0
            self._left = self._leg
        self._left -= 1
        move = np.zeros(3)
        move[self._turn % 2] = STEP if self._turn % 4 < 2 else -STEP
        return move

    def _climb(self, power: float) -> FloatArray:
        if self._last is not None and power <= self._best:
            back, self._last = -self._last, None
            self._tried += 1
            if self._tried % 2 == 0:
                self._axis = (self._axis + 1) % 3
            if self._tried == 6:
                self._step, self._tried = self._step / 2, 0
            return back
        self._tried = 0 if self._last is not None else self._tried
        self._best = power
        move = np.zeros(3)
        move[self._axis] = self._step if self._tried % 2 == 0 else -self._step
        if self._last is not None:
            move = self._last
        self._last = move
        return move
