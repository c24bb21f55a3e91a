"""Pictures along an episode: which episodes and which of their pictures are shown, and how every encoding looks."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lift_ros.array_types import Float32Array, Picture
from lift_ros.bags.contents import seen_part
from lift_ros.bags.reader import RunReader
from lift_ros.collection.records import Episode, Outcome
from lift_ros.evaluation.paths import distances, evenly, moved_parts
from lift_ros.evaluation.phases import Phase, split_phases
from lift_ros.evaluation.plots import make_figure
from lift_ros.positioning.pictures import PictureFormat

SHOWN = 6  # pictures of an episode
_PANEL = 1.6  # inches, the longer side of a picture
_WORDS = 0.42  # inches above it
# Who is shown besides the routine: the first that is there.
_OTHERS = (Phase.LEARNED_POLICY, Phase.ASSIST, Phase.LIFT_COLLECTION)


@dataclass(frozen=True)
class Frame:
    """What was seen after so many steps, and how far from the goal that was; NaN where it is unknown."""

    step: int
    picture: Picture
    distance: float = math.nan


@dataclass(frozen=True)
class Strip:
    """Pictures along one episode, the first and the last among them."""

    phase: Phase
    episode: int
    steps: int
    frames: Sequence[Frame]
    rendered: bool = False  # afterwards, not recorded

    @property
    def format(self) -> PictureFormat:
        """Size and encoding of the pictures."""
        return PictureFormat.of(self.frames[0].picture)


@dataclass(frozen=True)
class PictureSummary:
    """How many pictures of one format a run holds, and how large they are."""

    format: str
    count: int
    bytes: int  # of all, before compression

    def __str__(self) -> str:
        return f"{self.count} of {self.format}, {self.bytes / self.count / 1e3:.3g} kB each, {self.bytes / 1e6:.3g} MB"


def summarise_pictures(found: Mapping[PictureFormat, int]) -> list[PictureSummary]:
    """Sum up the pictures of each format."""
    sizes = {kind: math.prod(kind.shape) * kind.dtype.itemsize for kind in found}
    return [PictureSummary(str(kind), count, count * sizes[kind]) for kind, count in found.items()]


def note_pictures(episode: Episode, found: Counter[PictureFormat]) -> bool:
    """Count the pictures of an episode by format; tell whether it has one for everything that was seen."""
    part = seen_part(episode)
    pictures = [*(step.image for step in part.steps), part.final_image]
    found.update(PictureFormat.of(picture) for picture in pictures if picture is not None)
    return bool(part.steps) and all(picture is not None for picture in pictures)


def choose_episodes(episodes: Sequence[Episode]) -> list[tuple[Phase, Episode]]:
    """Return an episode of the routine and one of who came after it; of each the one of middle length that arrived."""
    phases = split_phases(moved_parts(episodes))
    wanted = [Phase.LOGGING_POLICY, *(phase for phase in _OTHERS if phase in phases)]
    return [(phase, _typical(phases[phase])) for phase in wanted[:2] if phase in phases]


def _typical(episodes: Sequence[Episode]) -> Episode:
    arrived = [episode for episode in episodes if episode.outcome is Outcome.REACHED] or episodes
    return sorted(arrived, key=lambda episode: len(episode.steps))[len(arrived) // 2]


def recorded_strips(reader: RunReader, episodes: Sequence[Episode]) -> list[Strip]:
    """Return strips of a run whose `episodes`, all of which have pictures, were read without them."""
    return [_recorded_strip(reader, phase, episode) for phase, episode in choose_episodes(episodes)]


def _recorded_strip(reader: RunReader, phase: Phase, episode: Episode) -> Strip:
    seen = seen_part(reader.episode(episode.index))
    pictures = [*(step.image for step in seen.steps), seen.final_image]
    return make_strip(phase, episode, {step: picture for step, picture in enumerate(pictures) if picture is not None})


def make_strip(
    phase: Phase, episode: Episode, pictures: Mapping[int, Picture], count: int = SHOWN, *, rendered: bool = False
) -> Strip:
    """Choose some of an episode's pictures, which are given by the number of steps made before them."""
    far = distances(episode)
    frames = [Frame(step, pictures[step], float(far[step])) for step in evenly(sorted(pictures), count)]
    return Strip(phase, episode.index, len(episode.steps), frames, rendered)


def as_shown(pictures: Sequence[Picture]) -> list[Float32Array]:
    """Return pictures with values from 0 to 1 on one scale: zero of floats is mid grey, the largest of 16 bits is 1."""
    kind = pictures[0].dtype
    if kind.kind == "f":
        largest = max(float(np.abs(picture).max()) for picture in pictures) or 1.0
        return [(0.5 + picture.astype(np.float32) / np.float32(2 * largest)).clip(0, 1) for picture in pictures]
    largest = 255 if kind == np.uint8 else max(int(picture.max()) for picture in pictures) or 1
    return [picture.astype(np.float32) / np.float32(largest) for picture in pictures]


def draw_strip(strip: Strip, unit: str = "", title: str = "") -> Any:
    """Draw pictures side by side, each with its step and its distance to the goal where that is known."""
    kind = strip.format
    longer = max(kind.height, kind.width)
    width, height = _PANEL * kind.width / longer, _PANEL * kind.height / longer
    across = len(strip.frames) * max(width, _PANEL / 2)
    figure = make_figure(across, height + _WORDS + (0.3 if title else 0.0), title)
    panels = figure.subplots(1, len(strip.frames), squeeze=False).ravel()
    for axes, frame, shown in zip(panels, strip.frames, as_shown([f.picture for f in strip.frames]), strict=True):
        axes.imshow(shown, cmap="gray", vmin=0, vmax=1, interpolation="nearest")
        words = f"step {frame.step}"
        if math.isfinite(frame.distance):
            words += f"\n{frame.distance:.3g} {unit}".rstrip()
        axes.set_title(words, fontsize=8)
        axes.axis("off")
    return figure
