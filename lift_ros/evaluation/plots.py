"""Plots of trajectories, distances, shortcuts, convergence and expertness as image files, and what figures share."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import astuple
from pathlib import Path
from typing import Any

import numpy as np

from lift_ros.array_types import FloatArray
from lift_ros.bags.contents import seen_part
from lift_ros.collection.records import Episode, Source
from lift_ros.errors import UserError
from lift_ros.evaluation.convergence import Convergence, Expertness, quartiles
from lift_ros.evaluation.foresight import Foresight
from lift_ros.evaluation.paths import distances, evenly, goal_of, trajectory

DOTS_PER_INCH = 150
LOGGED, AUGMENTED = "#1f77b4", "#d62728"
NAMES = {LOGGED: "logged step", AUGMENTED: "augmented step"}
EPISODE_LIMIT = 60  # more lines than that hide each other
AXES_LIMIT = 5  # ten projections; beyond that nobody looks
PANEL = 3.2  # inches
COLOURS = {"logging policy": "#7f7f7f", "direct": "#2ca02c", "secant": "#bcbd22", "optimal": "#9467bd"}
MODEL_COLOURS = ("#d62728", "#1f77b4", "#ff7f0e", "#17becf", "#8c564b", "#e377c2")


def make_figure(width: float, height: float) -> Any:
    """Return an empty matplotlib figure of so many inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), dpi=DOTS_PER_INCH, layout="constrained")


def save_figure(figure: Any, path: str | Path) -> None:
    """Write a figure; the file's ending chooses the format."""
    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path)
    except (OSError, ValueError) as error:  # ValueError tells which endings matplotlib knows
        raise UserError(f"cannot write {path}: {error}; choose a known ending and a folder you may write to") from error


def draw_quartiles(axes: Any, curves: Mapping[str, FloatArray], colours: Mapping[str, str], threshold: float) -> None:
    """Draw the median distance over steps with a band between the quartiles, one curve of shape (3, steps) each."""
    for name, (low, middle, high) in curves.items():
        steps = np.arange(len(middle))
        axes.fill_between(steps, low, high, color=colours[name], alpha=0.15, linewidth=0)
        axes.plot(steps, middle, color=colours[name], label=name, linewidth=1.6)
    axes.axhline(threshold, color="black", linewidth=0.8, linestyle=":", label=f"θ = {threshold:g}")
    axes.set(xlabel="step", ylabel="distance to the goal", yscale="log")


def draw_steps(axes: Any, episodes: Sequence[Episode], lines: Sequence[FloatArray]) -> None:
    """Draw each step of each episode as a line from one point to the next, in the colour of who made it."""
    from matplotlib.collections import LineCollection

    segments = np.concatenate([np.stack([line[:-1], line[1:]], axis=1) for line in lines])
    augmented = np.array([step.source is Source.AUGMENTOR for episode in episodes for step in episode.steps])
    for colour, chosen in ((LOGGED, ~augmented), (AUGMENTED, augmented)):
        if chosen.any():
            axes.add_collection(
                LineCollection(segments[chosen], colors=colour, linewidths=0.9, alpha=0.7, label=NAMES[colour])
            )
    axes.autoscale_view()


def plot_trajectories(episodes: Sequence[Episode], path: str | Path, title: str = "Trajectories") -> None:
    """Draw where the episodes went: in the plane, as pairwise projections above, over steps on a line."""
    shown = _choose(episodes)
    lines = [trajectory(episode) for episode in shown]
    sizes = {line.shape[1] for line in lines}
    if len(sizes) > 1:
        raise UserError(f"the episodes have positions of {sorted(sizes)} entries; plot runs of one plant at a time")
    size = sizes.pop()
    relative = all(goal_of(episode).size == size for episode in shown)
    names = [f"axis {axis + 1}{', relative to the goal' if relative else ''}" for axis in range(size)]
    if size == 1:
        lines = [np.c_[np.arange(len(line)), line] for line in lines]
        names.insert(0, "step")
    pairs = list(itertools.combinations(range(min(len(names), AXES_LIMIT)), 2))
    columns = math.ceil(math.sqrt(len(pairs)))
    rows = math.ceil(len(pairs) / columns)
    scale = PANEL if len(pairs) > 1 else 1.6 * PANEL
    figure = make_figure(scale * columns, scale * rows)
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for panel in panels[len(pairs) :]:
        panel.set_visible(False)
    for panel, pair in zip(panels, pairs, strict=False):
        flat = [line[:, pair] for line in lines]
        draw_steps(panel, shown, flat)
        panel.set(xlabel=names[pair[0]], ylabel=names[pair[1]])
        if size > 1:
            panel.scatter(*np.array([line[0] for line in flat]).T, s=8, color="black", zorder=3, label="start")
            if relative:
                panel.scatter(0.0, 0.0, s=50, marker="*", color="#2ca02c", zorder=4, label="goal")
            panel.set_aspect("equal", adjustable="datalim")
    note = f" (the first {AXES_LIMIT} of {size} axes)" if size > AXES_LIMIT else ""
    figure.suptitle(f"{title}{note}{_count(shown, episodes)}", fontsize=10)
    panels[0].legend(fontsize=7)
    save_figure(figure, path)


