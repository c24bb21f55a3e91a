"""Where an episode went and how far from its goal it was: from what is recorded, as far as that tells."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from lift_ros.array_types import FloatArray
from lift_ros.bags.contents import seen_part
from lift_ros.collection.records import Episode, Outcome
from lift_ros.errors import UserError
from lift_ros.scenario import Units

Entry = TypeVar("Entry")


def positions(episode: Episode) -> FloatArray:
    """Return the positions of an episode, last one included; no rows where the plant did not report them all."""
    points = [*(step.position for step in episode.steps), episode.final_position]
    known = points[0].size and all(point.size == points[0].size for point in points)
    return np.stack(points) if known else np.empty((0, 0))


def goal_of(episode: Episode) -> FloatArray:
    """Return s_W where the plant knew it, or in hindsight where the episode ended at it; else empty."""
    if episode.goal.size:
        return episode.goal
    return episode.final_position if episode.outcome is Outcome.REACHED else np.empty(0)


@dataclass(frozen=True)
class Paths:
    """Where episodes went, as lines that may share axes: all of one kind, and from one origin."""

    episodes: list[Episode]  # up to what was seen last
    lines: list[FloatArray]  # one per episode; a row before each step and one after the last
    kind: str  # what the lines are, in words
    axes: list[str]  # names of the columns, with units
    relative: bool  # the goal is the origin
    left_out: int  # episodes that moved, but have no line of this kind


def moved_parts(episodes: Sequence[Episode]) -> list[Episode]:
    """Return the episodes that have steps, each up to what was seen last."""
    return [part for part in map(seen_part, episodes) if part.steps]


def find_paths(episodes: Sequence[Episode], units: Units | None = None) -> Paths:
    """Return the paths that tell most: offsets from the goal, else positions, else observations as they are."""
    units = units or Units()
    moved = moved_parts(episodes)
    offsets = [(episode, line) for episode in moved if len(line := offset_from_goal(episode))]
    placed = [(episode, line) for episode in moved if len(line := positions(episode))]
    if offsets or placed:
        chosen, kind, word = offsets or placed, "offset from the goal" if offsets else "position", "axis"
        names = [units.length] * chosen[0][1].shape[1]
    else:
        chosen, kind, word = [(episode, _observations(episode)) for episode in moved], "observation", "entry"
        names = units.observations
    sizes = sorted({line.shape[1] for _, line in chosen})
    if len(sizes) > 1:
        raise UserError(f"the episodes have positions of {sizes} entries; plot runs of one plant at a time")
    size = sizes[0] if sizes else 0
    axes = [with_unit(f"{word} {k + 1}", names[k] if k < len(names) else "") for k in range(size)]
    drawn = [episode for episode, _ in chosen]
    return Paths(drawn, [line for _, line in chosen], kind, axes, bool(offsets), len(moved) - len(drawn))


def offset_from_goal(episode: Episode) -> FloatArray:
    """Return the positions of an episode relative to its goal; no rows where either is unknown."""
    points, goal = positions(episode), goal_of(episode)
    return points - goal if len(points) and goal.shape == points.shape[1:] else np.empty((0, 0))


def _observations(episode: Episode) -> FloatArray:
    return np.array([*(step.observation for step in episode.steps), episode.final_observation])


def with_unit(name: str, unit: str) -> str:
    """Return the label of an axis or a column."""
    return f"{name} [{unit}]" if unit else name


def distances(episode: Episode) -> FloatArray:
    """Return the distance to the goal before each step and after the last, NaN where it is unknown.

    A goal that the plant knew tells it best, then rewards, if they are −distance after the step, then hindsight.
    """
    points = positions(episode)
    rewards = [step.reward for step in episode.steps]
    goal = episode.goal if episode.goal.size or np.isfinite(rewards).all() else goal_of(episode)
    if len(points) and goal.shape == points.shape[1:]:
        return np.asarray(np.linalg.norm(points - goal, axis=1))
    if any(reward > 0 for reward in rewards):
        return np.full(len(rewards) + 1, math.nan)  # whatever was rewarded is no distance
    return np.array([math.nan, *(-reward for reward in rewards)])


def evenly(entries: Sequence[Entry], limit: int) -> list[Entry]:
    """Return at most so many entries, evenly chosen."""
    chosen = np.unique(np.linspace(0, len(entries) - 1, min(len(entries), limit)).round().astype(int))
    return [entries[index] for index in chosen]
