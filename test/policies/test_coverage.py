"""Which observations a model takes for covered."""

from __future__ import annotations

import numpy as np
import pytest
from training_samples import model_content

from lift_ros.array_types import FloatArray
from lift_ros.collection.loop import collect
from lift_ros.errors import UserError
from lift_ros.policies.coverage import MEAN, WHITENING, fit_coverage, is_covered
from lift_ros.policies.learned import LearnedPolicy
from lift_ros.policies.model_file import Tensors
from lift_ros.scenario import load_scenario


def covered(region: Tensors, observations: FloatArray) -> list[bool]:
    rows = np.asarray(observations, dtype=np.float32)
    return [is_covered(row, region[MEAN], region[WHITENING]) for row in rows]


def observations_of(scenario: str, seed: int, episodes: int) -> FloatArray:
    recorded = collect(load_scenario(scenario), episodes=episodes, seed=seed, progress=False)
    return np.array([step.observation for episode in recorded for step in episode.steps])


@pytest.mark.parametrize("scenario", ["po-blend-d2", "po-blend-d5", "po-scale-d5"])
def test_other_episodes_of_a_scenario_are_covered_by_few_recorded_ones(scenario: str) -> None:
    region = fit_coverage(observations_of(scenario, 0, 20))
    assert all(covered(region, observations_of(scenario, 1, 20)))


def test_the_places_between_the_ways_of_a_routine_are_covered() -> None:
    seen = observations_of("po-blend-d5", 0, 20)
    region = fit_coverage(seen)
    rng = np.random.default_rng(0)
    one, other = seen[rng.integers(len(seen), size=(2, 500))]
    assert all(covered(region, one + rng.random((500, 1)) * (other - one)))


def test_places_far_outside_are_not_covered() -> None:
    region = fit_coverage(observations_of("po-blend-d2", 0, 20))
    assert covered(region, np.array([[0.0, 0.0], [3.0, 0.0], [0.0, -3.0], [1e6, 1e6]])) == [True, False, False, False]


def test_a_relation_between_sensors_that_the_data_keep_is_watched() -> None:
    rng = np.random.default_rng(0)
    first = rng.uniform(-1, 1, 500)
    region = fit_coverage(np.stack([first, 2 * first], axis=1))
    assert covered(region, np.array([[0.5, 1.0], [0.5, -1.0]])) == [True, False]


def test_an_entry_that_never_varies_tells_no_scale_and_is_not_watched() -> None:
    rng = np.random.default_rng(0)
    region = fit_coverage(np.stack([rng.uniform(-1, 1, 500), np.full(500, 7.0)], axis=1))
    assert covered(region, np.array([[0.5, 7.0], [0.5, 700.0], [50.0, 7.0]])) == [True, True, False]


def test_one_observation_is_enough_to_fit() -> None:
    assert covered(fit_coverage(np.array([[1.0, 2.0]])), np.array([[1.0, 2.0], [5.0, 5.0]])) == [True, True]


def test_a_model_answers_what_its_tensors_say() -> None:
    tensors, description = model_content()
    region = fit_coverage(np.random.default_rng(0).uniform(-1, 1, (100, 3)))
    policy = LearnedPolicy({**tensors, **region}, description, "hash", "test")
    assert policy.covers(np.zeros(3)) and not policy.covers(np.full(3, 9.0))
    assert policy.act(np.full(3, 9.0)).shape == (2,), "it can be asked nevertheless"


def test_a_model_of_an_earlier_version_covers_everything() -> None:
    assert LearnedPolicy(*model_content(), "hash", "test").covers(np.full(3, 1e9))


def test_half_a_region_is_refused() -> None:
    tensors, description = model_content()
    half = {MEAN: np.zeros(3, dtype=np.float32)}
    with pytest.raises(UserError, match=r"tensor 'coverage.whitening' is missing"):
        LearnedPolicy({**tensors, **half}, description, "hash", "test")
