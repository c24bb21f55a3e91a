"""Plots of trajectories, distances, shortcuts, convergence and expertness as image files, and what figures share."""

from __future__ import annotations

import itertools
import math
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple
from pathlib import Path
from typing import Any

import numpy as np

from lift_ros.array_types import FloatArray, IntArray
from lift_ros.collection.records import Episode, Source
from lift_ros.errors import UserError
from lift_ros.evaluation.convergence import DEFAULT_STEPS, Convergence, Expertness, quartiles
from lift_ros.evaluation.foresight import Foresight
from lift_ros.evaluation.paths import distances, evenly, find_paths, moved_parts, with_unit
from lift_ros.scenario import Units

DOTS_PER_INCH = 150
LOGGED, AUGMENTED = "#2f86c9", "#e5393b"  # to be seen on light and dark pages
NAMES = {LOGGED: "logged step", AUGMENTED: "augmented step"}
EPISODE_LIMIT = 60  # more lines than that hide each other
AXES_LIMIT = 5  # ten projections; beyond that nobody looks
PANEL = 3.2  # inches
COLOURS = {"logging policy": "#7f7f7f", "direct": "#2ca02c", "secant": "#bcbd22", "optimal": "#9467bd"}
MODEL_COLOURS = ("#d62728", "#1f77b4", "#ff7f0e", "#17becf", "#8c564b", "#e377c2")


FLOOR = 0.1  # shorter distances are drawn at this share of the threshold: nobody asks how much less than arrived
UNKNOWN_FLOOR = 1e-3  # … or of the longest distance, where no threshold is known
ARRIVED_SHARE = 0.9  # of those who arrive, whose arrival is to be seen
BENT = 6  # where the slowest takes so many times the steps of the fastest, the axis of steps is bent
STEP_TICKS = [0, *(digit * 10**power for power in range(6) for digit in (1, 2, 5))]
NOTHING_TO_PLOT = "there is no episode with a step to plot"
LETTERS_PER_INCH = 13  # of a title
_BACK, _INK, _LINES = "#111827", "#e5e7eb", "#4b5563"
_DARK: Any = {
    **dict.fromkeys(("figure.facecolor", "axes.facecolor", "legend.facecolor"), _BACK),
    **dict.fromkeys(("text.color", "axes.labelcolor", "axes.titlecolor", "xtick.color", "ytick.color"), _INK),
    **dict.fromkeys(("axes.edgecolor", "grid.color", "legend.edgecolor"), _LINES),
}


@contextmanager
def theme(*, dark: bool) -> Iterator[None]:
    """Draw the figures that are made inside for a dark page, or for a light one."""
    import matplotlib

    with matplotlib.rc_context(_DARK if dark else {}):
        yield


def ink() -> str:
    """Return the colour of text, for what else must stand out of the page."""
    import matplotlib

    return str(matplotlib.rcParams["text.color"])


def make_figure(width: float, height: float, title: str = "") -> Any:
    """Return an empty matplotlib figure of so many inches; a long title is folded."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=DOTS_PER_INCH, layout="constrained")
    if title:
        figure.suptitle(textwrap.fill(title, int(width * LETTERS_PER_INCH)), fontsize=10)
    return figure


def save_figure(figure: Any, path: str | Path) -> None:
    """Write a figure; the file's ending chooses the format."""
    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path)
    except (OSError, ValueError) as error:  # ValueError tells which endings matplotlib knows
        raise UserError(f"cannot write {path}: {error}; choose a known ending and a folder you may write to") from error


def draw_quartiles(
    axes: Any, curves: Mapping[str, FloatArray], colours: Mapping[str, str], threshold: float | None, unit: str = ""
) -> None:
    """Draw the median distance over steps with a band between the quartiles, one curve of shape (3, steps) each."""
    floor = distance_floor(curves.values(), threshold)
    for name, curve in curves.items():
        low, middle, high = np.maximum(curve, floor)
        steps = np.arange(len(middle))
        axes.fill_between(steps, low, high, color=colours[name], alpha=0.15, linewidth=0)
        axes.plot(steps, middle, color=colours[name], label=name, linewidth=1.6)
    draw_threshold(axes, threshold, unit)
    axes.set(xlabel="step", ylabel=with_unit("distance to the goal", unit), yscale="log")


