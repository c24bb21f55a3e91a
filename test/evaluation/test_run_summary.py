from __future__ import annotations

import json
import math

import numpy as np
from sample_run import drive

from lift_ros.collection.records import Outcome
from lift_ros.evaluation.run_summary import (
    for_programs,
    format_table,
    pauses,
    shown,
    summarise_episode,
    summarise_run,
    usual_pause,
)


def test_pauses_include_that_after_the_last_step() -> None:
    assert np.allclose(pauses(drive(0, 4, period=0.5)), [0.5] * 4)
    assert pauses(drive(0, 0)) == []
    unknown_end = drive(0, 4)
    unknown_end.end_time_ns = 0
    assert len(pauses(unknown_end)) == 3


def test_usual_pause_is_the_median() -> None:
    assert usual_pause([drive(0, 5, period=0.1), drive(1, 2, period=3.0)]) == 0.1
    assert math.isnan(usual_pause([]))


def test_hiccups_of_the_system_are_no_gaps() -> None:
    fast = drive(0, 5, period=0.001)
    fast.steps[3].time_ns += 20_000_000
    fast.steps[4].time_ns += 20_000_000
    fast.end_time_ns += 20_000_000
    assert summarise_episode(fast, usual_pause([fast])).gaps == 0


def test_run_without_episodes_has_no_numbers() -> None:
    empty = summarise_run("run", [], rewards="unknown", facts={})
    assert (empty.episodes, empty.steps, empty.outcomes) == (0, 0, {})
    assert all(math.isnan(value) for value in (empty.success, empty.mean_steps, empty.mean_return, empty.rate))


def test_outcomes_are_words() -> None:
    summary = summarise_run("run", [drive(0, 2, outcome=Outcome.STEP_LIMIT)], rewards="measured", facts={})
    assert summary.outcomes == {"step limit": 1}
    assert summary.success == 0


def test_programs_get_null_for_what_is_unknown() -> None:
    value = {"a": math.nan, "b": [np.float64(1.5), np.int64(2)], "c": (np.array([math.inf, 1.0]),)}
    assert json.dumps(for_programs(value)) == '{"a": null, "b": [1.5, 2], "c": [[null, 1.0]]}'


def test_tables_align_numbers_to_the_right() -> None:
    lines = format_table(("name", "n"), [("a", 5), ("longer", 100)]).splitlines()
    assert lines == ["name      n", "──────  ───", "a         5", "longer  100"]
    assert format_table(("name", "n"), []).splitlines()[0] == "name  n"


def test_numbers_stay_readable() -> None:
    assert [shown(value) for value in (0.12345, 12345.6, math.nan, 7, "x")] == ["0.123", "12346", "–", "7", "x"]
