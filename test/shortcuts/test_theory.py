"""The theory's conditions on trajectories whose constants are known."""

from __future__ import annotations

import numpy as np
import pytest
from literal_algorithm import Trajectories

from lift_ros.errors import UserError
from lift_ros.shortcuts import candidates, theory

GAMMA = 0.95


def straight(steps: int = 30, size: int = 2) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return positions, actions and rewards of a walk with linear dynamics, axis by axis to the origin."""
    rng = np.random.default_rng(0)
    response = np.eye(size) + rng.normal(0, 0.3, (size, size))
    actions = np.zeros((steps, size))
    actions[np.arange(steps), np.arange(steps) % size] = -0.05
    positions = np.concatenate((np.zeros((1, size)), np.cumsum(actions @ response, axis=0)))
    positions -= positions[-1]
    return positions, actions, -np.linalg.norm(positions[1:], axis=1)


def test_linear_dynamics_have_no_placement_errors() -> None:
    positions, actions, _ = straight()
    assert np.nanmax(theory.placement_errors(positions, actions)) < 1e-12
    assert theory.placement_constant(positions, actions) < 1e-12


def test_errors_are_what_no_linear_response_explains() -> None:
    """Three equal actions move by 1, 1 and 4 on a line: the best response is 2 per action."""
    errors = theory.placement_errors([[0.0], [1.0], [2.0], [6.0]], [[1.0], [1.0], [1.0]])
    np.testing.assert_allclose(errors[0, 1:], [1, 2, 0], atol=1e-12)
    np.testing.assert_allclose(errors[1, 2:], [1, 1])
    assert np.isnan(errors[2, 2]) and np.isnan(errors[2, 1])
    assert theory.placement_constant([[0.0], [1.0], [2.0], [6.0]], [[1.0], [1.0], [1.0]]) == pytest.approx(2)
    assert theory.placement_constant([[0.0], [1.0], [2.0], [6.0]], [[1.0], [1.0], [1.0]], quantile=0.5) < 2


def test_bent_movements_are_found_without_knowing_the_plant() -> None:
    positions, actions, _ = straight()
    bent = positions + 0.1 * np.sin(20 * positions)
    assert theory.placement_constant(bent, actions) > 0.1


def test_lipschitz_constant_of_a_linear_value() -> None:
    """With γ = 0 the value is the reward, here −3 times the position."""
    positions = np.linspace(1, 0, 11)[:, None]
    assert theory.lipschitz_constant(positions, -3 * positions[:-1], 0.0) == pytest.approx(3)


def test_lipschitz_constant_leaves_out_pairs_that_are_too_close() -> None:
    positions = np.array([[0.0], [1e-9], [1.0]])
    assert theory.lipschitz_constant(positions, [0.0, -1.0, -2.0], 0.0) == pytest.approx(2)
    assert theory.lipschitz_constant(positions, [0.0, -1.0, -2.0], 0.0, closest=0) == pytest.approx(1e9)


@pytest.mark.parametrize("terminated", [True, False])
@pytest.mark.parametrize("radius", [0.3, float("inf")])
@pytest.mark.parametrize("constant", [0.0, theory.theorem_constant(GAMMA, 0.1, 4.0)])
def test_what_is_admitted_is_what_the_algorithm_takes(terminated: bool, radius: float, constant: float) -> None:
    walks = Trajectories(0, [25], step=0.05)
    actions, rewards, _ = walks.episode(0)
    largest = theory.largest_constants(actions, rewards, gamma=GAMMA, terminated=terminated, action_radius=radius)
    assert largest.shape == (25, 26)
    for i in range(24):
        found, _ = candidates(actions, rewards, i, gamma=GAMMA, C=constant, action_radius=radius, terminated=terminated)
        np.testing.assert_array_equal(np.flatnonzero(largest[i] >= constant), found)


def test_theorem_holds_where_it_says_so() -> None:
    """A guaranteed pair must lead to a state whose value is as good as the definition of a shortcut demands."""
    positions, actions, rewards = straight(60)
    values = [sum(GAMMA ** (k - i) * rewards[k] for k in range(i, 60)) for i in range(60)] + [0.0]
    mask = theory.largest_constants(actions, rewards, gamma=GAMMA) >= theory.theorem_constant(GAMMA, 0.0, 1.0)
    assert mask.sum() > 1000
    for i, j in zip(*np.nonzero(mask), strict=True):
        assert GAMMA * values[j] - values[i] >= np.linalg.norm(positions[j]) - 1e-9


def test_without_placement_errors_every_pair_of_an_improving_walk_is_guaranteed() -> None:
    _, actions, rewards = straight()
    largest = theory.largest_constants(actions, np.sort(rewards), gamma=GAMMA)
    guaranteed = largest >= theory.theorem_constant(GAMMA, 0.0, 100.0)
    np.testing.assert_array_equal(guaranteed, np.arange(31) > np.arange(30)[:, None])


def test_pairs_outside_the_action_ball_are_never_taken() -> None:
    walks = Trajectories(1, [20], step=0.05, share_terminated=1.0)
    actions, rewards, _ = walks.episode(0)
    largest = theory.largest_constants(actions, rewards, gamma=GAMMA, action_radius=0.3)
    assert np.isinf(np.diagonal(largest, 1)).all()
    for i in range(20):
        for j in range(i + 2, 21):
            assert np.isfinite(largest[i, j]) == (np.linalg.norm(actions[i:j].sum(axis=0)) <= 0.3)


def test_steps_towards_the_goal_contract_and_steps_in_two_directions_do_not() -> None:
    halving = [[8.0], [4.0], [2.0], [1.0]]
    assert theory.contracting_pairs(halving, [True, True, True]) == (3, 3)
    doubling = halving[::-1]
    assert theory.contracting_pairs(doubling, [True, True, True]) == (0, 3)
    assert theory.contracting_pairs(doubling, [True, False, True]) == (0, 1)
    parallel = [[0.0, 3.0], [0.0, 2.0], [0.0, 1.0]]
    assert theory.contracting_pairs(parallel, [True, True]) == (1, 1)


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: theory.placement_errors(np.zeros((3, 1)), np.zeros((3, 1))), "final one"),
        (lambda: theory.placement_errors(np.full((3, 1), np.nan), np.zeros((2, 1))), "NaN"),
        (lambda: theory.placement_constant(np.zeros((3, 1)), np.zeros((2, 1))), "No pair"),
        (lambda: theory.lipschitz_constant(np.zeros((3, 1)), np.zeros(7), 0.9), "3 positions for 7 rewards"),
        (lambda: theory.lipschitz_constant(np.eye(3), np.zeros(3), 0.9, quantile=2), "quantile is 2"),
        (lambda: theory.theorem_constant(0.9, -1.0, 1.0), "negative"),
    ],
)
def test_bad_input_is_named(call: object, named: str) -> None:
    with pytest.raises(UserError, match=named):
        call()  # type: ignore[operator]
