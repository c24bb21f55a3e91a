from __future__ import annotations

import numpy as np
import pytest

from lift_ros.errors import UserError
from lift_ros.positioning import DISTORTIONS
from lift_ros.positioning.batched import BatchedPositioning
from lift_ros.positioning.distortions import make_distortion
from lift_ros.positioning.dynamics import Dynamics
from lift_ros.positioning.simulated import SimulatedPositioning


def dynamics(
    name: str = "none", dim: int = 2, observation: str = "position", radius: float = 0.3, **own: float
) -> Dynamics:
    return Dynamics(make_distortion(name, dim, **own), radius, 0.05, 100, observation)


@pytest.mark.parametrize("exponent", [0.25, 0.7, 1.0])
def test_gives_the_bits_of_the_single_one_with_any_exponent(exponent: float) -> None:
    check_bits(dynamics("sqrt", 5, exponent=exponent))


@pytest.mark.parametrize("name", sorted(DISTORTIONS))
@pytest.mark.parametrize("dim", [1, 2, 5])
@pytest.mark.parametrize("observation", ["position", "displacement"])
def test_gives_the_bits_of_the_single_one(name: str, dim: int, observation: str) -> None:
    check_bits(dynamics(name, dim, observation))


def check_bits(problem: Dynamics) -> None:
    count, dim = 23, problem.dim
    batch = BatchedPositioning(problem)
    observations = batch.reset(range(count))
    singles = [SimulatedPositioning(problem) for _ in range(count)]
    seen = [single.reset(seed) for seed, single in enumerate(singles)]
    made = np.zeros(count, dtype=int)
    rng = np.random.default_rng(0)
    for _ in range(25):
        # Half of the contexts head for the goal, so that some arrive and some actions are too long.
        actions = rng.normal(0, 0.1, (count, dim)) - np.arange(count)[:, None] % 2 * observations
        observations, rewards, terminated = batch.step(actions)
        for index, single in enumerate(singles):
            if not seen[index].terminated:
                seen[index] = single.step(actions[index])
                made[index] += 1
            assert np.array_equal(observations[index], seen[index].values)
            assert rewards[index] == seen[index].reward
            assert terminated[index] == seen[index].terminated
    assert np.array_equal(batch.steps, made)
    assert np.array_equal(batch.reached, [s.terminated for s in seen])
    assert np.array_equal(batch.distances, [-s.reward for s in seen])


def test_the_size_of_the_batch_changes_nothing() -> None:
    rng = np.random.default_rng(0)
    for name in sorted(DISTORTIONS):
        problem = dynamics(name, 3)
        actions = rng.normal(0, 0.2, (5, 1000, 3))
        large, small = BatchedPositioning(problem), BatchedPositioning(problem)
        large.reset(range(1000))
        small.reset(range(990, 1000))
        for action in actions:
            whole, part = large.step(action), small.step(action[990:])
        assert np.array_equal(whole.observations[990:], part.observations), name


def test_what_reached_its_goal_stays_there() -> None:
    batch = BatchedPositioning(dynamics())
    positions = batch.reset(range(50))
    for _ in range(10):
        positions = batch.step(-positions).observations
    assert batch.reached.all()
    steps = batch.steps
    later = batch.step(np.full((50, 2), 0.2)).observations
    assert np.array_equal(later, positions) and np.array_equal(batch.steps, steps)


def test_returned_arrays_keep_their_values() -> None:
    batch = BatchedPositioning(dynamics("blend", 2, "position"))
    first = batch.reset(range(5))
    kept = first.copy()
    second = batch.step(np.full((5, 2), 0.1))
    second_kept = second.observations.copy()
    batch.step(np.full((5, 2), 0.1))
    assert np.array_equal(first, kept) and np.array_equal(second.observations, second_kept)


def test_bad_use_says_what_is_wrong() -> None:
    batch = BatchedPositioning(dynamics())
    with pytest.raises(UserError, match="at least 1 seed"):
        batch.reset([])
    batch.reset(range(3))
    with pytest.raises(UserError, match=r"shape \(3, 2\), not \(2, 3\)"):
        batch.step(np.zeros((2, 3)))
    for bad in (np.nan, np.inf):
        actions = np.zeros((3, 2))
        actions[1, 0] = bad
        with pytest.raises(UserError, match="finite"):
            batch.step(actions)
