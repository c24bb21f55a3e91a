from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lift_ros.errors import UserError
from lift_ros.positioning import DISTORTIONS
from lift_ros.positioning.distortions import make_distortion
from lift_ros.positioning.dynamics import Dynamics
from lift_ros.positioning.problem import Problem
from lift_ros.positioning.simulated import SimulatedPositioning

NAMES = sorted(DISTORTIONS)


def make(name: str = "blend", dim: int = 2, observation: str = "position", **changes: object) -> SimulatedPositioning:
    settings = {"action_radius": 0.3, "threshold": 0.02, "step_limit": 100, **changes}
    return SimulatedPositioning(Dynamics(make_distortion(name, dim), observation=observation, **settings))


def test_is_a_problem() -> None:
    problem = make(dim=3)
    assert isinstance(problem, Problem)
    limits = problem.limits
    assert (limits.observation_size, limits.action_size, limits.action_radius, limits.step_limit) == (3, 3, 0.3, 100)
    assert limits.workspace is not None
    low, high = limits.workspace
    assert (low == -1).all() and (high == 1).all()


@pytest.mark.parametrize("name", NAMES)
def test_an_episode_follows_from_its_seed_alone(name: str) -> None:
    problem, other = make(name, 3, "displacement"), make(name, 3, "displacement")
    rng = np.random.default_rng(1)
    actions = rng.normal(0, 0.1, (20, 3))
    first = [problem.reset(7), *(problem.step(action) for action in actions)]
    problem.reset(8)
    problem.step(actions[0])
    for a, b in zip(first, [problem.reset(7), *(problem.step(action) for action in actions)], strict=True):
        assert np.array_equal(a.values, b.values)
    other.reset(7)
    assert np.array_equal(other.step(actions[0]).position, first[1].position)
    assert not np.array_equal(other.reset(8).values, first[0].values)


@settings(deadline=None, derandomize=True, max_examples=60)
@given(
    name=st.sampled_from(NAMES),
    seed=st.integers(0, 2**63 - 1),
    dim=st.integers(1, 6),
    observation=st.sampled_from(["position", "displacement"]),
)
def test_what_is_told_belongs_together(name: str, seed: int, dim: int, observation: str) -> None:
    problem = make(name, dim, observation)
    rng = np.random.default_rng(seed)
    seen = problem.reset(seed)
    assert math.isnan(seen.reward) and not seen.terminated
    goal, context = seen.goal.copy(), seen.context.copy()
    for _ in range(10):
        seen = problem.step(rng.normal(0, 1, dim))
        distance = np.linalg.norm(seen.position - seen.goal)
        assert seen.reward == pytest.approx(-distance, abs=1e-14)
        assert seen.terminated == (-seen.reward <= 0.02)
        assert (np.abs(seen.position) <= 1).all()
        assert np.array_equal(seen.goal, goal) and np.array_equal(seen.context, context)
        expected = seen.position if observation == "position" else seen.position - seen.goal
        assert np.array_equal(seen.values, expected)


def test_position_observations_have_one_goal_and_displacements_a_random_one() -> None:
    assert all((make().reset(seed).goal == 0).all() for seed in range(5))
    assert all(np.array_equal(make(goal=(0.5, -0.5)).reset(seed).goal, [0.5, -0.5]) for seed in range(5))
    goals = np.array([make(observation="displacement").reset(seed).goal for seed in range(200)])
    assert goals.min() < -0.9 and goals.max() > 0.9


def test_no_episode_begins_at_its_goal() -> None:
    problem = make("none", 1, threshold=0.5)
    assert all(abs(problem.reset(seed).position[0]) > 0.5 for seed in range(100))


def test_a_long_action_is_shortened_onto_the_ball() -> None:
    problem = make("none")
    start = problem.reset(0).position
    inward = -np.sign(start) * np.array([30.0, 40.0])
    moved = problem.step(inward).position - start
    np.testing.assert_allclose(moved, inward / 50 * 0.3, rtol=1e-12)


def test_movement_stops_at_the_border() -> None:
    problem = make("none")
    problem.reset(0)
    for _ in range(20):
        seen = problem.step(np.array([0.25, 0.1]))
    assert np.array_equal(seen.position, [1.0, 1.0])


def test_what_was_told_may_be_changed_freely() -> None:
    problem = make()
    seen = problem.reset(0)
    for array in (seen.values, seen.position, seen.goal, seen.context):
        array[...] = 99.0
    untouched = make()
    untouched.reset(0)
    action = np.array([0.1, 0.1])
    seen, expected = problem.step(action), untouched.step(action)
    for name in ("values", "position", "goal", "context"):
        assert np.array_equal(getattr(seen, name), getattr(expected, name)), name


def test_bad_use_says_what_is_wrong() -> None:
    problem = make()
    with pytest.raises(UserError, match="reset"):
        problem.step(np.zeros(2))
    problem.reset(0)
    with pytest.raises(UserError, match="2 entries"):
        problem.step(np.zeros(3))
    with pytest.raises(UserError, match="finite"):
        problem.step(np.array([np.nan, 0.0]))
    with pytest.raises(UserError, match=r"action_radius.*> 0.*-1"):
        make(action_radius=-1)
    with pytest.raises(UserError, match="step_limit"):
        make(step_limit=0)
    with pytest.raises(UserError, match=r"goal must have 2 entries within \[-1, 1\]"):
        make(goal=(2.0, 0.0))
    with pytest.raises(UserError, match="fixed goal"):
        make(observation="displacement", goal=(0.0, 0.0))
    with pytest.raises(UserError, match="position, displacement"):
        make(observation="image")