def draw_threshold(axes: Any, threshold: float | None, unit: str = "") -> None:
    """Draw the distance at which an episode has arrived, where it is known."""
    if threshold is not None:
        label = f"θ = {threshold:g} {unit}".rstrip()
        axes.axhline(threshold, color=ink(), linewidth=0.8, linestyle=":", label=label)


def distance_floor(values: Iterable[FloatArray], threshold: float | None) -> float:
    """Return below which distance a logarithmic axis need not reach."""
    if threshold is not None:
        return FLOOR * threshold
    longest = max((float(np.max(value, initial=0.0, where=np.isfinite(value))) for value in values), default=0.0)
    return UNKNOWN_FLOOR * longest


def typical_arrival(steps: FloatArray) -> float:
    """Return after how many steps nearly all of those have arrived who do."""
    return float(np.quantile(steps, ARRIVED_SHARE, method="higher"))


def scale_steps(axes: Any, arrivals: Sequence[float]) -> None:
    """End the axis of steps where the slowest has arrived, and bend it where the fastest would be too small to see."""
    last = 1.05 * max(arrivals)
    if last > BENT * min(arrivals):
        bend = 2 * max(1.0, min(arrivals))
        axes.set_xscale("symlog", linthresh=bend)
        axes.set_xlabel(f"step (logarithmic beyond {bend:.0f})")
        _plain_ticks(axes.xaxis, 0, last)
    axes.set_xlim(0, last)


def scale_counts(axes: Any, counts: IntArray, *, bent: bool) -> None:
    """Begin the upright axis of counts at 0, or make it logarithmic around them."""
    low, high = (0.0 if not bent or counts.min() < 1 else counts.min() / 1.3), counts.max() * (1.3 if bent else 1.05)
    if bent:
        axes.set_yscale("symlog", linthresh=1)
        _plain_ticks(axes.yaxis, low, high)
    axes.set_ylim(low, high)


def _plain_ticks(axis: Any, low: float, high: float) -> None:
    """Put ticks at 1, 2, 5, 10, … where matplotlib would write powers."""
    from matplotlib.ticker import FixedLocator, NullLocator, ScalarFormatter

    axis.set_major_locator(FixedLocator([tick for tick in STEP_TICKS if low <= tick <= high]))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(ScalarFormatter())


def draw_steps(axes: Any, episodes: Sequence[Episode], lines: Sequence[FloatArray]) -> None:
    """Draw each step of each episode as a line from one point to the next, in the colour of who made it."""
    from matplotlib.collections import LineCollection

    segments = np.concatenate([np.stack([line[:-1], line[1:]], axis=1) for line in lines])
    augmented = np.array([step.source is Source.AUGMENTOR for episode in episodes for step in episode.steps])
    for colour, chosen in ((LOGGED, ~augmented), (AUGMENTED, augmented)):
        if chosen.any():
            axes.add_collection(
                LineCollection(segments[chosen], colors=colour, linewidths=1.0, alpha=0.8, label=NAMES[colour])
            )
    axes.autoscale_view()


def plot_trajectories(
    episodes: Sequence[Episode], path: str | Path, title: str = "Trajectories", units: Units | None = None
) -> None:
    """Draw where the episodes went: in the plane, as pairwise projections above, over steps on a line.

    Paths relative to the goal and absolute ones never share axes: where some goals are known, the others are left out.
    """
    found = find_paths(episodes, units)
    shown = evenly(found.episodes, EPISODE_LIMIT)
    lines = evenly(found.lines, EPISODE_LIMIT)
    if not shown:
        raise UserError(NOTHING_TO_PLOT)
    size = len(found.axes)
    names = [f"{found.kind}, {axis}" for axis in found.axes]
    if size == 1:
        lines = [np.c_[np.arange(len(line)), line] for line in lines]
        names.insert(0, "step")
    pairs = list(itertools.combinations(range(min(len(names), AXES_LIMIT)), 2))
    columns = math.ceil(math.sqrt(len(pairs)))
    rows = math.ceil(len(pairs) / columns)
    scale = PANEL if len(pairs) > 1 else 1.6 * PANEL
    notes = [f" (the first {AXES_LIMIT} of {size} axes)" if size > AXES_LIMIT else "", _count(shown, episodes)]
    if found.left_out:
        notes.append(f"; {found.left_out} without a known goal left out")
    figure = make_figure(scale * columns, scale * rows, title + "".join(notes))
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for panel in panels[len(pairs) :]:
        panel.set_visible(False)
    for panel, pair in zip(panels, pairs, strict=False):
        flat = [line[:, pair] for line in lines]
        draw_steps(panel, shown, flat)
        panel.set(xlabel=names[pair[0]], ylabel=names[pair[1]])
        if size > 1:
            panel.scatter(*np.array([line[0] for line in flat]).T, s=8, color=ink(), zorder=3, label="start")
            if found.relative:
                panel.scatter(0.0, 0.0, s=50, marker="*", color="#2ca02c", zorder=4, label="goal")
            panel.set_aspect("equal", adjustable="datalim")
    panels[0].legend(fontsize=7)
    save_figure(figure, path)


