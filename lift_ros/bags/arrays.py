"""Many episodes of several runs as contiguous arrays, the form in which training wants them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from lift_ros.array_types import ByteArray, FloatArray, IntArray
from lift_ros.bags.reader import LeftOut
from lift_ros.bags.seen import seen_part
from lift_ros.collection.records import Episode, Outcome
from lift_ros.errors import UserError

PER_STEP = ("observations", "actions", "rewards", "positions", "sources", "images")
PER_EPISODE = (
    "final_observations",
    "final_positions",
    "goals",
    "outcomes",
    "modes",
    "seeds",
    "episodes",
    "runs",
)


@dataclass
class EpisodeArrays:
    """All steps end to end: episode e holds the rows offsets[e] to offsets[e + 1].

    The last step of a recovered episode is not among them: what it led to was never seen, so the observation before it
    is the final one. Episodes without a step are not among them either.
    """

    observations: FloatArray  # [steps, observation size]
    actions: FloatArray  # [steps, action size]
    rewards: FloatArray  # [steps], NaN where unknown
    positions: FloatArray  # [steps, position size], no columns where unknown
    sources: ByteArray  # [steps], values of Source
    images: ByteArray | None  # [steps, height, width, 3] where they were asked for and recorded
    offsets: IntArray  # [episodes + 1]
    final_observations: FloatArray  # [episodes, observation size]
    final_positions: FloatArray  # [episodes, position size]
    goals: FloatArray  # [episodes, position size], NaN where s_W was not recorded
    outcomes: ByteArray  # [episodes], values of Outcome
    modes: ByteArray  # [episodes], values of Mode
    seeds: npt.NDArray[np.uint64]  # [episodes]
    episodes: IntArray  # [episodes], numbers within their runs
    runs: IntArray  # [episodes], which of the given runs
    left_out: list[LeftOut] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.episodes)

    @property
    def terminated(self) -> npt.NDArray[np.bool_]:
        """Whether each episode reached its goal."""
        return np.equal(self.outcomes, int(Outcome.REACHED))

    @property
    def steps(self) -> int:
        """Number of steps in all episodes."""
        return len(self.rewards)

    def rows(self, number: int) -> slice:
        """Return the rows of one episode, counted within these arrays."""
        return slice(int(self.offsets[number]), int(self.offsets[number + 1]))


def gather(episodes: Sequence[Episode], runs: Sequence[int] | None = None, *, images: bool = False) -> EpisodeArrays:
    """Return episodes in memory as arrays; `runs` says which run each comes from."""
    numbers = [0] * len(episodes) if runs is None else runs
    seen = [(seen_part(episode), run) for episode, run in zip(episodes, numbers, strict=True)]
    kept = [(episode, run) for episode, run in seen if episode.steps]
    steps = [step for episode, _ in kept for step in episode.steps]
    try:
        return EpisodeArrays(
            observations=_matrix([step.observation for step in steps]),
            actions=_matrix([step.action for step in steps]),
            rewards=np.array([step.reward for step in steps], dtype=np.float64),
            positions=_matrix([step.position for step in steps]),
            sources=np.array([step.source for step in steps], dtype=np.uint8),
            images=_pictures([step.image for step in steps]) if images else None,
            offsets=np.cumsum([0, *(len(episode.steps) for episode, _ in kept)], dtype=np.int64),
            final_observations=_matrix([episode.final_observation for episode, _ in kept]),
            final_positions=_matrix([episode.final_position for episode, _ in kept]),
            goals=_matrix([_goal(episode) for episode, _ in kept]),
            outcomes=np.array([episode.outcome for episode, _ in kept], dtype=np.uint8),
            modes=np.array([episode.mode for episode, _ in kept], dtype=np.uint8),
            seeds=np.array([episode.seed for episode, _ in kept], dtype=np.uint64),
            episodes=np.array([episode.index for episode, _ in kept], dtype=np.int64),
            runs=np.array([run for _, run in kept], dtype=np.int64),
        )
    except ValueError as error:
        raise UserError(f"the episodes have different dimensions ({error}); load runs of one plant.") from error


def _goal(episode: Episode) -> FloatArray:
    size = episode.steps[0].position.size
    return episode.goal if episode.goal.size == size else np.full(size, np.nan)


def _matrix(vectors: list[FloatArray]) -> FloatArray:
    return np.stack(vectors) if vectors else np.empty((0, 0))


def _pictures(images: list[ByteArray | None]) -> ByteArray | None:
    present = [image for image in images if image is not None]
    if not present:
        return None
    if len(present) != len(images):
        raise UserError(f"{len(images) - len(present)} of {len(images)} steps have no image; load without images.")
    return np.stack(present)


def join(parts: Sequence[EpisodeArrays], places: Sequence[IntArray]) -> EpisodeArrays:
    """Return several groups of episodes, none of them empty, as one; `places` says where each episode goes."""
    place = np.concatenate(places)
    order = np.argsort(place, kind="stable")
    counts = np.concatenate([np.diff(part.offsets) for part in parts])
    rows = np.argsort(np.repeat(place, counts), kind="stable")
    values: dict[str, Any] = {"offsets": np.concatenate([[0], np.cumsum(counts[order])]).astype(np.int64)}
    for name in (*PER_STEP, *PER_EPISODE):
        columns = [getattr(part, name) for part in parts]
        if name == "images" and any(column is None for column in columns):
            if any(column is not None for column in columns):
                raise UserError("some episodes have images and some have none; load them apart or without images.")
            values[name] = None
        else:
            values[name] = np.concatenate(columns)[rows if name in PER_STEP else order]
    return EpisodeArrays(**values)
