"""What all figures share: how they are written without a display, curves with quartiles, steps in colours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lift_ros.array_types import FloatArray
from lift_ros.collection.records import Episode, Source
from lift_ros.errors import UserError

DOTS_PER_INCH = 150
LOGGED, AUGMENTED = "#1f77b4", "#d62728"
NAMES = {LOGGED: "logged step", AUGMENTED: "augmented step"}


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
