"""Drawings of pages as options of ECharts, which comes with NiceGUI; pure functions of what is drawn."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any

from lift_ros.array_types import FloatArray
from lift_ros.collection.records import Outcome, Source
from lift_ros.evaluation.phases import Phase
from lift_ros.page.live import EpisodeRow, PlantWords, Point, Trail

Options = dict[str, Any]
Pair = tuple[float, float]

COLOURS = {Source.LOGGING_POLICY: "#3b82f6", Source.AUGMENTOR: "#f59e0b"}
NAMES = {Source.LOGGING_POLICY: "routine", Source.AUGMENTOR: "augmentor"}
INK = "#7c8592"  # readable on light and on dark
_GRID = "rgba(124,133,146,0.22)"
_LAST = "#10b981"
_SHORTCUT = "#22c55e"
PROPOSES = {source: f"{name} proposes" for source, name in NAMES.items()}
_OTHERS = ("#ec4899", "#8b5cf6", "#14b8a6")  # models that took no part
_ALONE, _LIFTED = "routine alone", "with the augmentor"
_DRAWN = 600  # points of a line at most: a screen has no more columns to show them
_EPISODES = 400  # of the chart of steps: the latest


def base(**further: Any) -> Options:
    """Return what all charts share: nothing moves by itself, and colours suit light and dark."""
    return {
        "animation": False,
        "textStyle": {"color": INK, "fontFamily": "inherit"},
        "grid": {"left": 56, "right": 16, "top": 30, "bottom": 40},
        "legend": {"top": 0, "textStyle": {"color": INK}, "itemHeight": 8, "icon": "roundRect"},
        **further,
    }


def axis(name: str, **further: Any) -> Options:
    """Return one axis with its name in the middle."""
    return {
        "type": "value",
        "name": name,
        "nameLocation": "middle",
        "nameGap": 26,
        "nameTextStyle": {"color": INK},
        "axisLabel": {"color": INK, "hideOverlap": True},
        "axisLine": {"onZero": False, "lineStyle": {"color": INK}},
        "splitLine": {"lineStyle": {"color": _GRID}},
        **further,
    }


def line(name: str, data: Sequence[Any], colour: str, **further: Any) -> Options:
    """Return one line without symbols."""
    style = {"color": colour, "width": 2}
    return {
        "type": "line",
        "name": name,
        "data": list(data),
        "showSymbol": False,
        "lineStyle": style,
        "itemStyle": {"color": colour},
        **further,
    }


def path_chart(
    places: Sequence[Pair], sources: Sequence[Source], names: Sequence[str], *, one_scale: bool = True
) -> Options:
    """Draw a path in a plane, each of its moves in the colour of who made it."""
    series = [_moves(places, sources, source) for source in COLOURS]
    if places:
        series.append(_dot("now", places[-1], _LAST))
        series.append(_dot("start", places[0], INK))
    ranges: list[Options] = [{"scale": True}, {"scale": True}]
    if one_scale and places:
        labels = {"color": INK, "hideOverlap": True, "showMinLabel": False, "showMaxLabel": False}
        ranges = [{"min": low, "max": high, "axisLabel": labels} for low, high in _square(places)]
    return base(
        grid={"left": 60, "right": 20, "top": 30, "bottom": 44},
        xAxis=axis(names[0], **ranges[0]),
        yAxis=axis(names[1], nameGap=42, **ranges[1]),
        series=series,
    )


def trail_chart(trail: Trail, words: PlantWords) -> Options:
    """Draw where the plant went in the episode under way; one axis alone is drawn over the steps."""
    points = trail.points
    size = len(points[0].place) if points else 0
    sources = [point.source for point in points]
    if size == 1:
        places = [(float(point.step), point.place[0]) for point in points]
        names = ["step", words.axis(0)]
    else:
        places = [(point.place[0], point.place[1]) for point in points] if size else []
        names = [words.axis(0), words.axis(1)]
    if points and not trail.known:
        names = [name if name == "step" else f"{name}, moves added up" for name in names]
    return path_chart(places, sources, names, one_scale=size > 1)


def trail_line(trail: Trail, words: PlantWords) -> Options:
    """Draw the distance to the goal over the steps, or what is read where nobody knows the distance."""
    points = thinned(trail.points)
    if any(math.isfinite(point.distance) for point in points):
        values = [[point.step + 1, number(point.distance)] for point in points]
        marks = {} if words.threshold is None else {"markLine": threshold_line(words.threshold)}
        series = [line("distance", values, "#3b82f6", areaStyle={"opacity": 0.08}, **marks)]
        scale = axis(words.distance, nameGap=42, min=0)
    else:
        count = min(4, len(points[0].reading)) if points else 0
        colours = ("#3b82f6", "#8b5cf6", "#14b8a6", "#ec4899")
        series = [
            line(words.reading(k), [[point.step, number(point.reading[k])] for point in points], colours[k])
            for k in range(count)
        ]
        scale = axis("reading", nameGap=42, scale=True)
    return base(xAxis=axis("step", minInterval=1), yAxis=scale, series=series)


def episode_chart(
    path: FloatArray,
    sources: Sequence[Source],
    place: int,
    words: PlantWords,
    *,
    known: bool,
    goal: FloatArray,
    arrows: Mapping[str, FloatArray],
    stops: Sequence[int],
) -> Options:
    """Draw a recorded path with the place that is looked at, what was proposed there, and the shortcuts from there."""
    flat = path.shape[1] == 1
    names = ["step", words.axis(0)] if flat else [words.axis(0), words.axis(1)]
    names = names if known else [name if name == "step" else f"{name}, moves added up" for name in names]

    def on_paper(point: FloatArray, step: float) -> Pair:
        return (step, float(point[0])) if flat else (float(point[0]), float(point[1]))

    places = [on_paper(point, step) for step, point in enumerate(path)]
    options = path_chart(places, sources, names, one_scale=not flat)
    options["series"] = [series for series in options["series"] if series["name"] != "now"]
    here = places[place]
    for stop in stops:
        leg = line("shortcut", [here, places[stop]], _SHORTCUT, z=1)
        options["series"].append({**leg, "lineStyle": {"color": _SHORTCUT, "width": 1, "opacity": 0.6}})
    others = cycle(_OTHERS)
    own = {PROPOSES[source]: colour for source, colour in COLOURS.items()}
    for name, action in arrows.items():
        colour = own.get(name) or next(others)
        leg = line(name, [here, on_paper(path[place] + action, place + 1)], colour, z=4)
        style = {"color": colour, "width": 3, "type": [6, 4]}
        options["series"].append({**leg, "lineStyle": style, "symbol": ["none", "arrow"], "showSymbol": True})
    options["series"].append(_dot("here", here, _LAST))
    if goal.size and not flat:
        options["series"].append({**_dot("goal", on_paper(goal, 0.0), "#16a34a"), "symbol": "diamond"})
    return options


def episode_line(distances: FloatArray, readings: Sequence[FloatArray], place: int, words: PlantWords) -> Options:
    """Draw distance or readings of a recorded episode, and the place that is looked at."""
    points = [
        Point(step, (), tuple(reading.tolist()), float(distances[step + 1]), Source.LOGGING_POLICY)
        for step, reading in enumerate(readings)
    ]
    options = trail_line(Trail(0, points), words)
    mark = {
        "silent": True,
        "symbol": "none",
        "label": {"show": False},
        "lineStyle": {"color": _LAST, "width": 2},
        "data": [{"xAxis": place}],
    }
    options["series"].append({"type": "line", "name": "", "data": [], "markLine": mark})
    return options


def steps_chart(rows: Sequence[EpisodeRow]) -> Options:
    """Draw the steps of each episode, those with the augmentor beside those of the routine alone."""
    shown = rows[-_EPISODES:]
    series = []
    for name, colour, alone in ((_ALONE, COLOURS[Source.LOGGING_POLICY], True),
                                (_LIFTED, COLOURS[Source.AUGMENTOR], False)):  # fmt: skip
        chosen = [row for row in shown if is_alone(row) is alone]
        data = [
            {"value": [row.index, row.steps], "symbol": "circle" if row.outcome is Outcome.REACHED else "triangle"}
            for row in chosen
        ]
        series.append({"type": "scatter", "name": name, "data": data, "symbolSize": 6, "itemStyle": {"color": colour}})
    low = shown[0].index if shown else 0
    return base(
        xAxis=axis("episode", minInterval=1, min=low),
        yAxis=axis("steps", nameGap=42, min=0),
        series=series,
        tooltip={"trigger": "item"},
    )


def is_alone(row: EpisodeRow) -> bool:
    """Whether the routine made the episode alone."""
    return row.phase in (Phase.LOGGING_POLICY, Phase.SHADOW)


def mean_steps(rows: Sequence[EpisodeRow], *, alone: bool) -> float:
    """Return the mean steps of episodes that arrived, of the routine alone or with the augmentor; NaN for none."""
    counts = [row.steps for row in rows if is_alone(row) is alone and row.outcome is Outcome.REACHED]
    return sum(counts) / len(counts) if counts else math.nan


def threshold_line(threshold: float) -> Options:
    """Return the mark at which an episode has arrived."""
    return {
        "silent": True,
        "symbol": "none",
        "lineStyle": {"color": _LAST, "type": "dashed"},
        "label": {"formatter": "arrived", "color": INK, "position": "insideEndTop"},
        "data": [{"yAxis": threshold}],
    }


def number(value: float) -> float | None:
    """Return what JSON can hold of a number."""
    return value if math.isfinite(value) else None


def thinned(points: Sequence[Point]) -> Sequence[Point]:
    """Return at most as many points as are drawn, the last among them."""
    every = -(-len(points) // _DRAWN)
    return points if every <= 1 else [*points[:-1:every], points[-1]]


def _moves(places: Sequence[Pair], sources: Sequence[Source], source: Source) -> Options:
    """Return the moves that one of both made; a gap stands where the other did."""
    data: list[list[float | None]] = []
    for before, after, actor in zip(places, places[1:], sources, strict=False):
        if actor is source:
            if not data or data[-1] != list(before):
                data += [[None, None], list(before)]
            data.append(list(after))
    return line(NAMES[source], data, COLOURS[source])


def _dot(name: str, place: Pair, colour: str) -> Options:
    return {
        "type": "scatter",
        "name": name,
        "data": [list(place)],
        "symbolSize": 11,
        "itemStyle": {"color": colour},
        "z": 5,
    }


def _square(places: Sequence[Pair]) -> tuple[Pair, Pair]:
    """Return ranges of both axes of one length, so that a right angle looks like one."""
    spans = [(min(values), max(values)) for values in zip(*places, strict=True)]
    half = max(high - low for low, high in spans) * 0.56 or 0.5
    (x, y) = (((low + high) / 2 - half, (low + high) / 2 + half) for low, high in spans)
    digits = max(0, 2 - math.floor(math.log10(half)))
    return (round(x[0], digits), round(x[1], digits)), (round(y[0], digits), round(y[1], digits))
