"""Algorithm 1 word for word, slow, and random trajectories to try it on."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np


def literal_candidates(
    actions: Sequence[Sequence[float]],
    rewards: Sequence[float],
    i: int,
    gamma: float,
    constant: float,
    radius: float,
    terminated: bool,
    kappa: float = 0.0,
) -> list[int]:
    steps = len(actions)
    last = steps if terminated else steps - 1
    returns = [math.fsum(gamma ** (k - i) * rewards[k] for k in range(i, steps)) for i in range(steps)] + [0.0]
    found = []
    for j in range(i + 1, last + 1):
        shortcut = literal_action(actions[i:j], kappa)
        length = math.fsum(math.hypot(*actions[k]) for k in range(i, j))
        pays = gamma * returns[j] - returns[i] + rewards[j - 1] >= constant * length
        if j == i + 1 or (pays and math.hypot(*shortcut) <= radius):
            found.append(j)
    return found


def literal_action(actions: Sequence[Sequence[float]], kappa: float) -> list[float]:
    """Return the action that moves by as much as these do together, where a step moves by a‖a‖^κ."""
    drive = [math.fsum(a[axis] * math.hypot(*a) ** kappa for a in actions) for axis in range(len(actions[0]))]
    length = math.hypot(*drive)
    return [value * length ** (-kappa / (1 + kappa)) for value in drive] if length else drive


def literal_probabilities(rewards: Sequence[float], found: Sequence[int], strategy: str) -> list[float]:
    reached = [rewards[j - 1] for j in found]
    if strategy == "uniform":
        mass = [1.0 for _ in reached]
    elif strategy == "best":
        mass = [float(k == reached.index(max(reached))) for k in range(len(reached))]
    elif strategy == "inverse_distance":
        mass = [1 / -reward for reward in reached]
    else:
        mass = [reward - min(reached) for reward in reached]
        if sum(mass) == 0:
            mass = [1.0 for _ in reached]
    return [value / sum(mass) for value in mass]


class Trajectories:
    """Random walks around a goal as flat arrays, with episodes of different length and end."""

    def __init__(
        self, seed: int, lengths: Sequence[int], size: int = 2, step: float = 0.1, share_terminated: float = 0.5
    ) -> None:
        rng = np.random.default_rng(seed)
        self.lengths = np.asarray(lengths)
        self.offsets = np.concatenate(([0], np.cumsum(self.lengths)))
        steps = int(self.offsets[-1])
        self.actions = rng.normal(0, step, (steps, size))
        self.observations = rng.normal(0, 1, (steps, 3))
        self.terminated = rng.random(len(lengths)) < share_terminated
        self.final_observations = rng.normal(0, 1, (len(lengths), 3))
        self.rewards = np.empty(steps)
        for begin, end in zip(self.offsets[:-1], self.offsets[1:], strict=True):
            walk = rng.normal(0, 1, size) + np.cumsum(self.actions[begin:end], axis=0)
            self.rewards[begin:end] = -np.linalg.norm(walk, axis=1) - 1e-3

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        return (
            self.observations,
            self.actions,
            self.rewards,
            self.offsets,
            self.terminated,
            self.final_observations,
        )

    def episode(self, index: int) -> tuple[np.ndarray, np.ndarray, bool]:
        part = slice(self.offsets[index], self.offsets[index + 1])
        return self.actions[part], self.rewards[part], bool(self.terminated[index])
