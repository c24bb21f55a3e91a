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
from lift_ros.collection.records import Episode
from lift_ros.errors import UserError
from lift_ros.evaluation.figures import draw_steps, write_figure
from lift_ros.evaluation.paths import distances, evenly, goal_of, trajectory

EPISODE_LIMIT = 60  # more lines than that hide each other
AXES_LIMIT = 5  # ten projections; beyond that nobody looks
PANEL = 3.2  # inches


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
            draw_steps(panels[0], shown, [np.c_[np.arange(len(t)), t] for t in map(trajectory, shown)])
            panels[0].set(xlabel="step", ylabel=_axis_name(0, relative))
        for panel, pair in zip(panels, pairs, strict=False):
            draw_steps(panel, shown, [trajectory(episode)[:, pair] for episode in shown])
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
        draw_steps(axes, shown, lines)
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
    return evenly(moved, EPISODE_LIMIT)


def _count(shown: Sequence[Episode], episodes: Sequence[Episode]) -> str:
    return f", {len(shown)} of {len(episodes)} episodes" if len(shown) < len(episodes) else ""


def _axis_name(axis: int, relative: bool) -> str:
    return f"axis {axis + 1}, relative to the goal" if relative else f"axis {axis + 1}"


def _mark_ends(axes: Any, lines: Sequence[FloatArray], relative: bool) -> None:
    starts = np.array([line[0] for line in lines])
    axes.scatter(*starts.T, s=8, color="black", zorder=3, label="start")
    if relative:
        axes.scatter(0.0, 0.0, s=50, marker="*", color="#2ca02c", zorder=4, label="goal")
