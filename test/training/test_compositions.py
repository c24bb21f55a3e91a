"""Composed pictures: any goal with the plant at any place, and what is told of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lift_ros.collection.loop import collect
from lift_ros.collection.records import Episode
from lift_ros.errors import UserError
from lift_ros.scenario import Scenario, parse_scenario
from lift_ros.training import train
from lift_ros.training.compositions import Composer, compose
from lift_ros.training.options import preset
from lift_ros.training.picture_learner import Lesson

# Two episodes of 3 and 2 steps, then one that reaches a goal in passing after 2 of its 4 steps.
OFFSETS = np.array([0, 3, 5, 7, 9])
ROWS = np.array([0, 1, 2, 4, 5, 7, 8, 9, 10])
ARRIVED = np.array([True, True, True, True])


def composer(share: float = 1.0, arrived: np.ndarray = ARRIVED) -> Composer:
    return Composer(share, OFFSETS, ROWS, arrived)


def test_every_step_is_shown_with_goals_that_other_episodes_had_at_their_start() -> None:
    steps = np.tile(np.arange(5), 40)
    drawn = composer().draw(steps, np.random.default_rng(0))
    assert drawn is not None
    assert np.array_equal(drawn.entries, np.arange(len(steps)))
    assert np.array_equal(drawn.starts, np.where(steps < 3, 0, 3))
    assert set(drawn.goals.tolist()) == {0, 3, 5}


def test_what_comes_after_a_goal_in_passing_is_not_composed() -> None:
    drawn = composer().draw(np.array([5, 6, 7, 8]), np.random.default_rng(0))
    assert drawn is not None and drawn.entries.tolist() == [0, 1]


def test_episodes_that_did_not_arrive_are_not_composed() -> None:
    arrived = np.array([False, True, True, True])
    drawn = composer(arrived=arrived).draw(np.tile(np.arange(5), 20), np.random.default_rng(0))
    assert drawn is not None
    assert set(drawn.starts.tolist()) == {3} and 0 not in drawn.goals


def test_the_share_says_how_many() -> None:
    steps = np.zeros(10_000, dtype=np.int64)
    drawn = composer(0.3).draw(steps, np.random.default_rng(1))
    assert drawn is not None and len(drawn.entries) == pytest.approx(3000, abs=200)
    assert composer(0.0).draw(steps, np.random.default_rng(1)) is None
    assert composer(arrived=np.zeros(4, dtype=bool)).draw(steps, np.random.default_rng(1)) is None


@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.float32])
def test_what_moved_stands_where_it_went_before_the_other_goal(kind: type) -> None:
    room, arm, goal = 10, 5, 9
    scene = np.full((1, 1, 8, 1), room, dtype=kind)
    before, after, other = scene.copy(), scene.copy(), scene.copy()
    before[0, 0, [0, 6], 0] = arm, goal
    after[0, 0, [3, 6], 0] = arm, goal
    other[0, 0, [0, 5], 0] = arm, goal
    wanted = scene.copy()
    wanted[0, 0, [3, 5], 0] = arm, goal
    made = compose(other, after, before)
    assert made.dtype == kind and np.array_equal(made, wanted)


def test_bytes_stay_within_black_and_white() -> None:
    values = [np.full((1, 1, 1, 1), value, dtype=np.uint8) for value in (250, 200, 100)]
    assert compose(*values).item() == 255
    assert compose(values[2], values[2], values[0]).item() == 0


def test_the_way_that_is_left_leads_from_where_the_plant_is_to_the_other_goal() -> None:
    ways = np.array([[3.0, 0], [2, 0], [1, 0], [0, 2], [0, 1], [1, 1], [1, 0], [5, 5], [4, 4]], dtype=np.float32)
    places = np.arange(36, dtype=np.float32).reshape(9, 4)
    lesson = Lesson(ways, np.ones(9, dtype=bool), places, composer())
    steps = np.array([1, 4, 8])
    rng = np.random.default_rng(3)
    composition = lesson.compose(steps, rng)
    assert composition is not None and composition.entries.tolist() == [0, 1]
    told = lesson.answers(steps, composition)
    gone = [ways[0] - ways[1], ways[3] - ways[4]]
    for entry in (0, 1):
        assert told.ways[entry] == pytest.approx(ways[composition.goals[entry]] - gone[entry])
        assert told.places is not None
        assert told.places[entry].tolist() == [*places[steps[entry], :2], *places[composition.goals[entry], 2:]]
    assert told.ways[2] == pytest.approx(ways[8])
    plain = lesson.answers(steps)
    assert np.array_equal(plain.ways, ways[steps]) and np.array_equal(ways[1], [2, 0])


def lens(**training: float) -> Scenario:
    content = {
        "plant": {"kind": "lens", "action_radius": 0.5, "threshold": 0.3, "picture_size": 16},
        "logging_policy": {"name": "coordinate_walk", "arguments": {"step": 0.2}},
        "sees": {"logging_policy": "values", "augmentor": "image"},
        "training": training,
    }
    return parse_scenario(content, "lens", "test")


@pytest.fixture(scope="module")
def episodes() -> list[Episode]:
    return collect(lens(), episodes=4, seed=0, progress=False)


def test_episodes_that_begin_at_different_places_are_refused_with_the_remedy(episodes: list[Episode]) -> None:
    scenario = lens(composed=0.5)
    options = preset("fast", scenario, lessons=2, updates=2)
    with pytest.raises(UserError, match="begin at one place.*set the option composed to 0"):
        train(episodes, options, action_radius=0.5, scenario=scenario)


def test_a_training_with_composed_pictures_can_be_repeated(episodes: list[Episode]) -> None:
    scenario = lens(composed=0.5)
    start = episodes[0].steps[0].position
    moved = [_from(episode, start) for episode in episodes]
    options = preset("fast", scenario, lessons=3, updates=2, picture_batch=8, maps=(4, 4))
    first, second, plain = (
        train(moved, each, action_radius=0.5, scenario=scenario).policy
        for each in (options, options, options.replaced({"composed": 0.0}))
    )
    assert first.hash == second.hash
    names = [name for name in first.encoder_tensors if name.endswith("weight")]
    assert any(not np.array_equal(first.encoder_tensors[name], plain.encoder_tensors[name]) for name in names)


def _from(episode: Episode, start: np.ndarray) -> Episode:
    """Return an episode as if it had begun at another place."""
    offset = start - episode.steps[0].position
    steps = [replace(step, position=step.position + offset) for step in episode.steps]
    return replace(episode, steps=steps, final_position=episode.final_position + offset)
