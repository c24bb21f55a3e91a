"""What a run's shortcuts are summed up to, on runs whose numbers are known."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from sample_run import drive

from lift_ros.collection.loop import collect
from lift_ros.collection.records import Outcome
from lift_ros.evaluation.shortcut_summary import EPISODE_LIMIT, ShortcutSummary, shortcut_table, summarise_shortcuts
from lift_ros.scenario import load_scenario
from lift_ros.shortcuts.theory import largest_constants


def summary_of(*episodes: object, radius: float | None = 10.0, **facts: object) -> ShortcutSummary:
    found = summarise_shortcuts("run", list(episodes), facts, radius)  # type: ignore[arg-type]
    assert found is not None
    return found[0]


def test_on_a_straight_way_every_pair_is_a_shortcut_and_guaranteed() -> None:
    summary = summary_of(drive(0, 8), drive(1, 5))
    assert (summary.episodes, summary.shortcuts, summary.guaranteed) == (2, 1.0, 1.0)
    assert (summary.contracting, summary.improving) == (1.0, 1.0)
    assert summary.L_f == pytest.approx(0, abs=1e-9) and summary.C_theorem == pytest.approx(0, abs=1e-9)
    assert summary.by_length[1:] == [1.0] * 8


def test_the_action_ball_bounds_the_length() -> None:
    summary = summary_of(drive(0, 8), radius=3.5 * math.sqrt(2) / 8)
    assert summary.by_length[1:] == [1, 1, 1, 0, 0, 0, 0, 0]
    assert summary.shortcuts == pytest.approx((8 + 7 + 6) / 36)


def test_without_a_radius_the_longest_action_is_it() -> None:
    assert summary_of(drive(0, 4), radius=None).action_radius == pytest.approx(math.sqrt(2) / 4)


def test_what_training_would_take_is_taken() -> None:
    facts = {"parameters": {"training": {"gamma": 0.5, "C": 1e6}}}
    summary = summary_of(drive(0, 4), **facts)
    assert (summary.gamma, summary.C) == (0.5, 1e6)
    assert summary.by_length[1:] == [1, 0, 0, 0]
    plain = summary_of(drive(0, 4))
    assert (plain.gamma, plain.C) == (0.99, 0.0)


def test_where_positions_are_unknown_the_constants_are() -> None:
    blind = drive(0, 4)
    nothing = np.empty(0)
    blind = replace(
        blind, final_position=nothing, goal=nothing, steps=[replace(step, position=nothing) for step in blind.steps]
    )
    summary = summary_of(blind)
    unknown = (summary.L_f, summary.L_V, summary.C_theorem, summary.guaranteed, summary.contracting)
    assert all(map(math.isnan, unknown))
    assert summary.shortcuts == 1.0
    assert "–" in shortcut_table([summary])


def test_standing_still_tells_nothing_of_the_constants() -> None:
    still = drive(0, 4)
    for step in still.steps:
        step.position, step.action = np.ones(2), np.zeros(2)
    assert math.isnan(summary_of(replace(still, final_position=np.ones(2))).L_f)


def test_only_logged_steps_count_for_the_logging_policy() -> None:
    back = drive(0, 4)
    positions = [step.position for step in back.steps] + [back.final_position]
    for step, position in zip(back.steps, reversed(positions), strict=False):
        step.position = position
    assert summary_of(back).improving < 0.5
    augmented = replace(back, steps=[replace(step, source=type(step.source).AUGMENTOR) for step in back.steps])
    assert math.isnan(summary_of(augmented).improving)


def test_nothing_to_sum_up() -> None:
    assert summarise_shortcuts("run", [], {}, None) is None
    unknown = drive(0, 4, rewarded=False, outcome=Outcome.STEP_LIMIT)
    assert summarise_shortcuts("run", [unknown, drive(1, 1)], {}, None) is None


def test_of_many_episodes_some_are_taken() -> None:
    assert summary_of(*(drive(index, 2) for index in range(50))).episodes == EPISODE_LIMIT


def test_the_heatmap_averages_over_the_episodes_that_hold_the_pair() -> None:
    scenario = load_scenario("po-blend-d2")
    episodes = collect(scenario, episodes=2, seed=0, progress=False)
    found = summarise_shortcuts("run", episodes, {}, scenario.action_radius)
    assert found is not None
    largest = [
        largest_constants(
            np.array([step.action for step in episode.steps]),
            [step.reward for step in episode.steps],
            gamma=0.99,
            action_radius=0.3,
        )
        for episode in episodes
    ]
    assert found[1][3, 2] == pytest.approx(np.mean([entry[2, 5] for entry in largest]))
    assert np.isnan(found[1][:2]).all()
    assert 0 < found[0].shortcuts < 1
    assert 0.5 < found[0].contracting <= 1


def test_regions_that_rotate_differently_are_no_contraction() -> None:
    """The paper's example: the walk contracts under one matrix, and less so where regions are rotated apart."""
    shares = []
    for name in ("po-none-d2", "po-regrot-d2"):
        scenario = load_scenario(name)
        found = summarise_shortcuts(name, collect(scenario, episodes=5, seed=0, progress=False), {}, 0.3)
        assert found is not None
        shares.append(found[0].contracting)
    assert shares[1] < shares[0]
