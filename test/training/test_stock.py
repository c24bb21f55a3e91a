"""Any algorithm of d3rlpy with a plain actor can be trained and exported."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from d3rlpy.algos.qlearning.torch.cal_ql_impl import CalQLImpl
from training_samples import RADIUS, make_episodes, tiny

from lift_ros.errors import UserError
from lift_ros.training import train
from lift_ros.training.stock import StockLearner, algorithm_names

EPISODES = make_episodes()


@pytest.mark.parametrize(
    ("algorithm", "critics"), [("SAC", 2), ("IQL", 2), ("TD3PlusBC", 2), ("BC", 0), ("AWAC", 2), ("DDPG", 2)]
)
def test_exports_what_the_algorithm_would_do(algorithm: str, critics: int) -> None:
    result = train(EPISODES, tiny(algorithm=algorithm, updates=3), action_radius=RADIUS)
    assert result.policy.algorithm == algorithm and result.policy.description["critics"] == critics
    assert np.linalg.norm(result.policy.act(np.array([0.4, -0.1]))) <= RADIUS


def test_the_exported_network_is_d3rlpys() -> None:
    from lift_ros.policies.learned import LearnedPolicy

    learner = StockLearner(tiny(algorithm="IQL"), 2, 2)
    scaling = {"observation.mean": np.zeros(2, np.float32), "observation.deviation": np.ones(2, np.float32)}
    facts = {"algorithm": "IQL", "observation_size": 2, "action_size": 2, "action_radius": 100.0, "critics": 2}
    policy = LearnedPolicy({**learner.networks(), **scaling}, facts, "", "test")
    observations = np.random.default_rng(0).normal(size=(5, 2))
    actions = learner.algorithm.predict(observations.astype(np.float32))
    norms = np.maximum(1.0, np.linalg.norm(actions, axis=1, keepdims=True))
    assert policy.act_batch(observations) == pytest.approx(100.0 * actions / norms, abs=1e-3)
    with torch.no_grad():
        wanted = learner.algorithm.predict_value(observations.astype(np.float32), actions)
    assert policy.q_values(observations, 100.0 * actions) == pytest.approx(wanted, abs=1e-4)


def test_calql_learns_with_what_the_episodes_still_collected(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[torch.Tensor, torch.Tensor]] = []
    original = CalQLImpl._compute_policy_is_values

    def watched(self: Any, policy_obs: Any, value_obs: Any, returns_to_go: Any) -> Any:
        seen.append((value_obs.clone(), returns_to_go.clone()))
        return original(self, policy_obs, value_obs, returns_to_go)

    monkeypatch.setattr(CalQLImpl, "_compute_policy_is_values", watched)
    train(EPISODES, tiny(algorithm="CalQL", updates=2, gamma=0.9, scale_observations=False), action_radius=RADIUS)
    wanted = {}
    for episode in EPISODES:
        for start, step in enumerate(episode.steps):
            later = [0.9**k * after.reward for k, after in enumerate(episode.steps[start:])]
            wanted[tuple(step.observation.astype(np.float32).tolist())] = sum(later)
    assert seen
    for observations, returns in seen:
        expected = [wanted[tuple(row)] for row in observations.tolist()]
        assert returns[:, 0].tolist() == pytest.approx(expected, rel=1e-5)
        assert (returns < 0).all()


def test_hands_options_over() -> None:
    learner = StockLearner(tiny(algorithm="IQL", expectile=0.9, critics=3), 2, 2)
    config = learner.algorithm.config
    assert config.expectile == 0.9 and config.n_critics == 3 and "critics.2.0.weight" in learner.networks()


def test_names_unknown_algorithms_and_options() -> None:
    assert {"SAC", "IQL", "TD3PlusBC", "BC"} <= set(algorithm_names())
    assert not any(name.startswith("Discrete") for name in algorithm_names())
    with pytest.raises(UserError, match="no algorithm 'PPO'"):
        train(EPISODES, tiny(algorithm="PPO"), action_radius=RADIUS)
    with pytest.raises(UserError, match="IQL has no option 'expectil'"):
        train(EPISODES, tiny(algorithm="IQL", expectil=0.9), action_radius=RADIUS)


@pytest.mark.parametrize("algorithm", ["BCQ", "PLAS"])
def test_refuses_actors_that_are_no_plain_network(algorithm: str) -> None:
    with pytest.raises(UserError, match="not a plain network"):
        train(EPISODES, tiny(algorithm=algorithm), action_radius=RADIUS)
