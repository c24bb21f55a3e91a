"""Plots of a study, as its file asks for them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from lift_ros.evaluation.plots import PANEL, draw_heatmap, draw_threshold, make_figure
from lift_ros.studies.claims import matches
from lift_ros.studies.metrics import METRICS, Row, summarise

_MOST_PANELS = 60
_COLUMNS = 4


def draw(plot: Mapping[str, Any], rows: Sequence[Row], title: str) -> Any:
    """Return a figure of one plot; None where no cell belongs to it."""
    chosen = [row for row in rows if matches(row[0], plot["where"]) and _fits(plot["kind"], row[1])]
    panels: dict[tuple[Any, ...], list[Row]] = {}
    for labels, result in chosen:
        panels.setdefault(tuple(labels.get(axis) for axis in plot["panels"]), []).append((labels, result))
    if not panels:
        return None
    shown = list(panels.items())[:_MOST_PANELS]
    columns = min(_COLUMNS, len(shown))
    lines = math.ceil(len(shown) / columns)
    left = f" ({len(shown)} of {len(panels)} panels)" if len(shown) < len(panels) else ""
    figure = make_figure(PANEL * max(columns, 2), PANEL * lines + 0.4, title + left)
    axes = figure.subplots(lines, columns, squeeze=False).ravel()
    for panel in axes[len(shown) :]:
        panel.set_visible(False)
    for panel, (key, members) in zip(axes, shown, strict=False):
        _DRAWERS[plot["kind"]](figure, panel, plot, members)
        panel.set_title(
            ", ".join(_word(axis, value) for axis, value in zip(plot["panels"], key, strict=True)), fontsize=8
        )
    return figure


def _fits(kind: str, result: Mapping[str, Any]) -> bool:
    """Whether a result holds what a kind of plot draws."""
    needed = {"curves": "curve", "paths": "paths", "values": "values", "heatmap": "heatmap"}
    return needed[kind] in result if kind in needed else True


def _word(axis: str, value: Any) -> str:
    return f"{axis} {value:g}" if isinstance(value, float) else str(value)


def _lines(plot: Mapping[str, Any], members: Sequence[Row]) -> dict[Any, Sequence[Row]]:
    groups: dict[Any, list[Row]] = {}
    for labels, result in members:
        groups.setdefault(labels.get(plot["lines"]), []).append((labels, result))
    return dict(groups)


def _draw_curves(figure: Any, axes: Any, plot: Mapping[str, Any], members: Sequence[Row]) -> None:
    """Draw the median over seeds of the quartiles over contexts, one line per value of the axis `lines`."""
    for name, rows in _lines(plot, members).items():
        last = min(len(result["curve"][1]) for _, result in rows)
        low, middle, high = np.median([[part[:last] for part in result["curve"]] for _, result in rows], axis=0)
        (line,) = axes.plot(middle, label=str(name), linewidth=1.4)
        axes.fill_between(np.arange(last), low, high, color=line.get_color(), alpha=0.12, linewidth=0)
    draw_threshold(axes, members[0][1]["threshold"])
    axes.set(xlabel="step", ylabel="distance", yscale="log")
    axes.legend(fontsize=6)


def _draw_metric(figure: Any, axes: Any, plot: Mapping[str, Any], members: Sequence[Row]) -> None:
    """Draw a metric over the axis `x` with its intervals; unreached ones are left out."""
    metric = METRICS[plot["value"]]
    for name, rows in _lines(plot, members).items():
        groups: dict[Any, list[Any]] = {}
        for labels, result in rows:
            groups.setdefault(labels.get(plot["x"]), []).append((labels, result))
        found = {x: summarise(group, metric) for x, group in groups.items()}
        points = [(x, each) for x, each in found.items() if each is not None and math.isfinite(each.middle)]
        if not points:
            continue
        heights = [each.middle for _, each in points]
        spans = [[max(0.0, each.middle - each.interval[0]) for _, each in points]]
        spans.append([max(0.0, min(each.interval[1], each.high) - each.middle) for _, each in points])
        positions = [x if isinstance(x, int | float) else str(x) for x, _ in points]
        axes.errorbar(positions, heights, yerr=spans, marker="o", markersize=3, capsize=2, label=str(name))
    axes.set(xlabel=plot["x"] or "", ylabel=metric.title)
    axes.tick_params(axis="x", labelsize=6)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize=6)


def _draw_paths(figure: Any, axes: Any, plot: Mapping[str, Any], members: Sequence[Row]) -> None:
    for _, result in members:
        for path in result["paths"]:
            points = np.array(path, dtype=float)
            axes.plot(points[:, 0], points[:, 1], marker=".", markersize=2, linewidth=0.7)
    axes.scatter(0.0, 0.0, marker="*", s=40, color="#2ca02c", zorder=4)
    axes.set_aspect("equal", adjustable="datalim")


def _draw_values(figure: Any, axes: Any, plot: Mapping[str, Any], members: Sequence[Row]) -> None:
    result = members[0][1]
    sides = result["sides"]
    image = axes.pcolormesh(sides, sides, np.array(result["values"], dtype=float), cmap="viridis")
    figure.colorbar(image, ax=axes)
    axes.set_aspect("equal")


def _draw_heatmap(figure: Any, axes: Any, plot: Mapping[str, Any], members: Sequence[Row]) -> None:
    draw_heatmap(figure, axes, np.mean([np.array(result["heatmap"], dtype=float) for _, result in members], axis=0))


_DRAWERS: Mapping[str, Callable[[Any, Any, Mapping[str, Any], Sequence[Row]], None]] = {
    "curves": _draw_curves,
    "metric": _draw_metric,
    "paths": _draw_paths,
    "values": _draw_values,
    "heatmap": _draw_heatmap,
}


def draw_all(plots: Sequence[Mapping[str, Any]], rows: Sequence[Row], title: str) -> list[Any]:
    """Return the figures of all plots for which there are cells."""
    return [figure for plot in plots if (figure := draw(plot, rows, title)) is not None]
