"""Recorded episodes as the flat arrays that training draws from."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lift_ros.collection.records import Episode, Outcome
from lift_ros.errors import UserError

FloatArray = npt.NDArray[np.float64]


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
    """Gather episodes; those without a step are left out."""
    kept = [episode for episode in episodes if episode.steps]
    if not kept:
        raise UserError("there is no episode with a step to train on; record some with `lift collect`")
    steps = [step for episode in kept for step in episode.steps]
    return checked(
        TrainingData(
            observations=_stack([step.observation for step in steps], "observations").astype(np.float32),
            actions=_stack([step.action for step in steps], "actions"),
            rewards=np.array([step.reward for step in steps], dtype=np.float64),
            offsets=np.concatenate([[0], np.cumsum([len(episode.steps) for episode in kept])]).astype(np.int64),
            terminated=np.array([episode.outcome == Outcome.REACHED for episode in kept]),
            final_observations=_stack([episode.final_observation for episode in kept], "observations").astype(
                np.float32
            ),
        )
    )


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


def _stack(arrays: Sequence[FloatArray], name: str) -> FloatArray:
    sizes = {array.shape for array in arrays}
    if len(sizes) != 1:
        raise UserError(f"the {name} have different sizes {sorted(sizes)}; train on runs of one plant")
    return np.stack(arrays).astype(np.float64)
