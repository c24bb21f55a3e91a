"""Many episodes of several runs as contiguous arrays, the form in which training wants them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from lift_ros.array_types import ByteArray, FloatArray, IntArray, Picture
from lift_ros.bags.contents import seen_part
from lift_ros.bags.reader import LeftOut
from lift_ros.collection.records import Episode, Outcome
from lift_ros.errors import UserError
from lift_ros.messages.layout import prefix_dtype
from lift_ros.positioning.pictures import PictureFormat

# Which field of a message fills which array.
OF_STEP = {
    "observations": "observation",
    "actions": "action",
    "rewards": "reward",
    "positions": "position",
    "sources": "source",
}
OF_EPISODE = {
    "final_observations": "final_observation",
    "final_positions": "final_position",
    "outcomes": "outcome",
    "modes": "mode",
    "seeds": "seed",
}


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
    images: Picture | None  # [steps, height, width] or [steps, height, width, 3] where asked for and recorded
    offsets: IntArray  # [episodes + 1]
    final_observations: FloatArray  # [episodes, observation size]
    final_positions: FloatArray  # [episodes, position size]
    goals: FloatArray  # [episodes, position size], NaN where s_W was not recorded
    outcomes: ByteArray  # [episodes], values of Outcome
    modes: ByteArray  # [episodes], values of Mode
    seeds: npt.NDArray[np.uint64]  # [episodes]
    episodes: IntArray  # [episodes], numbers within their runs
    runs: IntArray  # [episodes], which of the given runs
    columns: dict[str, npt.NDArray[Any]] = field(default_factory=dict)  # [steps, …] of further fields of Step
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

    def select(self, keep: npt.NDArray[np.bool_]) -> EpisodeArrays:
        """Return some of the episodes: those for which `keep` says so."""
        counts = np.diff(self.offsets)
        rows = np.repeat(keep, counts)
        fields: dict[str, Any] = {name: getattr(self, name)[rows] for name in OF_STEP}
        fields |= {name: getattr(self, name)[keep] for name in (*OF_EPISODE, "goals", "episodes", "runs")}
        return EpisodeArrays(
            **fields,
            images=None if self.images is None else self.images[rows],
            offsets=offsets_of(counts[keep]),
            columns={name: column[rows] for name, column in self.columns.items()},
            left_out=self.left_out,
        )


def offsets_of(counts: Sequence[int] | IntArray) -> IntArray:
    """Return where episodes of so many steps begin, and where the last ends."""
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def episodes_to_arrays(
    episodes: Sequence[Episode], runs: Sequence[int] | None = None, *, images: bool = False, columns: Sequence[str] = ()
) -> EpisodeArrays:
    """Return episodes in memory as arrays; `runs` says which run each comes from, `columns` names further fields."""
    numbers = [0] * len(episodes) if runs is None else runs
    seen = [(seen_part(episode), run) for episode, run in zip(episodes, numbers, strict=True)]
    kept = [episode for episode, _ in seen if episode.steps]
    steps = [step for episode in kept for step in episode.steps]
    try:
        fields: dict[str, Any] = {name: _column("Step", field, steps) for name, field in OF_STEP.items()}
        fields |= {name: _column("Episode", field, kept) for name, field in OF_EPISODE.items()}
        return EpisodeArrays(
            **fields,
            goals=np.stack([_goal(episode) for episode in kept]) if kept else np.empty((0, 0)),
            images=_pictures([step.image for step in steps]) if images else None,
            offsets=offsets_of([len(episode.steps) for episode in kept]),
            episodes=np.array([episode.index for episode in kept], dtype=np.int64),
            runs=np.array([run for episode, run in seen if episode.steps], dtype=np.int64),
            columns={name: _column("Step", name, steps, gaps=True) for name in columns},
        )
    except ValueError as error:
        raise UserError(f"the episodes have different dimensions ({error}); load runs of one plant.") from error


def _goal(episode: Episode) -> FloatArray:
    size = episode.steps[0].position.size
    return episode.goal if episode.goal.size == size else np.full(size, np.nan)


def _column(message: str, name: str, records: Sequence[Any], gaps: bool = False) -> npt.NDArray[Any]:
    """Return a field of all records, of the type that it has in its message where it is made of numbers there."""
    values = [getattr(record, name) for record in records]
    try:
        kind = prefix_dtype(message, {}, name)[name]
    except (ValueError, KeyError):
        return np.array(values)
    if values and isinstance(values[0], str):
        return np.array(values)
    if not kind.shape:
        return np.array(values, dtype=kind)
    return _stacked([vector[None] for vector in values], gaps) if values else np.empty((0, 0))


def _stacked(parts: list[npt.NDArray[Any]], gaps: bool) -> npt.NDArray[Any]:
    """Return matrices one below the other; with `gaps`, those without columns become rows of NaN."""
    width = max(part.shape[1] for part in parts) if gaps else 0
    return np.concatenate([part if part.shape[1] else np.full((len(part), width), np.nan) for part in parts])


def _pictures(images: list[Picture | None]) -> Picture | None:
    present = [image for image in images if image is not None]
    if not present:
        return None
    if len(present) != len(images):
        raise UserError(f"{len(images) - len(present)} of {len(images)} steps have no image; load without images.")
    return _end_to_end([image[None] for image in present])


def _end_to_end(groups: Sequence[Picture]) -> Picture:
    """Return groups of pictures as one array; none changes its type for that."""
    kinds = {str(PictureFormat.of(group[0])): None for group in groups}
    if len(kinds) > 1:
        raise UserError(f"the steps have pictures of different formats: {', '.join(kinds)}; load their runs apart.")
    return np.concatenate(groups)


def join(parts: Sequence[EpisodeArrays], places: Sequence[IntArray]) -> EpisodeArrays:
    """Return several groups of episodes, none of them empty, as one; `places` says where each episode goes."""
    place = np.concatenate(places)
    order = np.argsort(place, kind="stable")
    counts = np.concatenate([np.diff(part.offsets) for part in parts])
    rows = np.argsort(np.repeat(place, counts), kind="stable")
    images = [part.images for part in parts if part.images is not None]
    if images and len(images) < len(parts):
        raise UserError("some episodes have images and some have none; load them apart or without images.")

    def joined(name: str, order: IntArray) -> npt.NDArray[Any]:
        return np.concatenate([getattr(part, name) for part in parts])[order]

    fields: dict[str, Any] = {name: joined(name, rows) for name in OF_STEP}
    fields |= {name: joined(name, order) for name in (*OF_EPISODE, "goals", "episodes", "runs")}
    return EpisodeArrays(
        **fields,
        images=_end_to_end(images)[rows] if images else None,
        offsets=offsets_of(counts[order]),
        columns={name: _stacked([part.columns[name] for part in parts], True)[rows] for name in parts[0].columns},
    )
