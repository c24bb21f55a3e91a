"""The convergence plot: median distance to the goal over steps with a band between the quartiles."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from lift_ros.errors import UserError
from lift_ros.evaluation.convergence import Convergence

COLOURS = {"logging policy": "#7f7f7f", "direct": "#2ca02c", "optimal": "#9467bd"}
_MODEL_COLOURS = ("#d62728", "#1f77b4", "#ff7f0e", "#17becf", "#8c564b", "#e377c2")


def draw_convergence(axes: Any, results: Mapping[str, Convergence], threshold: float, title: str = "") -> None:
    """Draw one curve per policy into matplotlib axes, on a logarithmic scale."""
    free = itertools.cycle(_MODEL_COLOURS)
    for name, result in results.items():
        colour = COLOURS.get(name) or next(free)
        steps = np.arange(result.distances.shape[1])
        low, middle, high = np.quantile(result.distances, (0.25, 0.5, 0.75), axis=0)
        axes.fill_between(steps, low, high, color=colour, alpha=0.15, linewidth=0)
        axes.plot(steps, middle, color=colour, label=name, linewidth=1.6)
    axes.axhline(threshold, color="black", linewidth=0.8, linestyle=":", label="θ")
    axes.set_yscale("log")
    axes.set_xlabel("step")
    axes.set_ylabel("distance to the goal")
    if title:
        axes.set_title(title)


def plot_convergence(path: str | Path, results: Mapping[str, Convergence], threshold: float, title: str) -> None:
    """Write the convergence plot as an image; the file's ending chooses the format."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    canvas = FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    draw_convergence(axes, results, threshold, title)
    axes.legend(fontsize=8)
    ending = Path(path).suffix.lstrip(".").lower()
    if ending not in canvas.get_supported_filetypes():
        known = ", ".join(sorted(canvas.get_supported_filetypes()))
        raise UserError(f"cannot write a plot as {path}: the ending must be one of {known}")
    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(str(path), dpi=150)
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}; choose a folder you may write to") from error