def plot_distances(
    episodes: Sequence[Episode],
    path: str | Path,
    title: str = "Distance over steps",
    *,
    threshold: float | None = None,
    unit: str = "",
) -> None:
    """Draw the distance to the goal over the steps of each episode, on a logarithmic scale."""
    moved = moved_parts(episodes)
    known = [episode for episode in moved if np.isfinite(distances(episode)).any()]
    if not moved:
        raise UserError(NOTHING_TO_PLOT)
    if not known:
        raise UserError("no episode tells its distance to the goal: none has a goal, a reward or reached its end")
    shown = evenly(known, EPISODE_LIMIT)
    figure, axes = _one_panel(title + _count(shown, episodes))
    curves = list(map(distances, shown))
    floor = distance_floor(curves, threshold)
    draw_steps(axes, shown, [np.c_[np.arange(len(values)), np.maximum(values, floor)] for values in curves])
    draw_threshold(axes, threshold, unit)
    axes.set(xlabel="step", ylabel=with_unit("distance to the goal", unit))
    if floor > 0:
        axes.set_yscale("log")
    axes.legend(fontsize=8)
    save_figure(figure, path)


def plot_convergence(
    path: str | Path, results: Mapping[str, Convergence], threshold: float, title: str, unit: str = ""
) -> None:
    """Draw the median distance to the goal over steps with a band between the quartiles, one curve per policy."""
    free = itertools.cycle(MODEL_COLOURS)
    colours = {name: COLOURS.get(name) or next(free) for name in results}
    figure, axes = _one_panel(title)
    curves = {name: quartiles(result.distances) for name, result in results.items()}
    draw_quartiles(axes, curves, colours, threshold, unit)
    scale_steps(axes, [_arrival(result) for result in results.values()])
    axes.legend(fontsize=8)
    save_figure(figure, path)


def _arrival(result: Convergence) -> float:
    """Return until which step a policy is worth being shown; one that never arrives as long as others had to."""
    arrived = result.arrivals[np.isfinite(result.arrivals)]
    return typical_arrival(arrived) if arrived.size else float(min(DEFAULT_STEPS, result.distances.shape[1] - 1))


def plot_foresight(path: str | Path, results: Mapping[str, Foresight], threshold: float | None, title: str) -> None:
    """Draw what bags alone tell: predicted convergence on the left, errors of actions on the right, as far as known."""
    colours = dict(zip(results, itertools.cycle(MODEL_COLOURS), strict=False))
    figure = make_figure(10.0, 4.2, title)
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
    save_figure(figure, path)


def plot_expertness(path: str | Path, results: Sequence[Expertness], title: str) -> None:
    """Draw the curve of what was measured."""
    sizes, means, low, high, reached = zip(*map(astuple, results), strict=True)
    figure = make_figure(5.6, 4.0, title)
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
    axes.legend(fontsize=8)
    save_figure(figure, path)


def plot_shortcuts(path: str | Path, heatmap: FloatArray, by_length: Sequence[float], title: str = "") -> None:
    """Draw the C-heatmap, and beside it which share of pairs of each length Algorithm 1 takes."""
    figure = make_figure(10.0, 4.2, title)
    left, right = figure.subplots(1, 2)
    draw_heatmap(figure, left, heatmap)
    right.plot(np.arange(1, len(by_length)), by_length[1:])
    right.set(xlabel="length j − i", ylabel="share of pairs that are shortcuts", ylim=(0, 1.02))
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


def _one_panel(title: str) -> tuple[Any, Any]:
    figure = make_figure(6.4, 4.2, title)
    return figure, figure.subplots()


def _count(shown: Sequence[Episode], episodes: Sequence[Episode]) -> str:
    return f", {len(shown)} of {len(episodes)} episodes" if len(shown) < len(episodes) else ""
