"""Episodes sort themselves into phases, and each phase sums up correctly."""

from __future__ import annotations

import numpy as np
import pytest

from lift_ros.collection.records import Episode, Mode, Outcome, Rejection, Source, Step
from lift_ros.evaluation.paths import distances
from lift_ros.evaluation.phases import (
    Phase,
    augmentation_outcomes,
    distance_quartiles,
    phase_of,
    split_phases,
)
from lift_ros.evaluation.run_summary import summarise_run


def make_episode(
    positions: list[float],
    *,
    mode: Mode = Mode.COLLECT,
    sources: list[Source] | None = None,
    model_hash: str = "",
    outcome: Outcome = Outcome.REACHED,
    goal: list[float] | None = None,
) -> Episode:
    """Make an episode on a line, whose goal is 0."""
    count = len(positions) - 1
    sources = sources or [Source.LOGGING_POLICY] * count
    steps = [
        Step(
            episode=0,
            index=i,
            time_ns=i,
            observation=np.array([positions[i]]),
            action=np.array([positions[i + 1] - positions[i]]),
            source=sources[i],
            position=np.array([positions[i]]),
            reward=-abs(positions[i + 1]),
            model_hash=model_hash,
        )
        for i in range(count)
    ]
    final = np.array([positions[-1]])
    known_goal = np.array([0.0] if goal is None else goal)
    return Episode(0, 7, mode, outcome, steps, final, final_position=final, goal=known_goal)


def test_an_episode_without_model_belongs_to_the_routine() -> None:
    assert phase_of(make_episode([1, 0])) == Phase.LOGGING_POLICY


def test_an_episode_with_a_model_is_lift_even_if_it_never_acted() -> None:
    assert phase_of(make_episode([1, 0], model_hash="ab")) == Phase.LIFT_COLLECTION


def test_an_episode_with_another_augmentation_is_lift() -> None:
    assert phase_of(make_episode([1, 0], sources=[Source.AUGMENTOR])) == Phase.LIFT_COLLECTION


def test_evaluation_belongs_to_the_learned_policy() -> None:
    assert phase_of(make_episode([1, 0], mode=Mode.EVALUATE, model_hash="ab")) == Phase.LEARNED_POLICY


def test_shadow_episodes_are_the_logging_policys_own_whatever_was_asked() -> None:
    assert phase_of(make_episode([1, 0], mode=Mode.SHADOW, model_hash="ab")) == Phase.SHADOW


def test_assist_is_a_phase_of_its_own() -> None:
    assert phase_of(make_episode([1, 0], mode=Mode.ASSIST, model_hash="ab")) == Phase.ASSIST


def test_phases_come_in_the_order_of_the_method_without_empty_ones() -> None:
    episodes = [make_episode([1, 0], mode=Mode.EVALUATE), make_episode([1, 0])]
    assert list(split_phases(episodes)) == [Phase.LOGGING_POLICY, Phase.LEARNED_POLICY]


def test_a_summary_counts_steps_success_and_return() -> None:
    episodes = [
        make_episode([2, 1, 0], sources=[Source.LOGGING_POLICY, Source.AUGMENTOR]),
        make_episode([2, 1.5, 1.5, 1.5, 1.5], outcome=Outcome.STEP_LIMIT),
    ]
    summary = summarise_run(Phase.LIFT_COLLECTION.value, episodes)
    assert (summary.episodes, summary.success, summary.mean_steps) == (2, 0.5, 3.0)
    assert summary.mean_return == pytest.approx((-1 - 6) / 2)


def test_distances_are_measured_from_the_goal() -> None:
    assert distances(make_episode([2, 1, 0.5])).tolist() == [2, 1, 0.5]


def test_distances_fall_back_on_rewards_where_the_goal_is_unknown() -> None:
    curve = distances(make_episode([2, 1, 0.5], goal=[]))
    assert np.isnan(curve[0])
    assert curve[1:].tolist() == [1, 0.5]


def test_ended_episodes_keep_their_last_distance() -> None:
    quartiles = distance_quartiles([make_episode([2, 1]), make_episode([2, 3, 5])], steps=3)
    assert quartiles[1].tolist() == [2, 2, 3, 3]


def test_without_distances_there_are_no_quartiles() -> None:
    assert distance_quartiles([], steps=3).shape == (3, 0)


def test_every_step_has_one_augmentation_outcome() -> None:
    episode = make_episode([3, 2, 1, 0], sources=[Source.AUGMENTOR, Source.LOGGING_POLICY, Source.LOGGING_POLICY])
    episode.steps[1].rejection = Rejection.TOO_LONG
    assert augmentation_outcomes([episode]) == {"augmented": 1, "left to the routine": 1, "rejected: too long": 1}
