"""The figures of the report: convergence, paths, steps and augmentations of each phase, and pictures of an episode."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lift_ros.array_types import FloatArray
from lift_ros.collection.records import Episode, Outcome
from lift_ros.evaluation.frames import Strip, draw_strip
from lift_ros.evaluation.paths import Paths, distances, evenly, find_paths, moved_parts
from lift_ros.evaluation.phases import Phase, augmentation_outcomes, distance_quartiles, phase_of
from lift_ros.evaluation.plots import (
    AUGMENTED,
    FLOOR,
    LOGGED,
    draw_quartiles,
    draw_steps,
    ink,
    make_figure,
    scale_counts,
    scale_steps,
    typical_arrival,
)
from lift_ros.scenario import Units

COLOURS = {
    Phase.LOGGING_POLICY: "#3b82f6",
    Phase.SHADOW: "#6b7280",
    Phase.LIFT_COLLECTION: "#d97706",
    Phase.ASSIST: "#0d9488",
    Phase.LEARNED_POLICY: "#16a34a",
}
PATHS_SHOWN = 12  # per phase
COLUMNS = 3  # of panels; more would be too small to read


@dataclass(frozen=True)
class Drawing:
    """A section of the report: a figure that can be drawn for light and dark pages, or none, and the words below it."""

    title: str
    caption: str
    draw: Callable[[], Any] | None = None


def convergence(phases: Mapping[Phase, Sequence[Episode]], threshold: float | None, unit: str = "") -> Drawing:
    """Show the median distance over steps with its quartiles, one curve per phase, until the slowest arrives."""
    moved = {phase: moved_parts(episodes) for phase, episodes in phases.items()}
    known = {phase: [item for item in items if np.isfinite(distances(item)).any()] for phase, items in moved.items()}
    known = {phase: items for phase, items in known.items() if items}
    if not known:
        return Drawing(
            "Convergence",
            "Not shown: no episode tells its distance to the goal. That takes a recorded goal, a reward that is a "
            "distance, or the positions of an episode that arrived.",
        )
    arrivals = [_arrival(episodes) for episodes in known.values()]

    def draw() -> Any:
        figure, (axes,) = _panels(7.5, 4)
        steps = math.ceil(max(arrivals)) + 1
        curves = {phase.value: distance_quartiles(episodes, steps) for phase, episodes in known.items()}
        draw_quartiles(axes, curves, {phase.value: colour for phase, colour in COLOURS.items()}, threshold, unit)
        scale_steps(axes, arrivals)
        axes.legend(frameon=False)
        return figure

    left_out = sum(map(len, moved.values())) - sum(map(len, known.values()))
    caption = "Median distance to the goal over steps, with quartiles; who has arrived keeps the last distance."
    caption += "" if threshold is None else f" What is below {FLOOR:g} θ is drawn there."
    return Drawing("Convergence", caption + _left_out(left_out, "tell no distance to the goal"), draw)


def _arrival(episodes: Sequence[Episode]) -> float:
    """Return after how many steps nearly all of a phase have arrived, or ended where none does."""
    arrived = [len(episode.steps) for episode in episodes if episode.outcome is Outcome.REACHED]
    return typical_arrival(np.array(arrived or [len(episode.steps) for episode in episodes], dtype=np.float64))


def trajectories(phases: Mapping[Phase, Sequence[Episode]], units: Units | None = None) -> Drawing:
    """Show some paths of each phase on the same axes, logged steps blue and augmented ones red."""
    paths = find_paths([episode for episodes in phases.values() for episode in episodes], units)
    if not paths.lines:
        return Drawing("Trajectories", "Not shown: no episode made a step.")
    words = [f"The {paths.kind} of up to {PATHS_SHOWN} episodes each"]
    words.append(" over steps" if len(paths.axes) == 1 else f" in {' and '.join(paths.axes[:2])}")
    words.append(f", the first two of {len(paths.axes)}" if len(paths.axes) > 2 else "")
    words.append(". Steps of the routine are blue, steps of the augmentor or the learned policy are red")
    words.append("; the star is the goal." if paths.relative else ".")
    caption = "".join(words) + _left_out(paths.left_out, "have no known goal")
    return Drawing("Trajectories", caption, lambda: _draw_paths(paths))


def _draw_paths(paths: Paths) -> Any:
    found = list(zip(paths.episodes, paths.lines, strict=True))
    by_phase = {phase: [pair for pair in found if phase_of(pair[0]) is phase] for phase in Phase}
    drawn = {phase: evenly(pairs, PATHS_SHOWN) for phase, pairs in by_phase.items() if pairs}
    on_a_line = len(paths.axes) == 1
    columns = min(COLUMNS, len(drawn))
    rows = math.ceil(len(drawn) / columns)
    size = (7.5, 4.0) if len(drawn) == 1 else (2.75 * columns + 0.3, 2.9 * rows + 0.3)
    figure, panels = _panels(*size, title=paths.kind, nrows=rows, ncols=columns)
    for axes in panels[len(drawn) :]:
        axes.set_visible(False)
    flat = {
        phase: [np.c_[np.arange(len(line)), line] if on_a_line else line[:, :2] for _, line in pairs]
        for phase, pairs in drawn.items()
    }
    limits = _square([line for lines in flat.values() for line in lines])
    for axes, (phase, pairs) in zip(panels, drawn.items(), strict=False):
        draw_steps(axes, [episode for episode, _ in pairs], flat[phase])
        axes.set_title(phase.value, fontsize=10)
        axes.set(xlabel="step" if on_a_line else paths.axes[0], ylabel=paths.axes[0 if on_a_line else 1])
        if not on_a_line:
            axes.set(xlim=limits[0], ylim=limits[1], aspect="equal")
        if paths.relative:
            axes.plot(*(([], []) if on_a_line else (0, 0)), marker="*", color=ink(), markersize=9)
    return figure


def _square(lines: Sequence[FloatArray]) -> FloatArray:
    """Return the limits (2, 2) of a square that holds all points, with a margin."""
    points = np.concatenate(lines)
    low, high = points.min(axis=0), points.max(axis=0)
    middle, half = (low + high) / 2, 0.54 * max(float((high - low).max()), 1e-12)
    return np.stack([middle - half, middle + half], axis=1)


def steps_per_episode(phases: Mapping[Phase, Sequence[Episode]]) -> Drawing:
    """Show how long each episode took, each phase in a panel of its own."""
    lengths = {phase: np.array([len(item.steps) for item in episodes]) for phase, episodes in phases.items()}
    if not max(map(np.max, lengths.values())):
        return Drawing("Steps per episode", "Not shown: no episode made a step.")
    means = [float(counts.mean()) for counts in lengths.values()]
    bent = max(means) > 4 * max(1.0, min(means))

    def draw() -> Any:
        figure, panels = _panels(7.5, 3.2, ncols=len(phases), sharey=True)
        for axes, (phase, counts) in zip(panels, lengths.items(), strict=True):
            arrived = np.array([episode.outcome is Outcome.REACHED for episode in phases[phase]])
            numbers = np.arange(len(counts))
            axes.plot(numbers[arrived], counts[arrived], "o", color=COLOURS[phase], markersize=4)
            axes.plot(numbers[~arrived], counts[~arrived], "x", color=ink(), markersize=5, label="did not arrive")
            axes.axhline(counts.mean(), color=COLOURS[phase], linewidth=0.9, linestyle="--")
            axes.set_title(f"{phase.value}\nmean {counts.mean():.1f}", fontsize=10)
            axes.set_xlabel("episode")
            if not arrived.all():
                axes.legend(frameon=False, fontsize=8)
        panels[0].set_ylabel("steps")
        scale_counts(panels[0], np.concatenate(list(lengths.values())), bent=bent)
        return figure

    caption = "In the order in which they were made; the dashed lines are means."
    return Drawing("Steps per episode", caption + (" The scale is logarithmic." if bent else ""), draw)


def augmentations(episodes: Sequence[Episode]) -> Drawing:
    """Show the share of augmented steps per episode, and what became of all chances to augment."""

    def draw() -> Any:
        figure, (left, right) = _panels(8.5, 3.2, ncols=2, width_ratios=[3, 2])
        shares = [episode.augmentations / max(1, len(episode.steps)) for episode in episodes]
        left.bar(np.arange(len(shares)), shares, color=AUGMENTED, width=0.85)
        left.set(xlabel="episode with an augmentor", ylabel="share of augmented steps", ylim=(0, 1))
        outcomes = augmentation_outcomes(episodes)
        right.barh(list(outcomes), list(outcomes.values()), color=[AUGMENTED, LOGGED] + ["grey"] * len(outcomes))
        right.set(xlabel="steps")
        return figure

    caption = "How often the augmentor acted while collecting, and what became of its proposals."
    return Drawing("Augmentations", caption, draw)


def frame_strip(strip: Strip, unit: str = "") -> Drawing:
    """Show pictures along an episode, each with its step and its distance."""
    seen = f"{len(strip.frames)} pictures along episode {strip.episode} of {strip.steps} steps"
    if strip.rendered:
        return Drawing("The learned policy at work", f"{seen}, rendered afterwards.", lambda: draw_strip(strip, unit))
    caption = f"{seen}, as recorded ({strip.format}), with the distance to the goal where it is known."
    if strip.format.dtype.kind == "f":
        caption += " Mid grey is 0."
    return Drawing(f"What was seen: {strip.phase.value}", caption, lambda: draw_strip(strip, unit))


def _left_out(count: int, why: str) -> str:
    return f" Left out: {count} episodes that {why}." if count else ""


def _panels(width: float, height: float, title: str = "", **layout: Any) -> tuple[Any, list[Any]]:
    """Return a figure and its axes, row by row, with grids and without frames."""
    figure = make_figure(width, height, title)
    panels = list(figure.subplots(squeeze=False, **layout).ravel())
    for axes in panels:
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25)
    return figure, panels
