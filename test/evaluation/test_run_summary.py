from __future__ import annotations

import math

import numpy as np
from sample_run import drive

from lift_ros.collection.records import Mode, Outcome
from lift_ros.console import attribute_table
from lift_ros.evaluation.run_summary import EPISODE_COLUMNS, pauses, summarise_episode, summarise_run, usual_pause


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


def test_shadow_episodes_are_counted_apart() -> None:
    shadow = drive(0, 2)
    shadow.mode = Mode.SHADOW
    shadow.steps[0].model_hash = "ab"
    summary = summarise_run("run", [shadow, drive(1, 2)], rewards="measured", facts={})
    assert summary.phases == {"shadow": 1, "logging policy": 1}
    assert summary.augmented == 0
    assert "shadow" in attribute_table(EPISODE_COLUMNS, summary.table)
