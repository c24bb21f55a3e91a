"""The twin of a plant: exact where the motion is, and honest where it is not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from lift_ros.array_types import FloatArray
from lift_ros.bags.arrays import EpisodeArrays, episodes_to_arrays
from lift_ros.collection.loop import collect
from lift_ros.evaluation.convergence import context_seeds, converge
from lift_ros.evaluation.twin import NoTwin, build_twin
from lift_ros.policies.protocol import Policy
from lift_ros.scenario import Scenario, load_scenario, parse_scenario

THRESHOLD = 0.02


def make_scenario(name: str, **plant: object) -> Scenario:
    data = load_scenario(name).as_dict()
    data["plant"].update(plant)
    return parse_scenario(data, name, name)


@cache
def recorded(name: str, episodes: int = 40, observation: str = "position") -> EpisodeArrays:
    scenario = make_scenario(name, observation=observation)
    return episodes_to_arrays(collect(scenario, episodes=episodes, seed=1, progress=False))


class Steered:
    """Goes a share of the way that is observed, turned by some angle, at most λ: good or bad as told."""

    def __init__(self, gain: float, angle: float = 0.0, radius: float = 0.3) -> None:
        cosine, sine = np.cos(angle), np.sin(angle)
        self._matrix = -gain * np.array([[cosine, -sine], [sine, cosine]])
        self._radius = radius

    def reset(self) -> None: ...

    def act(self, observation: FloatArray) -> FloatArray:
        return self.act_batch(observation[None])[0]

    def act_batch(self, observations: FloatArray) -> FloatArray:
        actions = observations @ self._matrix.T
        length = np.linalg.norm(actions, axis=1, keepdims=True)
        return np.asarray(actions * np.minimum(1.0, self._radius / np.maximum(length, 1e-12)))


def true_success(scenario: Scenario, policy: Policy) -> float:
    return converge(scenario, policy, context_seeds(3, 200)).success


def test_a_linear_motion_is_found_exactly() -> None:
    twin = build_twin(recorded("po-blend-d2"), THRESHOLD)
    assert list(twin.motion.errors) == ["linear"] and twin.motion.error < 0.03
    assert twin.doubts() == [] and twin.view.error < 1e-9


def test_the_map_of_each_episode_is_its_context() -> None:
    episodes = collect(load_scenario("po-blend-d2"), episodes=20, seed=1, progress=False)
    twin = build_twin(episodes_to_arrays(episodes), THRESHOLD)
    maps = twin.motion.population.coefficients(twin.motion.sums)  # [episodes, action, displacement]
    contexts = np.array([np.eye(2) + episode.context.reshape(2, 2) for episode in episodes])
    assert np.abs(maps.transpose(0, 2, 1) - contexts).max(axis=(1, 2)) == pytest.approx(0, abs=0.02)


@pytest.mark.parametrize(
    ("name", "term"),
    [
        ("po-scale-d2", "gain by the distance to the goal"),
        ("po-sin-d2", "drift by the position"),
        ("po-regrot-d2", "sides of the goal on axes 1 and 2"),
    ],
)
def test_further_terms_come_where_they_pay(name: str, term: str) -> None:
    motion = build_twin(recorded(name), THRESHOLD).motion
    assert term in motion.errors and motion.errors[term] < 0.5 * motion.errors["linear"]
    assert motion.error < 0.05


@pytest.mark.parametrize("name", ["po-blend-d2", "po-scale-d2", "po-sin-d2", "po-regrot-d2"])
@pytest.mark.parametrize("policy", [Steered(0.7), Steered(1.0, 0.9), Steered(1.7), Steered(0.03)])
def test_what_it_predicts_comes_true(name: str, policy: Steered) -> None:
    twin = build_twin(recorded(name, 100), THRESHOLD)
    assert twin.run(policy).success == pytest.approx(true_success(load_scenario(name), policy), abs=0.15)


def test_a_power_of_the_length_is_reckoned_with() -> None:
    twin = build_twin(recorded("po-sqrt-d2"), THRESHOLD)
    assert twin.motion.kappa == pytest.approx(0.5, abs=0.02) and twin.doubts() == []
    assert twin.condition() == "if long steps, too, go as far as the power 1.50 of their length"
    for policy in (Steered(0.7), Steered(3.0), Steered(1.0, 1.2)):
        truth = true_success(load_scenario("po-sqrt-d2"), policy)
        assert twin.run(policy).success == pytest.approx(truth, abs=0.15)


def test_where_a_gain_depends_on_the_length_of_a_step_in_another_way_it_cannot_be_trusted() -> None:
    arrays = recorded("po-blend-d2", 20)
    lengths = np.linalg.norm(arrays.actions, axis=1, keepdims=True)
    # As if whatever moved had been told to go farther: the plant loses a part of the way in each step.
    told = arrays.actions * (1 + 0.01 / lengths)
    reasons = build_twin(replace(arrays, actions=told), THRESHOLD).doubts()
    assert any("depends on its length" in reason for reason in reasons)


def test_without_an_estimate_of_the_power_it_cannot_be_trusted() -> None:
    reasons = build_twin(recorded("po-sqrt-d2", 4), THRESHOLD).doubts()
    assert any("depends on its length" in reason for reason in reasons)


def test_steps_of_one_length_leave_longer_ones_to_an_assumption() -> None:
    arrays = recorded("po-none-d2", 10)
    lengths = np.linalg.norm(arrays.actions, axis=1)
    assert build_twin(recorded("po-blend-d2"), THRESHOLD).condition() is None
    same = replace(arrays, actions=np.where(lengths[:, None] < 0.02, 0.0, arrays.actions))
    assert "longer than 0.025" in str(build_twin(same, THRESHOLD).condition())


def test_few_episodes_cannot_be_trusted() -> None:
    (reason,) = build_twin(recorded("po-none-d2", 3), THRESHOLD).doubts()
    assert "rests on 3 episodes" in reason


@pytest.mark.parametrize("seed", range(4))
def test_a_single_episode_without_noise_has_a_twin_that_cannot_be_trusted(seed: int) -> None:
    episodes = collect(load_scenario("po-none-d2"), episodes=1, seed=seed, progress=False)
    twin = build_twin(episodes_to_arrays(episodes), THRESHOLD)
    assert "rests on 1 episodes" in twin.doubts()[0]


def with_noise(arrays: EpisodeArrays, noise: float) -> EpisodeArrays:
    rng = np.random.default_rng(0)
    place, last = (values + rng.normal(0, noise, values.shape) for values in (arrays.positions, arrays.final_positions))
    return replace(arrays, positions=place, final_positions=last, observations=place, final_observations=last)


def test_noise_is_told_from_error() -> None:
    twin = build_twin(with_noise(recorded("po-blend-d2"), 0.002), THRESHOLD)
    assert twin.motion.noise > 0.05 and twin.motion.error < 0.05 and twin.doubts() == []


def test_where_noise_hides_the_motion_it_cannot_be_trusted() -> None:
    twin = build_twin(with_noise(recorded("po-blend-d2"), 0.02), THRESHOLD)
    assert any("noise makes up" in reason for reason in twin.doubts())


def test_motion_that_follows_no_action_cannot_be_trusted() -> None:
    arrays = recorded("po-blend-d2", 10)
    shuffled = np.random.default_rng(0).permutation(arrays.actions)
    assert any("displacements are" in reason for reason in build_twin(replace(arrays, actions=shuffled)).doubts())


def test_the_threshold_is_found_where_episodes_ended() -> None:
    assert build_twin(recorded("po-blend-d2")).threshold == pytest.approx(THRESHOLD, rel=0.1)


@pytest.mark.parametrize("observation", ["position", "displacement"])
def test_goals_that_nobody_recorded_are_found_in_hindsight(observation: str) -> None:
    arrays = recorded("po-blend-d2", observation=observation)
    twin = build_twin(replace(arrays, goals=np.full_like(arrays.goals, np.nan)), THRESHOLD)
    assert np.linalg.norm(twin.goals - arrays.goals, axis=1).max() < 0.5 * THRESHOLD
    last = np.linalg.norm(arrays.final_positions - arrays.goals, axis=1)
    assert np.median(last) > 0.5 * THRESHOLD  # the last position alone would be farther off


def test_offsets_from_goals_that_differ_are_seen_as_such() -> None:
    arrays = recorded("po-blend-d2", observation="displacement")
    twin = build_twin(arrays, THRESHOLD)
    assert twin.view.offsets == pytest.approx(-arrays.goals)
    assert twin.run(Steered(0.7)).success > 0.9


def test_borders_that_were_touched_are_borders() -> None:
    twin = build_twin(recorded("po-blend-d2", 100), THRESHOLD)
    away = twin.run(Steered(-1.0)).distances
    assert -1.0 in twin.low or 1.0 in twin.high
    assert np.isfinite(away).all() and away.max() < 10


def test_the_same_seed_gives_the_same_runs() -> None:
    twin = build_twin(recorded("po-regrot-d2"), THRESHOLD)
    first, again, other = (twin.run(Steered(0.7), seed=seed).distances for seed in (0, 0, 1))
    assert (first == again).all() and (first != other).any()


def without_positions(arrays: EpisodeArrays) -> EpisodeArrays:
    nothing = np.empty((len(arrays.actions), 0))
    return replace(arrays, positions=nothing, final_positions=np.empty((len(arrays), 0)))


def as_pictures(arrays: EpisodeArrays) -> EpisodeArrays:
    return replace(
        arrays, observations=np.sin(9 * arrays.observations), final_observations=np.sin(9 * arrays.final_observations)
    )


def never_arrived(arrays: EpisodeArrays) -> EpisodeArrays:
    return replace(arrays, outcomes=np.full_like(arrays.outcomes, 2))


def aimless(arrays: EpisodeArrays) -> EpisodeArrays:
    return replace(never_arrived(arrays), goals=np.full_like(arrays.goals, np.nan))


def with_gaps(arrays: EpisodeArrays) -> EpisodeArrays:
    return replace(arrays, final_positions=np.full_like(arrays.final_positions, np.nan))


def motionless(arrays: EpisodeArrays) -> EpisodeArrays:
    return replace(arrays, actions=np.zeros_like(arrays.actions))


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (without_positions, "no positions are recorded"),
        (as_pictures, "does not follow from the position"),
        (never_arrived, "no episode arrived"),
        (aimless, "no goal is recorded"),
        (with_gaps, "no episode has all of its positions"),
        (motionless, "too few to fit"),
    ],
)
def test_says_what_is_missing_for_a_twin(spoil: Callable[[EpisodeArrays], EpisodeArrays], reason: str) -> None:
    with pytest.raises(NoTwin, match=reason):
        build_twin(spoil(recorded("po-blend-d2", 10)))


def test_several_goals_in_a_row_have_no_twin() -> None:
    episodes = collect(load_scenario("fetch-touch-and-place"), episodes=3, seed=1, progress=False)
    with pytest.raises(NoTwin, match="several goals"):
        build_twin(episodes_to_arrays(episodes), THRESHOLD)
