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


def test_errors_of_a_known_plant() -> None:
    """f(s, a) = s + (1 + s)·a on a line: the accumulated action misses by what the factor changes on the way."""

    def move(position: np.ndarray, action: np.ndarray) -> np.ndarray:
        return position + (1 + position) * action

    actions = np.full((4, 1), 0.1)
    positions = [np.zeros(1)]
    for action in actions:
        positions.append(move(positions[-1], action))
    errors = theory.placement_errors(positions, actions, move)
    assert errors[0, 1] == pytest.approx(0)
    assert errors[0, 2] == pytest.approx(positions[2][0] - 0.2)
    assert errors[1, 4] == pytest.approx(abs(move(positions[1], np.array([0.3]))[0] - positions[4][0]))
    assert np.isnan(errors[2, 2]) and np.isnan(errors[3, 1])
    largest = max(errors[i, j] / (0.1 * (j - i)) for i in range(4) for j in range(i + 1, 5))
    assert theory.placement_constant(positions, actions, move=move) == pytest.approx(largest)
    assert theory.placement_constant(positions, actions, quantile=0.5, move=move) < largest


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
def test_theorem_is_the_algorithm_with_its_constant(terminated: bool, radius: float) -> None:
    walks = Trajectories(0, [25], step=0.05)
    walks.terminated[:] = terminated
    actions, rewards, _ = walks.episode(0)
    mask = theory.theorem_mask(
        actions, rewards, gamma=GAMMA, L_f=0.1, L_V=4.0, terminated=terminated, action_radius=radius
    )
    assert mask.shape == (25, 26)
    constant = (GAMMA * 4 + 1) * 0.1
    for i in range(25):
        found, _ = candidates(actions, rewards, i, gamma=GAMMA, C=constant, action_radius=radius, terminated=terminated)
        np.testing.assert_array_equal(np.flatnonzero(mask[i]), found)


def test_theorem_holds_where_it_says_so() -> None:
    """A guaranteed pair must lead to a state whose value is as good as the definition of a shortcut demands."""
    positions, actions, rewards = straight(60)
    values = [sum(GAMMA ** (k - i) * rewards[k] for k in range(i, 60)) for i in range(60)] + [0.0]
    mask = theory.theorem_mask(actions, rewards, gamma=GAMMA, L_f=0.0, L_V=1.0)
    assert mask.sum() > 1000
    for i, j in zip(*np.nonzero(mask), strict=True):
        assert GAMMA * values[j] - values[i] >= np.linalg.norm(positions[j]) - 1e-9


def test_without_placement_errors_every_pair_of_an_improving_walk_is_guaranteed() -> None:
    _, actions, rewards = straight()
    rewards = np.sort(rewards)
    mask = theory.theorem_mask(actions, rewards, gamma=GAMMA, L_f=0.0, L_V=100.0)
    np.testing.assert_array_equal(mask, np.arange(31) > np.arange(30)[:, None])


def test_largest_constant_is_the_border_of_what_is_admitted() -> None:
    walks = Trajectories(1, [20], step=0.05, share_terminated=1.0)
    actions, rewards, _ = walks.episode(0)
    largest = theory.largest_constants(actions, rewards, gamma=GAMMA, action_radius=0.3)
    assert np.isinf(np.diagonal(largest, 1)).all()
    borders = 0
    for i in range(20):
        for j in range(i + 2, 21):
            inside = np.linalg.norm(actions[i:j].sum(axis=0)) <= 0.3
            assert np.isfinite(largest[i, j]) == inside
            if inside and largest[i, j] > 0:
                borders += 1
                for factor, admitted in ((0.999, True), (1.001, False)):
                    mask = theory.candidate_mask(
                        actions, rewards, gamma=GAMMA, C=factor * largest[i, j], action_radius=0.3
                    )
                    assert mask[i, j] == admitted
    assert borders > 10


def test_heatmap_averages_over_the_episodes_that_hold_the_pair() -> None:
    walks = Trajectories(2, [10, 16], step=0.02, share_terminated=1.0)
    heatmap = theory.constants_heatmap(
        walks.actions, walks.rewards, walks.offsets, walks.terminated, gamma=GAMMA, longest_start=12, longest_offset=15
    )
    assert heatmap.shape == (16, 13)
    short, long = (theory.largest_constants(*walks.episode(k)[:2], gamma=GAMMA) for k in range(2))
    assert heatmap[3, 2] == pytest.approx((short[2, 5] + long[2, 5]) / 2)
    assert heatmap[3, 10] == pytest.approx(long[10, 13])
    assert np.isnan(heatmap[:2]).all() and np.isnan(heatmap[5, 12])


def test_standing_still_is_left_out_of_the_heatmap() -> None:
    heatmap = theory.constants_heatmap(np.zeros((4, 1)), [-2.0, -1.0, -1.0, -1.0], [0, 4], [True], gamma=GAMMA)
    assert np.isnan(heatmap).all()


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
