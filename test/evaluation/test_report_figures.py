"""The report's figures show each phase on axes that suit all of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from report_samples import assert_inside, make_episode

from lift_ros.collection.records import Episode, Mode, Outcome, Source
from lift_ros.evaluation.phases import Phase, split_phases
from lift_ros.evaluation.report_figures import Drawing, convergence, steps_per_episode, trajectories
from lift_ros.scenario import Units

ROUTINE = [make_episode(length, Mode.COLLECT, Source.LOGGING_POLICY) for length in (180, 200, 220)]
LIFT = [make_episode(length, Mode.COLLECT, Source.AUGMENTOR) for length in (5, 6, 7)]
LEARNED = [make_episode(4, Mode.EVALUATE, Source.AUGMENTOR)]
ALL = split_phases([*ROUTINE, *LIFT, *LEARNED])


def axes_of(drawing: Drawing) -> list[Any]:
    assert drawing.draw is not None
    figure = drawing.draw()
    assert_inside(figure)
    return list(figure.axes)


def without_goal(episode: Episode) -> Episode:
    """The same episode as a rig records it that knows neither goal nor reward and did not arrive."""
    episode.goal, episode.outcome = np.empty(0), Outcome.STEP_LIMIT
    for step in episode.steps:
        step.reward = float("nan")
    return episode


def test_convergence_reaches_until_the_routine_arrives() -> None:
    (axes,) = axes_of(convergence(ALL, 0.05, "mm"))
    assert axes.get_xlim()[1] >= 220
    routine = axes.get_lines()[0]
    assert routine.get_label() == Phase.LOGGING_POLICY.value and min(routine.get_ydata()) < 0.05
    assert "logarithmic beyond 8" in axes.get_xlabel()  # so that four steps can be seen beside 220
    assert axes.get_ylim()[0] > 0.001 and "[mm]" in axes.get_ylabel()


def test_steps_like_each_other_are_on_a_straight_axis() -> None:
    (axes,) = axes_of(convergence(split_phases(ROUTINE), 0.05))
    assert axes.get_xscale() == "linear" and axes.get_xlabel() == "step"


def test_steps_are_shown_apart_for_each_phase_on_one_scale() -> None:
    panels = axes_of(steps_per_episode(ALL))
    assert [axes.get_title() for axes in panels] == [
        "logging policy\nmean 200.0",
        "LIFT collection\nmean 6.0",
        "learned policy\nmean 4.0",
    ]
    assert len({axes.get_ylim() for axes in panels}) == 1
    assert list(panels[1].get_lines()[0].get_ydata()) == [5, 6, 7]


def test_episodes_that_did_not_arrive_are_marked() -> None:
    lost = without_goal(make_episode(9, Mode.COLLECT, Source.LOGGING_POLICY))
    (axes,) = axes_of(steps_per_episode(split_phases([lost, *ROUTINE])))
    assert list(axes.get_lines()[1].get_ydata()) == [9]


def test_paths_of_all_phases_share_a_square() -> None:
    panels = axes_of(trajectories(ALL, Units("micrometres")))
    assert [axes.get_title() for axes in panels] == [phase.value for phase in ALL]
    assert {(axes.get_xlabel(), axes.get_ylabel()) for axes in panels} == {
        ("axis 1 [micrometres]", "axis 2 [micrometres]")
    }
    (limits,) = {(*axes.get_xlim(), *axes.get_ylim()) for axes in panels}
    assert np.isclose(limits[1] - limits[0], limits[3] - limits[2])


def test_five_phases_take_two_rows() -> None:
    others = [make_episode(4, mode, Source.AUGMENTOR) for mode in (Mode.SHADOW, Mode.ASSIST)]
    panels = axes_of(trajectories(split_phases([*ROUTINE, *LIFT, *LEARNED, *others])))
    assert len({axes.get_position().y0.round(3) for axes in panels if axes.get_visible()}) == 2


def test_paths_without_a_goal_are_left_out_beside_those_with_one() -> None:
    lost = without_goal(make_episode(9, Mode.COLLECT, Source.LOGGING_POLICY))
    drawing = trajectories(split_phases([lost, *LIFT]))
    assert "Left out: 1 episodes that have no known goal." in drawing.caption
    assert len(axes_of(drawing)) == 1
    assert "Left out: 1 episodes" in convergence(split_phases([lost, *LIFT]), 0.05).caption


def test_positions_on_a_line_are_drawn_over_steps() -> None:
    episode = make_episode(6, Mode.COLLECT, Source.LOGGING_POLICY)
    for step in episode.steps:
        step.position = step.position[:1]
    episode.final_position, episode.goal = episode.final_position[:1], episode.goal[:1]
    (axes,) = axes_of(trajectories(split_phases([episode])))
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("step", "axis 1")
