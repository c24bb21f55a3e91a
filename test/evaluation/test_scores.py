from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from lift_ros.collection.records import Episode, Mode, Outcome, Source, Step
from lift_ros.errors import UserError
from lift_ros.evaluation.scores import (
    ReturnRange,
    count_cells,
    mean_return,
    return_ranges,
    rewarded_goal,
    score_runs,
    state_actions,
    straight_return,
    trajectory_quality,
)


def episode(positions: list[float], *, rewarded: bool = True, observed: bool = True) -> Episode:
    """A drive along a line to the goal 0."""
    steps = [
        Step(
            episode=0,
            index=i,
            time_ns=i,
            observation=np.array([here]) if observed else np.empty(0),
            position=np.array([here]),
            action=np.array([there - here]),
            source=Source.LOGGING_POLICY,
            reward=-abs(there) if rewarded else math.nan,
        )
        for i, (here, there) in enumerate(itertools.pairwise(positions))
    ]
    last = np.array(positions[-1:])
    return Episode(0, 0, Mode.COLLECT, Outcome.REACHED, steps, last, final_position=last, goal=np.zeros(1))


SLOW = episode([4, 3, 2, 1, 0])
FAST = episode([4, 2, 0])


def test_mean_return() -> None:
    assert mean_return([SLOW, FAST]) == (-6 - 2) / 2
    assert mean_return([SLOW, episode([1, 0], rewarded=False)]) == -6
    assert math.isnan(mean_return([episode([1, 0], rewarded=False)]))
    assert math.isnan(mean_return([]))


def test_quality_is_zero_at_the_lowest_and_one_at_the_highest() -> None:
    references = ReturnRange(-10, -2)
    assert [trajectory_quality(value, references) for value in (-10, -6, -2)] == [0, 0.5, 1]
    with pytest.raises(UserError, match="highest return -3 must lie above the lowest -2"):
        trajectory_quality(0, ReturnRange(-2, -3))


@pytest.mark.parametrize(
    ("distance", "radius", "expected"), [(4, 1, -6), (4, 2, -2), (4, 4, 0), (4, 9, 0), (2.5, 1, -2)]
)
def test_straight_return(distance: float, radius: float, expected: float) -> None:
    assert straight_return(distance, radius) == pytest.approx(expected)


def test_straight_is_the_best_and_standing_still_the_worst() -> None:
    slow, fast, both = return_ranges([[SLOW], [FAST], [SLOW, FAST]])
    assert slow == fast == both == ReturnRange(lowest=-16, highest=-2)
    scores = score_runs([[SLOW], [FAST]])
    assert scores[1].trajectory_quality == 1
    assert scores[0].trajectory_quality == pytest.approx(10 / 14)


def test_a_larger_radius_raises_the_bar() -> None:
    assert score_runs([[FAST]], radius=4.0)[0].trajectory_quality < score_runs([[FAST]])[0].trajectory_quality


def test_other_rewards_need_references_of_the_user() -> None:
    odd = episode([4, 2, 0])
    odd.steps[0].reward = 5.0
    assert rewarded_goal(odd) is None
    assert math.isnan(score_runs([[odd]])[0].trajectory_quality)
    assert score_runs([[odd]], references=ReturnRange(0, 10))[0].trajectory_quality == 0.5


def test_rewards_in_hindsight_have_references_too() -> None:
    blind = episode([4, 2, 0])
    blind.goal = np.empty(0)
    assert return_ranges([[blind]]) == return_ranges([[FAST]])
    near = episode([4, 2, 0])
    near.goal = np.array([0.01])
    goal = rewarded_goal(near)
    assert goal is not None
    assert goal.tolist() == [0]


def test_unknown_positions_give_no_references() -> None:
    blind = episode([4, 2, 0])
    for step in blind.steps:
        step.position = np.empty(0)
    assert return_ranges([[blind], []]) == [None, None]
    assert return_ranges([[FAST], [], [blind]])[1:] == [None, None]
    assert return_ranges([[FAST], []])[0] == ReturnRange(lowest=-8, highest=-2)


def test_standing_on_the_goal_gives_no_references() -> None:
    assert return_ranges([[episode([0, 0, 0])]]) == [None]


def test_cells_are_counted_once() -> None:
    values = np.array([[0.0, 0.0], [0.04, 0.0], [0.96, 0.0], [1.0, 0.0], [1.0, 1.0]])
    assert count_cells(values, np.zeros(2), np.ones(2), 10) == 3
    assert count_cells(values, np.zeros(2), np.ones(2), 1) == 1
    assert count_cells(values[:0], np.zeros(2), np.ones(2), 10) == 0


def test_constant_dimensions_do_not_divide_by_zero() -> None:
    assert count_cells(np.full((5, 1), 3.0), np.array([3.0]), np.array([3.0]), 10) == 1


def test_coverage_is_relative_to_the_reference_run() -> None:
    slow, fast = score_runs([[SLOW], [FAST]], bins=4)
    assert (slow.pairs, slow.coverage) == (4, 1.0)
    assert (fast.pairs, fast.coverage) == (2, 0.5)
    slow, fast = score_runs([[SLOW], [FAST]], bins=4, reference=1)
    assert (slow.coverage, fast.coverage) == (2.0, 1.0)


def test_repeating_data_adds_no_coverage() -> None:
    once, thrice = score_runs([[SLOW], [SLOW, SLOW, SLOW]])
    assert (once.pairs, once.states) == (thrice.pairs, thrice.states)
    assert thrice.coverage == 1.0


def test_same_states_other_actions_count_for_pairs_only() -> None:
    forth = episode([1, 2, 1, 2, 1])
    both = [forth, episode([2, 2, 1, 1, 2])]
    one, two = score_runs([[forth], both])
    assert one.states == two.states == 2
    assert two.pairs > one.pairs


def test_state_is_the_position_where_nothing_else_is_observed() -> None:
    states, actions = state_actions([episode([4, 2, 0], observed=False)])
    assert states.ravel().tolist() == [4, 2]
    assert actions.ravel().tolist() == [-2, -2]


def test_runs_of_different_sizes_cannot_be_compared() -> None:
    wide = episode([4, 2, 0])
    for step in wide.steps:
        step.action = np.zeros(2)
    with pytest.raises(UserError, match=r"different sizes \(\[1, 2\]\)"):
        score_runs([[FAST], [wide]])
    wide.steps[0].action = np.zeros(1)
    with pytest.raises(UserError, match="mixes observations or actions"):
        score_runs([[wide]])


def test_empty_run_has_no_scores() -> None:
    (empty,) = score_runs([[]])
    assert (empty.pairs, empty.states) == (0, 0)
    assert math.isnan(empty.coverage)
    assert math.isnan(empty.trajectory_quality)


def test_bins_are_checked() -> None:
    with pytest.raises(UserError, match="--bins 0 must lie between 1 and 1000"):
        score_runs([[FAST]], bins=0)
