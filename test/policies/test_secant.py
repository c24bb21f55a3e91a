from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lift_ros.array_types import FloatArray
from lift_ros.errors import UserError
from lift_ros.evaluation.convergence import context_seeds, converge
from lift_ros.policies.loading import load_policy
from lift_ros.policies.protocol import Policy
from lift_ros.policies.secant import SecantPolicy
from lift_ros.scenario import load_scenario

CONTEXTS = context_seeds(0, 40)


def drive(policy: Policy, position: FloatArray, matrix: FloatArray, steps: int) -> list[float]:
    """Return the distances to the origin of a plant that multiplies actions by `matrix`."""
    distances = [float(np.linalg.norm(position))]
    for _ in range(steps):
        position = position + matrix @ policy.act(position)
        distances.append(float(np.linalg.norm(position)))
    return distances


def test_a_linear_plant_is_learned_within_twice_as_many_steps_as_it_has_axes() -> None:
    rng = np.random.default_rng(0)
    for dim in (1, 2, 5):
        for _ in range(20):
            matrix = np.eye(dim) + rng.normal(0, 0.2, (dim, dim))
            distances = drive(SecantPolicy(dim, 1e3), rng.uniform(-1, 1, dim), matrix, 2 * dim)
            assert distances[-1] < 1e-6


def test_a_known_gain_is_where_it_starts() -> None:
    assert drive(SecantPolicy(2, 10.0, gain=0.25), np.array([0.4, -0.3]), 0.25 * np.eye(2), 1)[1] < 1e-12


def test_actions_stay_in_the_ball() -> None:
    policy = SecantPolicy(3, 0.1)
    rng = np.random.default_rng(0)
    assert all(np.linalg.norm(policy.act(rng.uniform(-1, 1, 3))) <= 0.1 for _ in range(50))


@pytest.mark.parametrize("name", ["po-blend-d5", "po-rot-d5", "po-scale-d5", "po-regrot-d5", "po-sqrt-d5"])
def test_it_arrives_in_fewer_steps_than_going_straight(name: str) -> None:
    scenario = load_scenario(name)
    secant, direct = (converge(scenario, scenario.make_policy(policy), CONTEXTS) for policy in ("secant", "direct"))
    assert secant.success == 1.0
    assert np.mean(secant.arrivals) < 0.9 * np.nanmean(direct.arrivals)


def test_it_arrives_where_going_straight_fails() -> None:
    scenario = load_scenario("po-rot-d5")
    plant = replace(scenario.plant, parameters={**scenario.plant.parameters, "sigma": 0.5})
    scenario = replace(scenario, plant=plant)
    assert converge(scenario, scenario.make_policy("direct"), CONTEXTS).success < 1.0
    assert converge(scenario, scenario.make_policy("secant"), CONTEXTS).success == 1.0


def test_a_plant_that_does_not_move_for_a_while_does_no_harm() -> None:
    policy, stuck = SecantPolicy(2, 0.3), np.array([0.5, 0.2])
    for _ in range(200):
        assert np.isfinite(policy.act(stuck)).all()
    assert drive(policy, stuck, np.eye(2), 20)[-1] < 0.02


def test_a_step_of_no_length_teaches_nothing() -> None:
    policy = SecantPolicy(2, 0.3)
    assert policy.act(np.zeros(2)).tolist() == [0.0, 0.0]
    np.testing.assert_allclose(policy.act(np.array([0.1, 0.1])), [-0.1, -0.1])


def test_a_map_that_turns_around_under_way_is_unlearned() -> None:
    policy, matrix = SecantPolicy(2, 0.1), np.array([[0.0, -1.0], [1.0, 0.0]])
    assert drive(policy, np.array([1.0, 0.5]), matrix, 40)[-1] < 0.02
    assert drive(policy, np.array([1.0, 0.5]), -matrix, 60)[-1] < 0.02


def test_the_next_goal_keeps_the_map_but_not_the_last_step() -> None:
    matrix = np.array([[0.6, 0.3], [-0.3, 0.6]])
    policy, position = SecantPolicy(2, 10.0), np.array([0.5, -0.2])
    for _ in range(4):  # the second goal is 1 away from the first in both coordinates
        position = position + matrix @ policy.act(np.concatenate([position, position - 1.0]))
    assert np.linalg.norm(position) < 1e-9
    missing = np.concatenate([np.zeros(2), position - 1.0])
    kept, fresh = (position + matrix @ someone.act(missing) - 1.0 for someone in (policy, SecantPolicy(2, 10.0)))
    assert np.linalg.norm(kept) < 0.5 * np.linalg.norm(fresh)


def test_a_reset_forgets_the_map() -> None:
    policy, here = SecantPolicy(2, 1.0), np.array([0.3, 0.1])
    first = policy.act(here)
    policy.act(np.array([0.2, -0.1]))
    assert not np.allclose(policy.act(here), first)
    policy.reset()
    assert np.array_equal(policy.act(here), first)


def test_what_was_observed_may_be_overwritten_afterwards() -> None:
    policy, other, buffer = SecantPolicy(2, 1.0), SecantPolicy(2, 1.0), np.zeros(2)
    for values in ([0.5, 0.2], [0.3, 0.3], [0.1, 0.2]):
        buffer[:] = values
        assert np.array_equal(policy.act(buffer), other.act(np.array(values)))


def test_fetch_is_read_goal_by_goal() -> None:
    scenario = load_scenario("fetch-touch-and-place")
    assert converge(scenario, scenario.make_policy("secant"), CONTEXTS[:3]).success == 1.0


def test_bad_arguments_say_what_is_wrong() -> None:
    with pytest.raises(UserError, match="gain.*above 0, not 0"):
        SecantPolicy(2, 1.0, gain=0)
    with pytest.raises(UserError, match="gain"):
        load_policy("secant", {"action_radius": 1.0, "gain": -1.0}, 2, 2)