def plot_distances(episodes: Sequence[Episode], path: str | Path, title: str = "Distance over steps") -> None:
    """Draw the distance to the goal over the steps of each episode, on a logarithmic scale."""
    known = [episode for episode in episodes if np.isfinite(distances(episode)).any()]
    if episodes and not known:
        raise UserError("no episode tells its distance to the goal: none has a goal, a reward or reached its end")
    shown = _choose(known)
    figure, axes = _one_panel()
    lines = [np.c_[np.arange(len(values)), values] for values in map(distances, shown)]
    draw_steps(axes, shown, lines)
    axes.set(xlabel="step", ylabel="distance to the goal")
    axes.set_title(f"{title}{_count(shown, episodes)}", fontsize=10)
    if any((line[:, 1] > 0).any() for line in lines):
        axes.set_yscale("log")
    axes.legend(fontsize=8)
    save_figure(figure, path)


def plot_convergence(path: str | Path, results: Mapping[str, Convergence], threshold: float, title: str) -> None:
    """Draw the median distance to the goal over steps with a band between the quartiles, one curve per policy."""
    free = itertools.cycle(MODEL_COLOURS)
    colours = {name: COLOURS.get(name) or next(free) for name in results}
    figure, axes = _one_panel()
    curves = {name: quartiles(result.distances) for name, result in results.items()}
    draw_quartiles(axes, curves, colours, threshold)
    axes.set_title(title)
    axes.legend(fontsize=8)
    save_figure(figure, path)


def plot_foresight(path: str | Path, results: Mapping[str, Foresight], threshold: float | None, title: str) -> None:
    """Draw what bags alone tell: predicted convergence on the left, errors of actions on the right, as far as known."""
    colours = dict(zip(results, itertools.cycle(MODEL_COLOURS), strict=False))
    figure = make_figure(10.0, 4.2)
    left, right = figure.subplots(1, 2)
    predictions = {name: result.prediction for name, result in results.items() if result.prediction is not None}
    curves = {name: quartiles(prediction.convergence.distances) for name, prediction in predictions.items()}
    if curves and threshold is not None:
        draw_quartiles(left, curves, colours, threshold)
        left.set_title("predicted convergence", fontsize=10)
        left.legend(fontsize=8)
    else:
        left.text(0.5, 0.5, "no twin can be run", ha="center", transform=left.transAxes)
    for name, result in results.items():
        if result.comparison is not None:
            right.hist(result.comparison.error, bins=20, histtype="step", color=colours[name], label=name)
    right.set(xlabel="error of the action / λ", ylabel="steps")
    right.set_title("actions beside the best shortcuts", fontsize=10)
    figure.suptitle(title, fontsize=10)
    save_figure(figure, path)


def plot_expertness(path: str | Path, results: Sequence[Expertness], title: str) -> None:
    """Draw the curve of what was measured."""
    sizes, means, low, high, reached = zip(*map(astuple, results), strict=True)
    figure = make_figure(5.6, 4.0)
    axes = figure.subplots()
    axes.fill_between(sizes, low, high, alpha=0.2, linewidth=0, label="quartiles")
    axes.plot(sizes, means, marker="o", label="mean")
    for size, mean, share in zip(sizes, means, reached, strict=True):
        if share < 1:
            axes.annotate(f"{share:.0%} reached", (size, mean), fontsize=7)
    axes.set(xscale="log", yscale="log", xlabel="initial step size l", ylabel="steps per episode")
    axes.set_xticks(sizes, [f"{size:g}" for size in sizes], minor=False)
    axes.set_xticks([], minor=True)
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter("{x:g}")
    axes.set_title(title, fontsize=10)
    axes.legend(fontsize=8)
    save_figure(figure, path)


def plot_shortcuts(path: str | Path, heatmap: FloatArray, by_length: Sequence[float], title: str = "") -> None:
    """Draw the C-heatmap, and beside it which share of pairs of each length Algorithm 1 takes."""
    figure = make_figure(10.0, 4.2)
    left, right = figure.subplots(1, 2)
    draw_heatmap(figure, left, heatmap)
    right.plot(np.arange(1, len(by_length)), by_length[1:])
    right.set(xlabel="length j − i", ylabel="share of pairs that are shortcuts", ylim=(0, 1.02))
    figure.suptitle(title, fontsize=10)
    save_figure(figure, path)


def draw_heatmap(figure: Any, axes: Any, heatmap: FloatArray) -> None:
    """Draw the largest C that admits a shortcut over its start i and its length j − i into matplotlib axes."""
    known = np.isfinite(heatmap)
    rows, columns = (np.flatnonzero(known.any(axis=axis)) for axis in (1, 0))
    axes.set(xlabel="start i", ylabel="length j − i")
    if not len(rows):
        axes.text(0.5, 0.5, "no shortcut beyond the direct successor", ha="center", transform=axes.transAxes)
        return
    values = np.ma.masked_invalid(heatmap[: rows[-1] + 1, : columns[-1] + 1])
    image = axes.imshow(values, origin="lower", aspect="auto", cmap="viridis", interpolation="nearest")
    figure.colorbar(image, ax=axes, label="largest C that admits the shortcut")


def _one_panel() -> tuple[Any, Any]:
    figure = make_figure(6.4, 4.2)
    return figure, figure.subplots()


def _choose(episodes: Sequence[Episode]) -> list[Episode]:
    """Return the episodes to draw: with steps, and evenly chosen where there are many."""
    moved = [part for part in map(seen_part, episodes) if part.steps]
    if not moved:
        raise UserError("there is no episode with a step to plot")
    return evenly(moved, EPISODE_LIMIT)


def _count(shown: Sequence[Episode], episodes: Sequence[Episode]) -> str:
    return f", {len(shown)} of {len(episodes)} episodes" if len(shown) < len(episodes) else ""
