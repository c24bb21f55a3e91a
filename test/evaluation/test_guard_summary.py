"""What the guard decided can be told from a recorded run alone."""

from __future__ import annotations

from dataclasses import asdict, replace

import pytest

from lift_ros.collection.guard import Guard
from lift_ros.collection.loop import collect
from lift_ros.collection.records import Episode
from lift_ros.evaluation.guard_summary import UNKNOWN, guard_changes
from lift_ros.scenario import DEFAULT_GUARD, load_scenario

SETTINGS = DEFAULT_GUARD.on(hardware=True)


@pytest.fixture(scope="module")
def episodes() -> list[Episode]:
    scenario = load_scenario("po-blend-d2")
    augmentor = scenario.make_augmentation("uniform")
    return collect(scenario, None, augmentor, episodes=25, seed=0, p=0.8, guard=Guard(SETTINGS), progress=False)


def test_each_change_has_a_row_with_its_reason(episodes: list[Episode]) -> None:
    changes = guard_changes({"p": 0.8, "budget": 20, "guard": asdict(SETTINGS)}, episodes)
    assert changes[0] == (0, 0.0, 0, "the routine alone, to compare with", False)
    assert changes[1][1:] == (0.4, 2, "starts small", False)
    assert str(changes[1]) == f"guard: from episode {changes[1].episode}: p=0.4, budget 2: starts small"
    assert all(change.why != UNKNOWN for change in changes)


def test_what_does_not_follow_from_the_episodes_is_not_explained(episodes: list[Episode]) -> None:
    other = replace(SETTINGS, plain=1, horizon=10_000)
    changes = guard_changes({"p": 0.8, "budget": 20, "guard": asdict(other)}, episodes)
    assert UNKNOWN in {change.why for change in changes}


def test_a_run_without_a_guard_has_no_changes(episodes: list[Episode]) -> None:
    assert guard_changes({"p": 0.8, "budget": 20}, episodes) == []
    assert guard_changes({"p": 0.8, "budget": 20, "guard": None}, episodes) == []
