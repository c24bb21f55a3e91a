"""Drawings of pages: who made which move, gaps where nobody knows, and nothing that JSON cannot hold."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from lift_ros.collection.records import Outcome, Source
from lift_ros.evaluation.phases import Phase
from lift_ros.page import charts
from lift_ros.page.live import EpisodeRow, PlantWords, Point, Trail
from lift_ros.scenario import Units

R, A = Source.LOGGING_POLICY, Source.AUGMENTOR
WORDS = PlantWords("po", Units("mm", ["V", "V"]), threshold=0.1)


def point(step: int, *place: float, source: Source = R, distance: float = math.nan) -> Point:
    return Point(step, place, (0.5, 0.6), distance, source)


def data_of(options: dict[str, Any], name: str) -> list[Any]:
    return list(next(series["data"] for series in options["series"] if series["name"] == name))


def test_each_move_has_the_colour_of_who_made_it() -> None:
    places = [(0.0, 0.0), (1.0, 0.0), (1.0, 2.0), (3.0, 2.0)]
    options = charts.path_chart(places, [R, A, R], ["x", "y"])
    gap = [None, None]
    assert data_of(options, "routine") == [gap, [0.0, 0.0], [1.0, 0.0], gap, [1.0, 2.0], [3.0, 2.0]]
    assert data_of(options, "augmentor") == [gap, [1.0, 0.0], [1.0, 2.0]]
    assert data_of(options, "now") == [[3.0, 2.0]]


def test_moves_in_a_row_are_one_line() -> None:
    options = charts.path_chart([(0.0, 0.0), (1.0, 0.0), (2.0, 0.0)], [R, R], ["x", "y"])
    assert data_of(options, "routine") == [[None, None], [0.0, 0.0], [1.0, 0.0], [2.0, 0.0]]


def test_both_axes_have_one_scale() -> None:
    options = charts.path_chart([(0.0, 5.0), (10.0, 6.0)], [R], ["x", "y"])
    spans = [options[axis]["max"] - options[axis]["min"] for axis in ("xAxis", "yAxis")]
    assert spans[0] == pytest.approx(spans[1])
    assert options["yAxis"]["min"] <= 5.0 <= 6.0 <= options["yAxis"]["max"]


def test_axes_are_called_as_the_scenario_says() -> None:
    trail = Trail(0, [point(0, 1.0, 2.0), point(1, 2.0, 2.0)], known=True)
    assert charts.trail_chart(trail, WORDS)["xAxis"]["name"] == "axis 1 [mm]"
    unknown = charts.trail_chart(Trail(0, trail.points, known=False), WORDS)
    assert unknown["xAxis"]["name"] == "axis 1 [mm], moves added up"
    one = charts.trail_chart(Trail(0, [point(0, 1.0), point(1, 4.0)], known=True), WORDS)
    assert (one["xAxis"]["name"], one["yAxis"]["name"]) == ("step", "axis 1 [mm]")
    assert data_of(one, "routine") == [[None, None], [0.0, 1.0], [1.0, 4.0]]


def test_distance_is_drawn_where_it_is_known_else_what_is_read() -> None:
    known = Trail(0, [point(0, 0.0, 0.0, distance=0.4), point(1, 0.0, 0.0, distance=0.2)], known=True)
    options = charts.trail_line(known, WORDS)
    assert options["yAxis"]["name"] == "distance to the goal [mm]"
    assert data_of(options, "distance") == [[1, 0.4], [2, 0.2]]
    assert options["series"][0]["markLine"]["data"] == [{"yAxis": 0.1}]
    options = charts.trail_line(Trail(0, [point(0, 0.0, 0.0)], known=True), WORDS)
    assert data_of(options, "reading 2 [V]") == [[0, 0.6]]


def test_long_trails_are_thinned_and_keep_their_ends() -> None:
    points = [point(step, 0.0, 0.0) for step in range(5001)]
    thin = charts.thinned(points)
    assert len(thin) <= 601
    assert (thin[0].step, thin[-1].step) == (0, 5000)
    assert charts.thinned(points[:10]) == points[:10]


def row(index: int, steps: int, phase: Phase, outcome: Outcome = Outcome.REACHED) -> EpisodeRow:
    return EpisodeRow(index, phase, outcome, steps, 0, 1.0)


def test_routine_and_lift_stand_side_by_side() -> None:
    rows = [
        row(0, 40, Phase.LOGGING_POLICY),
        row(1, 60, Phase.LOGGING_POLICY),
        row(2, 25, Phase.LIFT_COLLECTION),
        row(3, 300, Phase.LIFT_COLLECTION, Outcome.ABORTED),
        row(4, 10, Phase.SHADOW),
    ]
    options = charts.steps_chart(rows)
    assert [each["value"] for each in data_of(options, "routine alone")] == [[0, 40], [1, 60], [4, 10]]
    assert [each["value"] for each in data_of(options, "with the augmentor")] == [[2, 25], [3, 300]]
    assert (charts.mean_steps(rows[:4], alone=True), charts.mean_steps(rows, alone=False)) == (50.0, 25.0)
    assert math.isnan(charts.mean_steps([], alone=True))


def test_charts_of_nothing_and_of_unknown_numbers_are_json() -> None:
    half = Trail(0, [point(0, 0.0, 0.0, distance=0.1), point(1, 0.0, 0.0)], known=True)
    for options in (
        charts.trail_chart(Trail(), WORDS),
        charts.trail_line(Trail(), WORDS),
        charts.trail_line(half, WORDS),
        charts.steps_chart([]),
    ):
        json.dumps(options, allow_nan=False)
