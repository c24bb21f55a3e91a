from __future__ import annotations

import numpy as np
import pytest

from lift_ros.collection.loop import run_episode
from lift_ros.collection.records import Mode, Outcome
from lift_ros.errors import UserError
from lift_ros.policies.displacement import DirectPolicy
from lift_ros.policies.optimal import OptimalPolicy
from lift_ros.policies.protocol import InformedPolicy, Policy, inform
from lift_ros.positioning import DISTORTIONS
from lift_ros.positioning.ball import shorten, uniform_in_ball
from lift_ros.positioning.distortions import make_distortion
from lift_ros.positioning.dynamics import Dynamics
from lift_ros.positioning.problem import Observed
from lift_ros.positioning.simulated import SimulatedPositioning
from lift_ros.scenario import load_scenario


def test_shortens_onto_the_ball_only_what_is_longer() -> None:
    short = np.array([0.1, 0.1])
    assert shorten(short, 0.3) is short
    rng = np.random.default_rng(0)
    for action in rng.normal(0, 5, (200, 4)):
        cut = shorten(action, 0.3)
        assert 0.3 * (1 - 1e-12) < np.linalg.norm(cut) <= 0.3 or np.linalg.norm(action) <= 0.3
        assert np.dot(cut, action) == pytest.approx(np.linalg.norm(cut) * np.linalg.norm(action))


def test_uniform_in_the_ball() -> None:
    actions = uniform_in_ball(np.random.default_rng(0), 4000, 3, 0.5)
    radii = np.linalg.norm(actions, axis=1)
    assert radii.max() <= 0.5
    assert np.mean(radii < 0.25) == pytest.approx(1 / 8, abs=0.03)
    np.testing.assert_allclose(actions.mean(axis=0), 0, atol=0.02)


def test_direct_takes_the_largest_step_to_the_goal() -> None:
    policy = DirectPolicy(2, 0.5)
    np.testing.assert_allclose(policy.act(np.array([3.0, -4.0])), [-0.3, 0.4])
    np.testing.assert_allclose(policy.act(np.array([0.3, 0.1])), [-0.3, -0.1])
    np.testing.assert_allclose(DirectPolicy(2, 0.5, goal=[1.0, 1.0]).act(np.array([0.9, 1.2])), [0.1, -0.2])
    np.testing.assert_allclose(policy.act(np.array([0.0, 0.0, 0.1, 0.1])), [-0.1, -0.1])


@pytest.mark.parametrize("name", sorted(DISTORTIONS))
@pytest.mark.parametrize("dim", [1, 2, 3])
@pytest.mark.parametrize("observation", ["position", "displacement"])
def test_no_action_leads_closer_than_the_optimal_one(name: str, dim: int, observation: str) -> None:
    f = make_distortion(name, dim)
    dynamics = Dynamics(f, 0.4, 0.02, 100, observation)
    problem, policy = SimulatedPositioning(dynamics), OptimalPolicy(dynamics)
    rng = np.random.default_rng(0)
    trials = np.concatenate([uniform_in_ball(rng, 2000, dim, 0.4), rng.normal(size=(500, dim))])
    trials[2000:] *= 0.4 / np.linalg.norm(trials[2000:], axis=1, keepdims=True)
    for seed in range(6):
        seen = problem.reset(seed)
        policy.set_context(seen)
        context = seen.context.reshape(f.context_shape)
        for _ in range(3):
            action = policy.act(seen.values)
            assert np.linalg.norm(action) <= 0.4
            best = np.linalg.norm(f(seen.position, action, context) - seen.goal)
            others = np.linalg.norm(f(seen.position, trials, context) - seen.goal, axis=1)
            assert best <= others.min() + 1e-9
            seen = problem.step(trials[rng.integers(2000)])


@pytest.mark.parametrize("name", ["po-blend-d5", "po-rot-d5", "po-sin-d5", "po-scale-d5", "po-sqrt-d5"])
def test_optimal_needs_fewer_steps_than_the_walk(name: str) -> None:
    scenario = load_scenario(name)
    problem = scenario.make_problem()
    steps = []
    for policy in (scenario.make_policy("optimal"), scenario.make_policy("coordinate_walk", {"step": 0.1})):
        seen = problem.reset(0)
        inform(policy, seen)
        policy.reset()
        count = 0
        while not seen.terminated:
            seen = problem.step(policy.act(seen.values))
            count += 1
        steps.append(count)
    assert steps[0] < steps[1] / 2


def test_optimal_evaluates_and_augments_in_process() -> None:
    scenario = load_scenario("po-blend-d2")
    problem, optimal = scenario.make_problem(), scenario.make_policy("optimal")
    alone = run_episode(problem, None, optimal, index=0, run_seed=0, mode=Mode.EVALUATE)
    assert alone.outcome is Outcome.REACHED and len(alone.steps) < 10
    walk = scenario.make_logging_policy()
    plain = run_episode(problem, walk, index=0, run_seed=0)
    lifted = run_episode(problem, walk, optimal, index=0, run_seed=0, p=0.6)
    assert lifted.outcome is Outcome.REACHED and len(lifted.steps) < len(plain.steps)


def test_only_the_informed_are_told() -> None:
    policy = load_scenario("po-rot-d2").make_policy("optimal")
    assert isinstance(policy, InformedPolicy) and isinstance(policy, Policy)
    direct = DirectPolicy(2, 0.5)
    assert not isinstance(direct, InformedPolicy)
    inform(direct, Observed(np.zeros(2)))


def test_bad_use_says_what_is_wrong() -> None:
    policy = load_scenario("po-rot-d2").make_policy("optimal")
    with pytest.raises(UserError, match="set_context"):
        policy.act(np.zeros(2))
    with pytest.raises(UserError, match="simulation only"):
        inform(policy, Observed(np.zeros(2)))
    with pytest.raises(UserError, match=r"optimal.*fetch_reach"):
        load_scenario("fetch-reach").make_policy("optimal")
