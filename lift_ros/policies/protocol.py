"""The one interface of whoever proposes actions, and what some of them offer besides."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

from lift_ros.array_types import FloatArray

if TYPE_CHECKING:
    from lift_ros.positioning.problem import Observed


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


@runtime_checkable
class CoveringPolicy(Policy, Protocol):
    """A policy that was learned from data and can tell where they say nothing."""

    def covers(self, observation: FloatArray) -> bool:
        """Whether the data cover this observation."""


@runtime_checkable
class InformedPolicy(Policy, Protocol):
    """A policy with full information, as yardstick; only a simulator can tell it the context."""

    def set_context(self, observed: Observed) -> None:
        """Learn goal and context of the episode that begins with `observed`."""


def begin_episode(policy: Policy, seed: int) -> None:
    """Seed and reset `policy` for a new episode, whether or not it has randomness."""
    if isinstance(policy, SeededPolicy):
        policy.begin_episode(seed)
    policy.reset()


def inform(policy: Policy, observed: Observed) -> None:
    """Tell goal and context to a policy with full information; all others are left ignorant."""
    if isinstance(policy, InformedPolicy):
        policy.set_context(observed)
