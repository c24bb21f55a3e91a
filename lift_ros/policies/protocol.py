"""The one interface of whoever proposes actions."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


@runtime_checkable
class Policy(Protocol):
    """Proposes an action for an observation; may keep state between calls."""

    def reset(self) -> None:
        """Forget all internal state: an episode begins, or somebody else has moved the plant."""

    def act(self, observation: FloatArray) -> FloatArray:
        """Return the action for this observation."""


@runtime_checkable
class SeededPolicy(Policy, Protocol):
    """A policy with randomness of its own; it is told the episode's seed once, before its first reset."""

    def begin_episode(self, seed: int) -> None:
        """Seed this policy's own random stream for one episode."""


def begin_episode(policy: Policy, seed: int) -> None:
    """Seed and reset `policy` for a new episode, whether or not it has randomness."""
    if isinstance(policy, SeededPolicy):
        policy.begin_episode(seed)
    policy.reset()
