from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest

from lift_ros.errors import UserError
from lift_ros.policies.augmentations import AUGMENTATION_NAMES, UncertaintyModel, make_augmentation
from lift_ros.policies.direct import DirectPolicy
from lift_ros.policies.protocol import Augmentation, Policy, SeededPolicy, begin_episode, propose
from lift_ros.scenario import Scenario, load_scenario

RANDOM = [name for name in AUGMENTATION_NAMES if name != "learned"]


@pytest.fixture(scope="module")
def scenario() -> Scenario:
    return load_scenario("po-blend-d2")


def make(name: str, scenario: Scenario, **arguments: object) -> Policy:
    augmentation = make_augmentation(name, scenario, **arguments)
    if isinstance(augmentation, UncertaintyModel):
        rng = np.random.default_rng(0)
        augmentation.fit(rng.uniform(-1, 1, (300, 2)), rng.normal(0, 0.05, (300, 2)))
    begin_episode(augmentation, 1)
    return augmentation


@pytest.mark.parametrize("name", RANDOM)
def test_is_seeded_and_stays_in_the_ball(name: str, scenario: Scenario) -> None:
    augmentation = make(name, scenario)
    assert isinstance(augmentation, SeededPolicy) and isinstance(augmentation, Augmentation)
    here, logged = np.array([0.5, -0.5]), np.array([0.3, 0.0])
    first = [augmentation.augment(here, logged) for _ in range(30)]
    assert all(action.shape == (2,) and np.linalg.norm(action) <= 0.3 for action in first)
    assert len({action.tobytes() for action in first}) > 1
    begin_episode(augmentation, 1)
    assert all(np.array_equal(propose(augmentation, here, logged), action) for action in first)
    begin_episode(augmentation, 2)
    assert any(not np.array_equal(augmentation.augment(here, logged), action) for action in first)


@pytest.mark.parametrize("name", RANDOM)
def test_without_the_proposal_it_asks_a_logging_policy_of_its_own(name: str, scenario: Scenario) -> None:
    told, alone = make(name, scenario), make(name, scenario)
    logging_policy = scenario.make_logging_policy()
    position = np.array([0.06, -0.7])
    for step in range(12):
        logged = logging_policy.act(position)
        assert np.array_equal(propose(told, position, logged), alone.act(position))
        position = position + logged
        if step == 7:
            for policy in (told, alone, logging_policy):
                policy.reset()


def test_gaussian_noise_is_added(scenario: Scenario) -> None:
    augmentation = make("gaussian_noise", scenario, sigma=0.01)
    logged = np.array([0.1, -0.1])
    noise = np.array([augmentation.augment(np.zeros(2), logged) - logged for _ in range(500)])
    assert noise.std() == pytest.approx(0.01, rel=0.15)
    assert abs(noise.mean()) < 0.002


def test_random_scaling_is_twice_a_log_normal_number(scenario: Scenario) -> None:
    augmentation = make("random_scaling", scenario, sigma=0.3)
    logged = np.array([0.0, 0.01])
    actions = np.array([augmentation.augment(np.zeros(2), logged) for _ in range(500)])
    assert not actions[:, 0].any()
    eta = np.log(actions[:, 1] / 0.01 / 2)
    assert eta.mean() == pytest.approx(0, abs=0.05) and eta.std() == pytest.approx(0.3, abs=0.05)
    still = make("random_scaling", scenario, sigma=0.0)
    np.testing.assert_allclose(still.augment(np.zeros(2), logged), 2 * logged)


def test_uniform_actions_fill_the_ball(scenario: Scenario) -> None:
    augmentation = make("uniform", scenario)
    actions = np.array([augmentation.act(np.zeros(2)) for _ in range(1000)])
    radii = np.linalg.norm(actions, axis=1)
    assert 0.29 < radii.max() <= 0.3
    assert np.mean(radii < 0.15) == pytest.approx(0.25, abs=0.06)


def test_the_uncertainty_model_avoids_what_was_seen_here(scenario: Scenario) -> None:
    model = make_augmentation("uncertainty", scenario, candidates=64)
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


def test_the_density_integrates_to_the_same_everywhere(scenario: Scenario) -> None:
    model = make("uncertainty", scenario)
    assert isinstance(model, UncertaintyModel)
    grid = np.linspace(-0.6, 0.6, 41)
    actions = np.array([[x, y] for x in grid for y in grid])
    sums = [np.exp(model.log_density(np.array(here), actions)).sum() for here in ([0.0, 0.0], [0.9, -0.9], [-0.4, 0.7])]
    np.testing.assert_allclose(sums, sums[0], rtol=1e-3)


def test_the_uncertainty_model_reads_episodes(scenario: Scenario) -> None:
    model = make_augmentation("uncertainty", scenario, samples=5)
    assert isinstance(model, UncertaintyModel)
    steps = [SimpleNamespace(observation=np.full(2, k / 10), action=np.full(2, -k / 100)) for k in range(10)]
    model.fit_episodes([SimpleNamespace(steps=steps[:4]), SimpleNamespace(steps=steps[4:])])
    assert math.isfinite(float(model.log_density(np.zeros(2), np.zeros((1, 2)))[0]))
    far = model.log_density(np.full(2, 1e3), np.full((1, 2), 1e3))
    assert not np.isnan(far).any()


def test_learned_is_the_policy_that_is_given(scenario: Scenario) -> None:
    policy = DirectPolicy(2, 0.3)
    assert make_augmentation("learned", scenario, policy=policy) is policy
    assert np.array_equal(propose(policy, np.array([0.1, 0.1]), np.array([0.3, 0.0])), [-0.1, -0.1])


def test_bad_use_says_what_is_wrong(scenario: Scenario) -> None:
    with pytest.raises(UserError, match=r"unknown augmentation 'unifrom'; did you mean 'uniform'"):
        make_augmentation("unifrom", scenario)
    with pytest.raises(UserError, match=r"unknown key 'sgima'; did you mean 'sigma'"):
        make_augmentation("gaussian_noise", scenario, sgima=1)
    with pytest.raises(UserError, match=r"sigma is -1; allowed: a number >= 0"):
        make_augmentation("random_scaling", scenario, sigma=-1)
    with pytest.raises(UserError, match=r"policy="):
        make_augmentation("learned", scenario)
    with pytest.raises(UserError, match=r"policy="):
        make_augmentation("uniform", scenario, policy=DirectPolicy(2, 0.3))
    with pytest.raises(UserError, match="begin_episode"):
        make_augmentation("uniform", scenario).act(np.zeros(2))
    unfitted = make_augmentation("uncertainty", scenario)
    begin_episode(unfitted, 0)
    with pytest.raises(UserError, match="fit_episodes"):
        unfitted.act(np.zeros(2))
    with pytest.raises(UserError, match="at least 1 step"):
        unfitted.fit_episodes([])
    with pytest.raises(UserError, match="as many actions"):
        unfitted.fit(np.zeros((2, 2)), np.zeros((3, 2)))
