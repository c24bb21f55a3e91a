"""Actions beside positions: what is noticed, and what is left alone."""

from __future__ import annotations

import numpy as np
import pytest
from sample_run import drive

from lift_ros.bags.importing.consistency import doubts_of_actions
from lift_ros.bags.importing.mapping import DIFFERENCE, Action, MappedTopic
from lift_ros.collection.records import Episode

CHANNEL = MappedTopic("/move", ("delta",))


def episodes(factor: float) -> list[Episode]:
    made = [drive(number, 6) for number in range(3)]
    for episode in made:
        for step in episode.steps:
            step.action = factor * step.action
    return made


def doubts(factor: float, meaning: str = "increment", period: float = 0.1) -> str:
    return " ".join(doubts_of_actions(Action(CHANNEL, meaning), episodes(factor), period))


@pytest.mark.parametrize("factor", [0.4, 1.0, 2.5])
def test_what_a_plant_makes_of_its_commands_is_left_alone(factor: float) -> None:
    assert doubts(factor) == ""


def test_velocities_and_increments_are_told_apart_by_the_rate() -> None:
    assert "10 times as long" in doubts(10.0) and "`meaning: velocity`" in doubts(10.0)
    assert "10 times shorter" in doubts(0.1, "velocity") and "`meaning: increment`" in doubts(0.1, "velocity")


def test_another_unit_is_no_velocity() -> None:
    assert "1e+03 times as long" in doubts(1000.0) and "the same unit" in doubts(1000.0)
    assert "the same unit" in doubts(10.0, period=0.02)
    assert "the same unit" in doubts(0.05, "target")


def test_a_few_odd_steps_are_no_doubt() -> None:
    odd = episodes(1.0)
    for step in odd[0].steps:
        step.action = 100 * step.action
    assert doubts_of_actions(Action(CHANNEL, "increment"), odd, 0.1) == []


def test_nothing_is_said_where_nothing_can_be_compared() -> None:
    assert doubts_of_actions(Action(None, DIFFERENCE), episodes(10.0), 0.1) == []
    blind = episodes(10.0)
    for episode in blind:
        episode.final_position = np.empty(0)
        for step in episode.steps:
            step.position = np.empty(0)
    assert doubts_of_actions(Action(CHANNEL, "increment"), blind, 0.1) == []
    assert doubts_of_actions(Action(CHANNEL, "increment"), episodes(10.0)[:1][:0], 0.1) == []
