"""Recorded episodes as the flat arrays that training draws from."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lift_ros.array_types import FloatArray
from lift_ros.bags.arrays import EpisodeArrays, episodes_to_arrays
from lift_ros.bags.hindsight import NO_POSITIONS, UNFINISHED
from lift_ros.collection.records import Episode
from lift_ros.errors import UserError


@dataclass(frozen=True)
class TrainingData:
    """All steps end to end; episode e holds the steps offsets[e] to offsets[e+1]."""

    observations: npt.NDArray[np.float32]
    actions: FloatArray
    rewards: FloatArray
    offsets: npt.NDArray[np.int64]
    terminated: npt.NDArray[np.bool_]
    final_observations: npt.NDArray[np.float32]

    @property
    def episodes(self) -> int:
        """Number of episodes."""
        return len(self.terminated)

    @property
    def steps(self) -> int:
        """Number of steps."""
        return len(self.rewards)

    def digest(self) -> str:
        """Return a SHA-256 of all arrays: the same data give the same value, wherever they were stored."""
        total = hashlib.sha256()
        arrays = (self.observations, self.actions, self.rewards, self.offsets, self.terminated, self.final_observations)
        for array in arrays:
            total.update(f"{array.dtype.str}{array.shape}".encode())
            total.update(np.ascontiguousarray(array).tobytes())
        return total.hexdigest()


def from_episodes(episodes: Sequence[Episode]) -> TrainingData:
    """Gather episodes in memory; those without a step are left out."""
    return from_arrays(episodes_to_arrays(episodes))[0]


def from_arrays(arrays: EpisodeArrays, reward: str = "recorded") -> tuple[TrainingData, dict[str, int]]:
    """Return loaded episodes as training data, and how many were left out by reason.

    With `reward` "hindsight" episodes without reward are labelled r_i = −‖s_{i+1} − s_W‖ with s_W their last position.
    """
    counts = np.diff(arrays.offsets)
    keep = counts > 0
    rewards = arrays.rewards
    left_out: dict[str, int] = {}
    if reward == "hindsight":
        unknown = _sums(np.isnan(rewards), arrays.offsets) > 0
        unfinished = unknown & ~arrays.terminated
        no_positions = unknown & arrays.terminated & (arrays.positions.shape[1] == 0)
        left_out = {UNFINISHED: int(unfinished.sum()), NO_POSITIONS: int(no_positions.sum())}
        keep &= ~unfinished & ~no_positions
        rewards = _labelled(arrays, np.repeat(unknown & keep, counts))
    if not keep.any():
        reasons = [f"{count} {reason}" for reason, count in left_out.items() if count]
        raise UserError(f"there is no episode with a step to train on ({', '.join(reasons) or 'none was recorded'})")
    rows = np.repeat(keep, counts)
    data = TrainingData(
        observations=arrays.observations[rows].astype(np.float32),
        actions=arrays.actions[rows],
        rewards=rewards[rows],
        offsets=np.concatenate([[0], np.cumsum(counts[keep])]).astype(np.int64),
        terminated=arrays.terminated[keep],
        final_observations=arrays.final_observations[keep].astype(np.float32),
    )
    return checked(data), {reason: count for reason, count in left_out.items() if count}


def _labelled(arrays: EpisodeArrays, rows: npt.NDArray[np.bool_]) -> FloatArray:
    counts = np.diff(arrays.offsets)
    some = counts > 0
    after = np.empty_like(arrays.positions)
    after[:-1] = arrays.positions[1:]
    after[arrays.offsets[1:][some] - 1] = arrays.final_positions[some]
    goals = np.repeat(arrays.final_positions, counts, axis=0)
    rewards = arrays.rewards.copy()
    rewards[rows] = 0.0 - np.linalg.norm(after[rows] - goals[rows], axis=1)
    return rewards


def _sums(values: npt.NDArray[np.bool_], offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    total = np.concatenate([[0], np.cumsum(values)])
    return np.asarray(total[offsets[1:]] - total[offsets[:-1]], dtype=np.int64)


def checked(data: TrainingData) -> TrainingData:
    """Refuse what no training can use: unknown rewards, values that are not finite, nothing to learn from."""
    unknown = np.flatnonzero(~np.isfinite(data.rewards))
    if len(unknown):
        episode = int(np.searchsorted(data.offsets, unknown[0], side="right")) - 1
        raise UserError(
            f"{len(unknown)} of {data.steps} steps have no reward, the first in episode {episode} of those given; "
            "label them in hindsight with --reward hindsight"
        )
    for name in ("observations", "actions", "final_observations"):
        if not np.isfinite(getattr(data, name)).all():
            raise UserError(f"the {name} hold NaN or infinity; leave the damaged episodes out")
    return data
