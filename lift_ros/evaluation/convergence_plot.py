"""The convergence plot: median distance to the goal over steps with a band between the quartiles."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from lift_ros.evaluation.convergence import Convergence
from lift_ros.evaluation.figures import draw_quartiles, write_figure

COLOURS = {"logging policy": "#7f7f7f", "direct": "#2ca02c", "optimal": "#9467bd"}
_MODEL_COLOURS = ("#d62728", "#1f77b4", "#ff7f0e", "#17becf", "#8c564b", "#e377c2")


def plot_convergence(path: str | Path, results: Mapping[str, Convergence], threshold: float, title: str) -> None:
    """Write the convergence plot as an image, one curve per policy; the file's ending chooses the format."""
    free = itertools.cycle(_MODEL_COLOURS)
    colours = {name: COLOURS.get(name) or next(free) for name in results}
    curves = {name: np.quantile(result.distances, (0.25, 0.5, 0.75), axis=0) for name, result in results.items()}

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        draw_quartiles(axes, curves, colours, threshold)
        axes.set_title(title)
        axes.legend(fontsize=8)

    write_figure(path, (6.4, 4.2), draw)
