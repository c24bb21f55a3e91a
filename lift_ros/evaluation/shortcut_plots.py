"""The plot of a run's shortcuts: the C-heatmap, and which share of pairs of each length Algorithm 1 takes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lift_ros.array_types import FloatArray
from lift_ros.evaluation.figures import write_figure


def plot_shortcuts(path: str | Path, heatmap: FloatArray, by_length: Sequence[float], title: str = "") -> None:
    """Write both beside each other as an image; the file's ending chooses the format."""

    def draw(figure: Any) -> None:
        left, right = figure.subplots(1, 2)
        draw_heatmap(figure, left, heatmap)
        right.plot(np.arange(1, len(by_length)), by_length[1:])
        right.set(xlabel="length j − i", ylabel="share of pairs that are shortcuts", ylim=(0, 1.02))
        figure.suptitle(title, fontsize=10)

    write_figure(path, (10.0, 4.2), draw)


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
