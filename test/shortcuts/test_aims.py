"""Aims head straight for what a logging policy reached on detours."""

from __future__ import annotations

import numpy as np
import pytest

from lift_ros.shortcuts.aims import make_aims
from lift_ros.shortcuts.pairs import make_rows
from lift_ros.shortcuts.rule import Rule, make_nodes
from lift_ros.shortcuts.sampler import ShortcutSampler

RADIUS = 0.3


def walk(*legs: tuple[int, float, float], size: int = 2) -> np.ndarray:
    """Return the actions of legs, each given by axis, signed step and distance."""
    actions = []
    for axis, step, distance in legs:
        action = np.zeros(size)
        action[axis] = step
        actions += [action] * round(distance / abs(step))
    return np.array(actions)


def distances(actions: np.ndarray, start: np.ndarray) -> np.ndarray:
    return np.asarray(-np.linalg.norm(start + np.cumsum(actions, axis=0), axis=1))


def aims_of(actions: np.ndarray, rewards: np.ndarray, radius: float = RADIUS) -> np.ndarray:
    nodes = make_nodes(actions, rewards, [0, len(actions)], [True], Rule(0.99, 0.0, radius, "best"))
    return make_aims(nodes, make_rows(nodes, 0))


def test_from_afar_the_aim_is_the_straight_way_at_full_length() -> None:
    actions = walk((0, -0.05, 1.0), (1, -0.05, 1.0))
    aims = aims_of(actions, distances(actions, np.array([1.0, 1.0])))
    assert aims[0] == pytest.approx(-RADIUS / np.sqrt(2) * np.ones(2), abs=0.01)
    assert aims[10] == pytest.approx(-RADIUS * np.array([0.5, 1.0]) / np.hypot(0.5, 1.0), abs=0.01)


def test_within_the_ball_the_aim_is_the_best_shortcut() -> None:
    actions = walk((0, -0.05, 1.0), (1, -0.05, 1.0))
    aims = aims_of(actions, distances(actions, np.array([1.0, 1.0])))
    assert aims[-3] == pytest.approx([0.0, -0.15])
    assert aims[18] == pytest.approx(-RADIUS * np.array([0.1, 1.0]) / np.hypot(0.1, 1.0), abs=0.02)


def test_no_aim_is_longer_than_the_ball() -> None:
    rng = np.random.default_rng(0)
    actions = rng.normal(0.0, 0.05, (300, 3))
    aims = aims_of(actions, distances(actions, np.ones(3)))
    assert np.linalg.norm(aims, axis=1).max() <= RADIUS * (1 + 1e-6)


def test_where_nothing_is_gained_the_best_shortcut_stays() -> None:
    actions = walk((0, 0.05, 0.5))
    aims = aims_of(actions, distances(actions, np.zeros(2)))
    assert aims == pytest.approx(actions)


def test_long_episodes_are_looked_at_in_landmarks_and_still_end_at_the_goal() -> None:
    actions = walk((0, -0.0025, 1.0), (1, -0.0025, 1.0))
    aims = aims_of(actions, distances(actions, np.array([1.0, 1.0])))
    assert len(actions) == 800
    assert aims[0] == pytest.approx(-RADIUS / np.sqrt(2) * np.ones(2), abs=0.01)
    assert aims[-2] == pytest.approx([0.0, -0.005])


def test_the_sampler_gives_them_beside_the_shortcuts_actions() -> None:
    actions = walk((0, -0.05, 1.0), (1, -0.05, 1.0))
    rewards = distances(actions, np.array([1.0, 1.0]))
    arguments = (np.zeros((40, 2)), actions, rewards, [0, 40], [True])
    far = ShortcutSampler(*arguments, action_radius=RADIUS, strategy="best", far=True).sample(100)
    drawn = ShortcutSampler(*arguments, action_radius=RADIUS, strategy="best").sample(100)
    assert np.array_equal(far.actions, drawn.actions)
    assert np.array_equal(drawn.aims, drawn.actions)
    assert far.aims == pytest.approx(aims_of(actions, rewards)[far.starts], abs=1e-6)


def test_plain_transitions_are_their_own_aims() -> None:
    actions = walk((0, -0.05, 1.0))
    arguments = (np.zeros((20, 2)), actions, distances(actions, np.array([1.0, 0.0])), [0, 20], [True])
    batch = ShortcutSampler(*arguments, action_radius=RADIUS, strategy="none", far=True).sample(10)
    assert np.array_equal(batch.aims, batch.actions)


def test_aims_and_ways_lead_on_to_where_the_goal_is_known_to_be() -> None:
    actions = walk((0, -0.05, 1.0))
    arguments = (np.zeros((20, 2)), actions, distances(actions, np.array([1.05, 0.04])), [0, 20], [True])
    rest = np.array([[-0.05, -0.04]])
    plain, whole = (
        ShortcutSampler(*arguments, action_radius=RADIUS, strategy="best", far=True, rests=rests)
        for rests in (None, rest)
    )
    assert plain.ways_left()[[0, 19]] == pytest.approx(np.array([[-1.0, 0.0], [-0.05, 0.0]]), abs=1e-6)
    assert whole.ways_left() == pytest.approx(plain.ways_left() + rest, abs=1e-6)
    batch = whole.sample(200)
    last = batch.aims[batch.starts == 19]
    assert len(last) and last == pytest.approx(np.tile([-0.1, -0.04], (len(last), 1)), abs=1e-6)
    assert np.array_equal(batch.actions, plain.sample(200).actions)  # what was done stays what was done


def test_drawn_shortcuts_lead_on_only_where_they_end_with_their_episode() -> None:
    actions = walk((0, -0.05, 0.5), (1, -0.05, 0.5))
    rewards = distances(actions, np.array([0.51, 0.51]))
    arguments = (np.zeros((len(actions), 1)), actions, rewards, [0, len(actions)], [True])
    rest = np.array([[0.0, -0.01]])
    sampler = ShortcutSampler(*arguments, action_radius=RADIUS, strategy="best", rests=rest)
    batch = sampler.sample(200)
    ended = batch.terminals[:, 0] > 0
    assert 0 < ended.sum() < 200
    assert np.array_equal(batch.aims[~ended], batch.actions[~ended])
    wanted = batch.actions[ended] + rest
    lengths = np.linalg.norm(wanted, axis=1, keepdims=True)
    assert batch.aims[ended] == pytest.approx(wanted * np.minimum(1.0, RADIUS / lengths), abs=1e-6)
    assert (lengths > RADIUS).any()
