"""A line to walk on and policies whose answers a test can foresee."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from lift_ros.array_types import FloatArray
from lift_ros.positioning.problem import Limits, Observed
from lift_ros.seeds import generator


@dataclass
class Line:
    """A plant that moves exactly as told, from a seeded start towards 0."""

    step_limit: int = 50
    threshold: float = 0.05
    start: tuple[float, float] | None = None
    position: FloatArray = field(default_factory=lambda: np.zeros(2))

    @property
    def limits(self) -> Limits:
        return Limits(2, 2, 0.5, self.step_limit)

    def reset(self, seed: int) -> Observed:
        self.position = generator(seed, "line").uniform(-1, 1, 2) if self.start is None else np.array(self.start)
        return self._observed(float("nan"))

    def step(self, action: FloatArray) -> Observed:
        self.position = self.position + action
        return self._observed(-float(np.linalg.norm(self.position)))

    def close(self) -> None:
        pass

    def _observed(self, reward: float) -> Observed:
        reached = float(np.linalg.norm(self.position)) <= self.threshold
        return Observed(self.position.copy(), self.position.copy(), np.zeros(2), np.eye(2).ravel(), reward, reached)


@dataclass
class Creep:
    """A slow logging policy with state: it counts its answers since the last reset."""

    step: float = 0.1
    answers: int = 0
    resets: int = 0

    def reset(self) -> None:
        self.answers = 0
        self.resets += 1

    def act(self, observation: FloatArray) -> FloatArray:
        self.answers += 1
        distance = float(np.linalg.norm(observation))
        return -observation / distance * min(self.step, distance)


@dataclass
class Jump:
    """An augmentor: it goes half the way, if that is within its reach."""

    reach: float = 0.5
    hash: str = "abc"
    asked: int = 0

    def reset(self) -> None:
        pass

    def act(self, observation: FloatArray) -> FloatArray:
        self.asked += 1
        distance = float(np.linalg.norm(observation))
        return -observation / distance * min(self.reach, distance / 2)


@dataclass
class Jitter:
    """An augmentor with randomness of its own."""

    size: float = 0.1

    def begin_episode(self, seed: int) -> None:
        self.rng = generator(seed, "jitter")

    def reset(self) -> None:
        pass

    def act(self, observation: FloatArray) -> FloatArray:
        return self.rng.uniform(-self.size, self.size, observation.size)
