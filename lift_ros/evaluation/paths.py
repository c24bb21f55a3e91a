"""Where an episode went and how far from its goal it was: from what is recorded, as far as that tells."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from lift_ros.array_types import FloatArray
from lift_ros.collection.records import Episode, Outcome


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


def trajectory(episode: Episode) -> FloatArray:
    """Return the positions of an episode relative to the goal where it is known.

    Where the plant reported no positions, these are the observations as they are.
    """
    points, goal = positions(episode), goal_of(episode)
    if not len(points):
        return np.array([*(step.observation for step in episode.steps), episode.final_observation])
    return points - goal if goal.shape == points.shape[1:] else points


def distances(episode: Episode) -> FloatArray:
    """Return the distance to the goal before each step and after the last, NaN where it is unknown.

    A goal that the plant knew tells it best, then rewards, which are −distance after the step, then hindsight.
    """
    points = positions(episode)
    rewards = [step.reward for step in episode.steps]
    goal = episode.goal if episode.goal.size or np.isfinite(rewards).all() else goal_of(episode)
    if len(points) and goal.shape == points.shape[1:]:
        return np.asarray(np.linalg.norm(points - goal, axis=1))
    return np.array([math.nan, *(-reward for reward in rewards)])


def evenly(episodes: Sequence[Episode], limit: int) -> list[Episode]:
    """Return at most so many episodes, evenly chosen."""
    chosen = np.unique(np.linspace(0, len(episodes) - 1, min(len(episodes), limit)).round().astype(int))
    return [episodes[index] for index in chosen]
