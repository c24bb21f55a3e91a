"""Writing a figure to a file, without a display."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from lift_ros.errors import UserError

DOTS_PER_INCH = 150


def write_figure(path: str | Path, size: tuple[float, float], draw: Callable[[Any], None]) -> None:
    """Let `draw` fill a matplotlib figure of `size` inches and write it; the file's ending chooses the format."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    known = FigureCanvasAgg(figure).get_supported_filetypes()
    if Path(path).suffix.lstrip(".").lower() not in known:
        raise UserError(f"cannot write a plot as {path}: the ending must be one of {', '.join(sorted(known))}")
    draw(figure)
    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(str(path), dpi=DOTS_PER_INCH)
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}; choose a folder you may write to") from error
