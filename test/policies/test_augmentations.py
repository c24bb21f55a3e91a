from __future__ import annotations

import math

import numpy as np
import pytest

from lift_ros.errors import UserError
from lift_ros.policies.augmentations import RANDOM_NAMES, UncertaintyModel, make_augmentation
from lift_ros.policies.protocol import Policy, SeededPolicy, begin_episode
from lift_ros.scenario import Scenario, load_scenario, parse_scenario

HERE = np.array([0.5, -0.5])


class Always:
    """A logging policy that always proposes the same."""

    def __init__(self, *action: float) -> None:
        self.action = np.array(action)

    def reset(self) -> None:
        """Keep no state."""

    def act(self, observation: np.ndarray) -> np.ndarray:
        """Propose it."""
        return self.action


@pytest.fixture(scope="module")
def scenario() -> Scenario:
    return load_scenario("po-blend-d2")


def make(name: str, logging_policy: Policy, **arguments: object) -> Policy:
    augmentation = make_augmentation(name, arguments, logging_policy, 2, 0.3)
    if isinstance(augmentation, UncertaintyModel):
        rng = np.random.default_rng(0)
        augmentation.fit(rng.uniform(-1, 1, (300, 2)), rng.normal(0, 0.05, (300, 2)))
    begin_episode(augmentation, 1)
    return augmentation


@pytest.mark.parametrize("name", RANDOM_NAMES)
def test_is_seeded_and_stays_in_the_ball(name: str) -> None:
    augmentation = make(name, Always(0.3, 0.0))
    assert isinstance(augmentation, SeededPolicy)
    first = [augmentation.act(HERE) for _ in range(30)]
    assert all(action.shape == (2,) and np.linalg.norm(action) <= 0.3 for action in first)
    assert len({action.tobytes() for action in first}) > 1
    begin_episode(augmentation, 1)
    assert all(np.array_equal(augmentation.act(HERE), action) for action in first)
    begin_episode(augmentation, 2)
    assert any(not np.array_equal(augmentation.act(HERE), action) for action in first)


def test_its_own_logging_policy_proposes_what_the_recorded_one_does(scenario: Scenario) -> None:
    augmentation = scenario.make_augmentation("random_scaling", {"sigma": 0.0})
    logging_policy = scenario.make_logging_policy()
    begin_episode(augmentation, 1)
    begin_episode(logging_policy, 1)
    position = np.array([0.06, -0.7])
    for step in range(12):
        logged = logging_policy.act(position)
        np.testing.assert_allclose(augmentation.act(position), 2 * logged)
        position = position + logged
        if step == 7:
            augmentation.reset()
            logging_policy.reset()


def test_gaussian_noise_is_added() -> None:
    logged = Always(0.1, -0.1)
    augmentation = make("gaussian_noise", logged, sigma=0.01)
    noise = np.array([augmentation.act(HERE) - logged.action for _ in range(500)])
    assert noise.std() == pytest.approx(0.01, rel=0.15)
    assert abs(noise.mean()) < 0.002


def test_random_scaling_is_twice_a_log_normal_number() -> None:
    augmentation = make("random_scaling", Always(0.0, 0.01), sigma=0.3)
    actions = np.array([augmentation.act(HERE) for _ in range(500)])
    assert not actions[:, 0].any()
    eta = np.log(actions[:, 1] / 0.01 / 2)
    assert eta.mean() == pytest.approx(0, abs=0.05) and eta.std() == pytest.approx(0.3, abs=0.05)


def test_uniform_actions_fill_the_ball() -> None:
    augmentation = make("uniform", Always(0.0, 0.0))
    actions = np.array([augmentation.act(HERE) for _ in range(1000)])
    radii = np.linalg.norm(actions, axis=1)
    assert 0.29 < radii.max() <= 0.3
    assert np.mean(radii < 0.15) == pytest.approx(0.25, abs=0.06)


