from __future__ import annotations

import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from lift_ros.errors import UserError
from lift_ros.positioning import DISTORTIONS
from lift_ros.positioning.distortions import make_distortion
from lift_ros.positioning.dynamics import Dynamics
from lift_ros.positioning.environment import ActivePositioning
from lift_ros.positioning.simulated import SimulatedPositioning


@pytest.mark.parametrize("name", sorted(DISTORTIONS))
@pytest.mark.parametrize("observation", ["position", "displacement"])
def test_gymnasium_accepts_it(name: str, observation: str) -> None:
    environment = gymnasium.make("lift/Positioning-v0", distortion=name, dim=3, observation=observation)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(environment.unwrapped)


@pytest.mark.parametrize("observation", ["position", "displacement"])
def test_gives_the_numbers_of_the_problem(observation: str) -> None:
    environment = ActivePositioning("sin", dim=4, observation=observation)
    problem = SimulatedPositioning(Dynamics(make_distortion("sin", 4), 0.3, 0.02, 1000, observation))
    seen, info = environment.reset(seed=5)
    expected = problem.reset(5)
    rng = np.random.default_rng(0)
    for _ in range(20):
        assert np.array_equal(seen, expected.values)
        assert np.array_equal(info["position"], expected.position)
        assert np.array_equal(info["goal"], expected.goal)
        assert np.array_equal(info["context"].ravel(), expected.context)
        action = rng.normal(0, 0.2, 4)
        seen, reward, terminated, _, info = environment.step(action)
        expected = problem.step(action)
        assert (reward, terminated) == (expected.reward, expected.terminated)
        assert info["distance"] == -reward


def test_ends_at_the_goal_or_at_the_step_limit() -> None:
    environment = ActivePositioning("none", dim=2, step_limit=12, action_radius=0.3)
    observation, _ = environment.reset(seed=0)
    for _ in range(12):
        observation, _, terminated, truncated, _ = environment.step(-observation)
        if terminated:
            break
    assert terminated and not truncated
    environment.reset(seed=0)
    ends = [environment.step(np.zeros(2))[2:4] for _ in range(12)]
    assert ends == [(False, False)] * 11 + [(False, True)]


def test_unseeded_resets_go_on_from_the_seed() -> None:
    first, second = ActivePositioning(), ActivePositioning()
    first.reset(seed=3)
    second.reset(seed=3)
    episodes = [first.reset()[0] for _ in range(3)]
    assert all(np.array_equal(second.reset()[0], episode) for episode in episodes)
    assert not np.array_equal(episodes[0], episodes[1])


def test_bad_use_says_what_is_wrong() -> None:
    with pytest.raises(UserError, match="reset"):
        ActivePositioning().step(np.zeros(2))
    with pytest.raises(UserError, match="render_mode"):
        ActivePositioning(render_mode="human")


def test_gymnasium_finds_it_by_the_name_of_its_module() -> None:
    environment = gymnasium.make("lift_ros.positioning.environment:lift/Positioning-v0", dim=2)
    assert isinstance(environment.unwrapped, ActivePositioning)
