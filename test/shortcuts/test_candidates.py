"""`candidates` against the algorithm word for word, and at its traps."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from literal_algorithm import literal_candidates, literal_probabilities

from lift_ros.errors import UserError
from lift_ros.shortcuts import STRATEGIES, candidates


@pytest.mark.parametrize("constant", [0.0, 0.3, 2.0])
@pytest.mark.parametrize(("terminated", "kappa"), [(True, 0.0), (False, 0.0), (True, 0.5), (False, 1.0), (True, -0.3)])
def test_agrees_with_the_algorithm_on_thousands_of_random_trajectories(
    constant: float, terminated: bool, kappa: float
) -> None:
    rng = np.random.default_rng(int(10 * constant) + terminated)
    for number in range(500):
        steps, size = int(rng.integers(1, 25)), int(rng.integers(1, 4))
        actions = rng.normal(0, 0.12, (steps, size))
        rewards = -rng.random(steps) - 1e-3
        gamma = float(rng.choice((0.0, 0.5, 0.9, 0.99, 1.0)))
        strategy = STRATEGIES[number % len(STRATEGIES)]
        i = int(rng.integers(steps))
        options = {"gamma": gamma, "C": constant, "action_radius": 0.3, "terminated": terminated, "kappa": kappa}
        found, probabilities = candidates(actions, rewards, i, strategy=strategy, **options)
        expected = literal_candidates(actions.tolist(), rewards.tolist(), i, gamma, constant, 0.3, terminated, kappa)
        assert found.tolist() == expected
        if expected:
            np.testing.assert_allclose(probabilities, literal_probabilities(rewards.tolist(), expected, strategy))


@settings(derandomize=True, deadline=None, max_examples=80)
@given(
    moves=some.lists(some.tuples(some.integers(0, 2), some.integers(-3, 3)), min_size=1, max_size=12),
    earned=some.lists(some.integers(-20, 0), min_size=12, max_size=12),
    constant=some.sampled_from((Fraction(0), Fraction(1, 2), Fraction(2))),
    gamma=some.sampled_from((Fraction(1), Fraction(1, 2), Fraction(99, 100))),
)
def test_agrees_with_exact_arithmetic_on_a_lattice(
    moves: list[tuple[int, int]], earned: list[int], constant: Fraction, gamma: Fraction
) -> None:
    """On a grid of tenths many sums lie exactly on the ball, and many gains exactly on the limit."""
    steps = len(moves)
    actions = [[Fraction(length, 10) if axis == k else Fraction(0) for k in range(3)] for axis, length in moves]
    rewards = [Fraction(value, 10) for value in earned[:steps]]
    returns = [sum(gamma ** (k - i) * rewards[k] for k in range(i, steps)) for i in range(steps)] + [Fraction(0)]
    for i in range(steps):
        expected = []
        for j in range(i + 1, steps + 1):
            square = sum(sum(actions[k][axis] for k in range(i, j)) ** 2 for axis in range(3))
            length = sum(abs(Fraction(moves[k][1], 10)) for k in range(i, j))
            pays = gamma * returns[j] - returns[i] + rewards[j - 1] >= constant * length
            if j == i + 1 or (pays and square <= Fraction(3, 10) ** 2):
                expected.append(j)
        found, _ = candidates(
            np.array(actions, dtype=float),
            np.array(rewards, dtype=float),
            i,
            gamma=float(gamma),
            C=float(constant),
            action_radius=0.3,
        )
        assert found.tolist() == expected


@settings(derandomize=True, deadline=None, max_examples=100)
@given(
    seed=some.integers(0, 10**6),
    steps=some.integers(1, 40),
    strategy=some.sampled_from(STRATEGIES),
    constant=some.floats(0, 10),
    terminated=some.booleans(),
)
def test_properties(seed: int, steps: int, strategy: str, constant: float, terminated: bool) -> None:
    rng = np.random.default_rng(seed)
    actions, rewards = rng.normal(0, 0.2, (steps, 2)), -rng.random(steps)
    i = int(rng.integers(steps))
    found, probabilities = candidates(
        actions, rewards, i, gamma=0.99, C=constant, action_radius=0.3, terminated=terminated, strategy=strategy
    )
    if not terminated and i == steps - 1:
        assert len(found) == len(probabilities) == 0
        return
    assert found[0] == i + 1
    assert (np.diff(found) > 0).all() and found[-1] <= (steps if terminated else steps - 1)
    assert (probabilities >= 0).all() and probabilities.sum() == pytest.approx(1)


def test_the_direct_successor_survives_single_precision() -> None:
    rng = np.random.default_rng(0)
    actions = rng.normal(0, 0.05, (300, 2)).astype(np.float32)
    rewards = -rng.random(300).astype(np.float32)
    for i in range(300):
        found, _ = candidates(actions, rewards, i, gamma=0.99, C=5.0, action_radius=0.3)
        assert found[0] == i + 1


def test_the_direct_successor_may_be_longer_than_the_radius() -> None:
    found, probabilities = candidates([[0.5], [0.1]], [-1.0, -0.5], 0, gamma=0.99, C=0.0, action_radius=0.3)
    assert found.tolist() == [1]
    assert probabilities.tolist() == [1.0]


def test_a_walk_may_leave_the_ball_and_come_back() -> None:
    found, _ = candidates([[0.2], [0.3], [-0.3]], [-0.8, -0.5, -0.2], 0, gamma=1.0, C=0.0, action_radius=0.3)
    assert found.tolist() == [1, 3]


def test_weighted_gives_the_worst_candidate_no_mass() -> None:
    found, probabilities = candidates([[0.1]] * 3, [-0.3, -0.2, -0.0], 0, gamma=1.0, C=0.0, action_radius=1.0)
    assert found.tolist() == [1, 2, 3]
    np.testing.assert_allclose(probabilities, [0, 0.25, 0.75])


def test_equal_candidates_are_equally_likely() -> None:
    _, probabilities = candidates([[0.1]] * 4, [-1.0] * 4, 0, gamma=1.0, C=0.0, action_radius=1.0)
    np.testing.assert_allclose(probabilities, [0.25] * 4)


def test_best_takes_the_first_of_equals() -> None:
    _, probabilities = candidates(
        [[0.1]] * 3, [-1.0, -0.5, -0.5], 0, gamma=1.0, C=0.0, action_radius=1.0, strategy="best"
    )
    assert probabilities.tolist() == [0, 1, 0]


def test_inverse_distance_is_certain_of_the_goal() -> None:
    _, probabilities = candidates(
        [[0.1]] * 3, [-0.5, -0.1, 0.0], 0, gamma=1.0, C=0.0, action_radius=1.0, strategy="inverse_distance"
    )
    assert probabilities.tolist() == [0, 0, 1]


def test_a_larger_constant_admits_no_more() -> None:
    rng = np.random.default_rng(3)
    actions, rewards = rng.normal(0, 0.05, (60, 2)), -np.linspace(1, 0.1, 60)
    before: set[int] | None = None
    for constant in (0.0, 1.0, 5.0, 50.0, 1e6):
        found = set(candidates(actions, rewards, 5, gamma=0.99, C=constant, action_radius=1.0)[0].tolist())
        assert before is None or found <= before
        before = found
    assert before == {6}


def test_a_sum_of_tenths_lies_in_the_ball_whatever_the_precision() -> None:
    for dtype in (np.float32, np.float64):
        actions = np.full((3, 1), 0.1, dtype=dtype)
        found, _ = candidates(actions, np.array([-0.3, -0.2, -0.1]), 0, gamma=1.0, C=0.0, action_radius=0.3)
        assert found.tolist() == [1, 2, 3]


def test_a_gain_of_exactly_the_limit_suffices_whatever_the_rounding() -> None:
    """In tenths γG_2 − G_0 + r_1 = −7 + 19 − 3 = 9 = 3·(2 + 1), and with j = 3 it is −3 + 19 − 4 = 12 = 3·4."""
    actions, rewards = np.array([[0.2], [0.1], [0.1], [0.1]]), np.array([-0.9, -0.3, -0.4, -0.3])
    found, _ = candidates(actions, rewards, 0, gamma=1.0, C=3.0, action_radius=9.0)
    assert found.tolist() == [1, 2, 3, 4]


def test_takes_columns_of_rewards_and_plain_numbers_as_actions() -> None:
    flat = candidates([0.1, 0.1], [-0.2, -0.1], 0, gamma=1.0, C=0.0, action_radius=1.0)
    column = candidates([[0.1], [0.1]], [[-0.2], [-0.1]], 0, gamma=1.0, C=0.0, action_radius=1.0)
    np.testing.assert_array_equal(flat[0], column[0])
    np.testing.assert_array_equal(flat[1], column[1])


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"i": 2}, "from 0 to 1"),
        ({"i": -1}, "i is -1"),
        ({"gamma": 1.5}, "gamma is 1.5"),
        ({"C": -1.0}, "C is -1.0"),
        ({"C": float("nan")}, "C is nan"),
        ({"action_radius": 0.0}, "action_radius is 0.0"),
        ({"strategy": "worst"}, "worst"),
        ({"rewards": [-1.0]}, "1 rewards for 2 actions"),
        ({"rewards": [-1.0, float("nan")]}, "reward of step 1"),
        ({"actions": [[0.1], [float("inf")]]}, "action of step 1"),
        ({"actions": [[[0.1]], [[0.1]]]}, "one vector per step"),
        ({"rewards": [-1.0, 1.0], "strategy": "inverse_distance"}, "choose the strategy weighted"),
    ],
)
def test_bad_input_is_named(changed: dict[str, object], named: str) -> None:
    values: dict[str, object] = {"actions": [[0.1], [0.1]], "rewards": [-1.0, -0.5], "i": 0, "action_radius": 0.3}
    with pytest.raises(UserError, match=named):
        candidates(**{**values, **changed})  # type: ignore[arg-type]
