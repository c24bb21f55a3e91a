"""The benchmark of rigs judges by all episodes, and by the aim as it is said."""

from __future__ import annotations

import dataclasses

import pytest
from report_samples import make_episode

from benchmark.rigs import aim_met, arrived, mean_steps, rows_of
from lift_ros.collection.records import Episode, Mode, Outcome, Source
from lift_ros.evaluation.phases import Phase


def episodes(length: int, mode: Mode, source: Source, failed: int = 0) -> list[Episode]:
    made = [make_episode(length, mode, source) for _ in range(4)]
    return [dataclasses.replace(one, outcome=Outcome.ABORTED) if i < failed else one for i, one in enumerate(made)]


def phases(alone: int, failed: int = 0) -> dict[Phase, list[Episode]]:
    return {
        Phase.LOGGING_POLICY: episodes(30, Mode.COLLECT, Source.LOGGING_POLICY),
        Phase.ASSIST: episodes(9, Mode.ASSIST, Source.AUGMENTOR, failed),
        Phase.LEARNED_POLICY: episodes(alone, Mode.EVALUATE, Source.AUGMENTOR),
    }


@pytest.mark.parametrize(("alone", "failed", "met"), [(9, 0, True), (10, 0, False), (9, 1, False)])
def test_the_aim_is_short_ways_alone_and_arriving_always_with_assistance(alone: int, failed: int, met: bool) -> None:
    assert aim_met(phases(alone, failed)) is met


def test_episodes_that_did_not_arrive_count() -> None:
    failed = episodes(9, Mode.ASSIST, Source.AUGMENTOR, failed=1)
    assert (arrived(failed), mean_steps(failed)) == (0.75, 9)


def test_a_row_tells_the_share_of_the_routines_steps_and_who_finished() -> None:
    routine, assist, _ = rows_of(7, phases(9))
    assert routine[-2:] == ("1.00", "1.00")
    assert assist[:4] == (7, "assist", 4, "1.00") and assist[-2:] == ("0.30", "0.00")
