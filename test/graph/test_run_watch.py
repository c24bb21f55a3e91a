"""What listeners know of a run: records count once, troubles are named, rates are those of the last moments."""

from __future__ import annotations

import numpy as np

from lift_ros.collection.records import Episode, Mode, Outcome, Source, Step
from lift_ros.graph.run_watch import RATE_WINDOW_S, Report, RunWatch
from lift_ros.messages.records import EpisodeEnd


def step(episode: int, index: int, source: Source = Source.LOGGING_POLICY, reward: float = -0.5) -> Step:
    return Step(episode, index, 0, np.zeros(2), np.zeros(2), source, reward=reward)


def end(index: int, steps: int, outcome: Outcome = Outcome.REACHED) -> EpisodeEnd:
    return EpisodeEnd(Episode(index, 0, Mode.COLLECT, outcome, [], np.zeros(2)), steps, 0, 0.0)


def test_repeated_records_count_once() -> None:
    watch = RunWatch()
    assert [watch.heed_step(step(0, index)) for index in (0, 1, 1, 0, 2)] == [True, True, False, False, True]
    assert [watch.heed_end(each) for each in (end(0, 3), end(0, 3), end(1, 5))] == [True, False, True]
    status = watch.status()
    assert (status.steps_done, status.episodes_done, status.episodes_seen, status.mean_steps) == (3, 2, 2, 4.0)
    assert status.distances == [0.5] * 3


def test_episodes_before_it_listened_count_as_done_but_not_as_seen() -> None:
    watch = RunWatch()
    watch.heed_end(end(41, 10, Outcome.ABORTED))
    status = watch.status()
    assert (status.episodes_done, status.episodes_seen, status.episodes_reached) == (42, 1, 0)


def test_rate_is_that_of_the_last_moments() -> None:
    now = [0.0]
    watch = RunWatch(clock=lambda: now[0])
    for index in range(10):
        watch.heed_step(step(0, index, Source.AUGMENTOR))
    assert watch.status().steps_per_second == 10 / RATE_WINDOW_S
    now[0] += 2 * RATE_WINDOW_S
    assert watch.status().steps_per_second == 0.0
    assert watch.status().augmented_steps == 10


def made(watch: RunWatch) -> float:
    """Return how many steps it reckons with in the last moments."""
    return watch.status().steps_per_second * RATE_WINDOW_S


def test_steps_that_were_not_heard_count_in_the_rate() -> None:
    watch = RunWatch(clock=lambda: 0.0)
    watch.heed_step(step(0, 0))
    watch.heed_step(step(0, 9))
    assert made(watch) == 10
    watch.heed_end(end(0, 12))
    assert made(watch) == 12
    watch.heed_end(end(1, 5))  # none of its steps was heard
    assert made(watch) == 17
    watch.heed_step(step(2, 3))
    assert made(watch) == 21
    watch.heed_step(step(3, 0))  # the end of the one before was not heard
    assert made(watch) == 22


def test_steps_that_are_heard_behind_the_end_count_once() -> None:
    watch = RunWatch(clock=lambda: 0.0)
    watch.heed_step(step(0, 0))
    watch.heed_end(end(0, 6))
    assert watch.heed_step(step(0, 5))
    watch.heed_step(step(1, 1))
    assert made(watch) == 8


def test_whoever_comes_late_does_not_count_what_was_before() -> None:
    watch = RunWatch(clock=lambda: 0.0)
    watch.heed_step(step(7, 800))
    watch.heed_step(step(7, 801))
    assert made(watch) == 2
    late = RunWatch(clock=lambda: 0.0)
    late.heed_end(end(7, 900))
    late.heed_step(step(8, 4))
    assert made(late) == 6


def test_troubles_are_named_until_they_are_over() -> None:
    watch = RunWatch()
    watch.heed_report("plant", Report(is_well=False, sentence="It is stuck."))
    watch.heed_report("arbiter", Report(is_well=True, sentence="", values={"guard": "p 0.5"}))
    assert (watch.status().trouble, watch.status().guard) == ("plant: It is stuck.", "p 0.5")
    watch.heed_report("plant", Report(is_well=True, sentence="It moves."))
    assert watch.status().trouble == ""
