"""Plots of recorded episodes: trajectories and distances, logged steps blue and augmented steps red."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lift_ros.array_types import FloatArray
from lift_ros.bags.seen import seen_part
from lift_ros.collection.records import Episode, Outcome, Source
from lift_ros.errors import UserError
from lift_ros.evaluation.figures import write_figure

LOGGED, AUGMENTED = "#1f77b4", "#d62728"
NAMES = {LOGGED: "logged step", AUGMENTED: "augmented step"}
EPISODE_LIMIT = 60  # more lines than that hide each other
AXES_LIMIT = 5  # ten projections; beyond that nobody looks
PANEL = 3.2  # inches


def goal_of(episode: Episode) -> FloatArray:
    """Return s_W where the plant knew it, or in hindsight where the episode ended at it; else empty."""
    if episode.goal.size:
        return episode.goal
    return episode.final_position if episode.outcome is Outcome.REACHED else np.empty(0)


def trajectory(episode: Episode) -> FloatArray:
    """Return the positions of an episode, last one included, relative to the goal where it is known.

    Where the plant reported no positions, these are the observations as they are.
    """
    if not episode.final_position.size or any(not step.position.size for step in episode.steps):
        return np.array([*(step.observation for step in episode.steps), episode.final_observation])
    points = np.array([*(step.position for step in episode.steps), episode.final_position])
    goal = goal_of(episode)
    return points - goal if goal.shape == points.shape[1:] else points


def distances(episode: Episode) -> FloatArray:
    """Return the distance to the goal at each observation, NaN where it is unknown.

    Without positions it follows from the rewards, which are −distance after the step.
    """
    goal = goal_of(episode)
    if goal.size and episode.final_position.size == goal.size and all(s.position.size for s in episode.steps):
        return np.asarray(np.linalg.norm(trajectory(episode), axis=1))
    return np.array([math.nan, *(-step.reward for step in episode.steps)])


def plot_trajectories(episodes: Sequence[Episode], path: str | Path, title: str = "") -> None:
    """Draw where the episodes went: in the plane, as pairwise projections above, over steps on a line."""
    shown = _choose(episodes)
    sizes = {trajectory(episode).shape[1] for episode in shown}
    if len(sizes) > 1:
        raise UserError(f"the episodes have positions of {sorted(sizes)} entries; plot runs of one plant at a time")
    size = sizes.pop()
    relative = all(goal_of(episode).size == size for episode in shown)
    pairs = list(itertools.combinations(range(min(size, AXES_LIMIT)), 2))
    columns = max(1, math.ceil(math.sqrt(len(pairs))))
    rows = max(1, math.ceil(len(pairs) / columns))

    def draw(figure: Any) -> None:
        panels = figure.subplots(rows, columns, squeeze=False).ravel()
        for panel in panels[max(1, len(pairs)) :]:
            panel.set_visible(False)
        if not pairs:
            _draw_lines(panels[0], shown, [np.c_[np.arange(len(t)), t] for t in map(trajectory, shown)])
            panels[0].set(xlabel="step", ylabel=_axis_name(0, relative))
        for panel, pair in zip(panels, pairs, strict=False):
            _draw_lines(panel, shown, [trajectory(episode)[:, pair] for episode in shown])
            _mark_ends(panel, [trajectory(episode)[:, pair] for episode in shown], relative)
            panel.set(xlabel=_axis_name(pair[0], relative), ylabel=_axis_name(pair[1], relative))
            panel.set_aspect("equal", adjustable="datalim")
        note = f" (the first {AXES_LIMIT} of {size} axes)" if size > AXES_LIMIT else ""
        figure.suptitle(f"{title or 'Trajectories'}{note}{_count(shown, episodes)}", fontsize=10)
        panels[0].legend(fontsize=7)

    scale = 1.0 if len(pairs) > 1 else 1.6
    write_figure(path, (PANEL * columns * scale, PANEL * rows * scale), draw)


def plot_distances(episodes: Sequence[Episode], path: str | Path, title: str = "") -> None:
    """Draw the distance to the goal over the steps of each episode, on a logarithmic scale."""
    known = [episode for episode in episodes if np.isfinite(distances(episode)).any()]
    if episodes and not known:
        raise UserError("no episode tells its distance to the goal: none has a goal, a reward or reached its end")
    shown = _choose(known)

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        lines = [np.c_[np.arange(len(values)), values] for values in map(distances, shown)]
        _draw_lines(axes, shown, lines)
        axes.set(xlabel="step", ylabel="distance to the goal")
        axes.set_title(f"{title or 'Distance over steps'}{_count(shown, episodes)}", fontsize=10)
        if any((line[:, 1] > 0).any() for line in lines):
            axes.set_yscale("log")
        axes.legend(fontsize=8)

    write_figure(path, (6.4, 4.2), draw)


def _choose(episodes: Sequence[Episode]) -> list[Episode]:
    """Return the episodes to draw: with steps, and evenly chosen where there are many."""
    moved = [part for part in map(seen_part, episodes) if part.steps]
    if not moved:
        raise UserError("there is no episode with a step to plot")
    chosen = np.unique(np.linspace(0, len(moved) - 1, min(len(moved), EPISODE_LIMIT)).round().astype(int))
    return [moved[index] for index in chosen]


def _count(shown: Sequence[Episode], episodes: Sequence[Episode]) -> str:
    return f", {len(shown)} of {len(episodes)} episodes" if len(shown) < len(episodes) else ""


def _axis_name(axis: int, relative: bool) -> str:
    return f"axis {axis + 1}, relative to the goal" if relative else f"axis {axis + 1}"


def _draw_lines(axes: Any, episodes: Sequence[Episode], lines: Sequence[FloatArray]) -> None:
    """Draw each step of each episode as a line from one point to the next, in the colour of who made it."""
    from matplotlib.collections import LineCollection

    segments = np.concatenate([np.stack([line[:-1], line[1:]], axis=1) for line in lines])
    sources = [step.source for episode in episodes for step in episode.steps]
    augmented = np.array([source is Source.AUGMENTOR for source in sources])
    for colour, chosen in ((LOGGED, ~augmented), (AUGMENTED, augmented)):
        if chosen.any():
            axes.add_collection(
                LineCollection(segments[chosen], colors=colour, linewidths=0.9, alpha=0.7, label=NAMES[colour])
            )
    axes.autoscale_view()


def _mark_ends(axes: Any, lines: Sequence[FloatArray], relative: bool) -> None:
    starts = np.array([line[0] for line in lines])
    axes.scatter(*starts.T, s=8, color="black", zorder=3, label="start")
    if relative:
        axes.scatter(0.0, 0.0, s=50, marker="*", color="#2ca02c", zorder=4, label="goal")
