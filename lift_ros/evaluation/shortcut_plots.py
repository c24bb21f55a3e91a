"""Plots of what the theory says of recorded episodes: the C-heatmap and the pairs that Theorem 3.6 guarantees."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from lift_ros.array_types import BoolArray, FloatArray
from lift_ros.errors import UserError


def draw_heatmap(axes: Any, heatmap: FloatArray, title: str = "") -> Any:
    """Draw the largest admissible C over start i and length j − i into matplotlib axes and return the image."""
    shown = np.flatnonzero(np.isfinite(heatmap).any(axis=1))
    starts = np.flatnonzero(np.isfinite(heatmap).any(axis=0))
    if not len(shown):
        raise UserError("The heatmap holds no pair; it needs episodes of at least three steps inside the action ball.")
    values = np.ma.masked_invalid(heatmap[: shown[-1] + 1, : starts[-1] + 1])
    image = axes.imshow(values, origin="lower", aspect="auto", cmap="viridis", interpolation="nearest")
    axes.set_xlabel("start i")
    axes.set_ylabel("length j − i")
    if title:
        axes.set_title(title)
    return image


def plot_heatmap(path: str | Path, heatmap: FloatArray, title: str = "") -> None:
    """Write the C-heatmap of `constants_heatmap` as an image; the file's ending chooses the format."""

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        figure.colorbar(draw_heatmap(axes, heatmap, title), ax=axes, label="largest C that admits the shortcut")

    _write(path, draw)


def draw_pairs(axes: Any, candidates: BoolArray, guaranteed: BoolArray, title: str = "") -> None:
    """Draw which pairs of one episode Algorithm 1 takes, and which of them Theorem 3.6 guarantees, into axes."""
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Patch

    if candidates.shape != guaranteed.shape:
        raise UserError(
            f"The candidates have the shape {candidates.shape}, the guaranteed pairs {guaranteed.shape}; take both of "
            "the same episode."
        )
    colours = ("#f0f0f0", "#9ecae1", "#08519c")
    level = candidates.astype(np.int64) + (candidates & guaranteed)
    axes.imshow(level.T, origin="lower", aspect="auto", cmap=ListedColormap(colours), vmin=0, vmax=2)
    axes.set_xlabel("start i")
    axes.set_ylabel("end j")
    names = ("no shortcut", "candidate", "candidate that Theorem 3.6 guarantees")
    axes.legend([Patch(color=colour) for colour in colours], names, fontsize=8, loc="lower right")
    if title:
        axes.set_title(title)


def plot_pairs(path: str | Path, candidates: BoolArray, guaranteed: BoolArray, title: str = "") -> None:
    """Write the plot of pairs as an image; the file's ending chooses the format."""
    _write(path, lambda figure: draw_pairs(figure.add_subplot(), candidates, guaranteed, title))


def _write(path: str | Path, draw: Callable[[Any], None]) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.8), layout="constrained")
    endings = FigureCanvasAgg(figure).get_supported_filetypes()
    if Path(path).suffix.lstrip(".").lower() not in endings:
        raise UserError(f"Cannot write a plot as {path}: the ending must be one of {', '.join(sorted(endings))}.")
    draw(figure)
    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(str(path), dpi=150)
    except OSError as error:
        raise UserError(f"Cannot write {path}: {error.strerror}; choose a folder you may write to.") from error