def test_the_uncertainty_model_avoids_what_was_seen_here(scenario: Scenario) -> None:
    model = scenario.make_augmentation("uncertainty", {"candidates": 64})
    assert isinstance(model, UncertaintyModel)
    rng = np.random.default_rng(0)
    observations = np.repeat([[-0.5, 0.0], [0.5, 0.0]], 200, axis=0) + rng.normal(0, 0.05, (400, 2))
    actions = np.repeat([[0.2, 0.0], [-0.2, 0.0]], 200, axis=0) + rng.normal(0, 0.02, (400, 2))
    model.fit(observations, actions)
    left, right = np.array([-0.5, 0.0]), np.array([0.5, 0.0])
    to_right, to_left = np.array([[0.2, 0.0]]), np.array([[-0.2, 0.0]])
    assert model.log_density(left, to_right) > model.log_density(left, to_left) + 5
    assert model.log_density(right, to_left) > model.log_density(right, to_right) + 5
    begin_episode(model, 0)
    chosen = np.array([model.act(left) for _ in range(30)])
    assert (np.linalg.norm(chosen - to_right[0], axis=1) > 0.15).all()


def test_the_density_integrates_to_the_same_everywhere() -> None:
    model = make("uncertainty", Always(0.0, 0.0))
    assert isinstance(model, UncertaintyModel)
    grid = np.linspace(-0.6, 0.6, 41)
    actions = np.array([[x, y] for x in grid for y in grid])
    sums = [np.exp(model.log_density(np.array(here), actions)).sum() for here in ([0.0, 0.0], [0.9, -0.9], [-0.4, 0.7])]
    np.testing.assert_allclose(sums, sums[0], rtol=1e-3)


def test_far_from_all_that_was_seen_the_density_is_still_a_number(scenario: Scenario) -> None:
    model = scenario.make_augmentation("uncertainty", {"samples": 5})
    assert isinstance(model, UncertaintyModel)
    seen = np.arange(10.0)[:, None] * np.ones(2)
    model.fit(seen / 10, -seen / 100)
    assert math.isfinite(float(model.log_density(np.zeros(2), np.zeros((1, 2)))[0]))
    assert not np.isnan(model.log_density(np.full(2, 1e3), np.full((1, 2), 1e3))).any()


def test_the_scenarios_arguments_belong_to_its_own_augmentation(scenario: Scenario) -> None:
    data = scenario.as_dict()
    data["collection"] |= {"augmentation": "random_scaling", "augmentation_arguments": {"sigma": 0.0}}
    own = parse_scenario(data, "own", "own.yaml")
    position = np.array([0.06, -0.7])
    logged = own.make_logging_policy().act(position)
    for augmentation, exact in (
        (own.make_augmentation("random_scaling"), True),
        (own.make_augmentation("random_scaling", {"sigma": 1.0}), False),
        (own.make_policy("random_scaling"), True),
        (scenario.make_augmentation("random_scaling"), False),
    ):
        begin_episode(augmentation, 0)
        assert np.allclose(augmentation.act(position), 2 * logged) is exact


def test_bad_use_says_what_is_wrong(scenario: Scenario) -> None:
    with pytest.raises(UserError, match=r"unknown augmentation 'unifrom'; did you mean 'uniform'"):
        scenario.make_augmentation("unifrom")
    with pytest.raises(UserError, match=r"unknown key 'sgima'; did you mean 'sigma'"):
        scenario.make_augmentation("gaussian_noise", {"sgima": 1})
    with pytest.raises(UserError, match=r"sigma is -1; allowed: a number >= 0"):
        scenario.make_augmentation("random_scaling", {"sigma": -1})
    with pytest.raises(UserError, match="is a model: train one"):
        scenario.make_augmentation("learned")
    with pytest.raises(UserError, match="begin_episode"):
        scenario.make_augmentation("uniform").act(np.zeros(2))
    unfitted = scenario.make_augmentation("uncertainty")
    assert isinstance(unfitted, UncertaintyModel)
    begin_episode(unfitted, 0)
    with pytest.raises(UserError, match="has seen no data"):
        unfitted.act(np.zeros(2))
    with pytest.raises(UserError, match="at least 1"):
        unfitted.fit(np.zeros((0, 2)), np.zeros((0, 2)))
    with pytest.raises(UserError, match="as many actions"):
        unfitted.fit(np.zeros((2, 2)), np.zeros((3, 2)))
