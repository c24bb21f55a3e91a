from __future__ import annotations

import numpy as np
import torch

from lift_ros.bags import episodes_to_arrays
from lift_ros.collection.loop import collect
from lift_ros.policies.protocol import begin_episode
from lift_ros.scenario import load_scenario
from lift_ros.studies.iorl import fit_uncertainty, train_uncertainty
from lift_ros.training.options import TrainingOptions
from lift_ros.training.runs import RecordedRuns


def test_actions_that_were_seen_are_likely() -> None:
    rng = np.random.default_rng(0)
    seen = torch.from_numpy(rng.uniform(-1, 1, (2000, 1)).astype(np.float32))
    # Two ways to act: with the sign of the observation, or against it, but never in between.
    done = torch.sign(seen) * torch.from_numpy(rng.choice([-0.5, 0.5], (2000, 1)).astype(np.float32))
    done += 0.02 * torch.from_numpy(rng.normal(size=(2000, 1)).astype(np.float32))
    network = fit_uncertainty(seen, done, TrainingOptions(updates=400, seed=1))
    asked = torch.full((3, 1), 0.7)
    likely = network.log_density(asked, torch.tensor([[0.5], [-0.5], [0.0]])).detach()
    assert min(likely[0], likely[1]) > likely[2] + 1.0


def test_the_density_is_one() -> None:
    network = fit_uncertainty(torch.zeros(50, 1), torch.zeros(50, 1), TrainingOptions(updates=20))
    actions = torch.linspace(-20, 20, 40001)[:, None]
    density = network.log_density(torch.zeros(len(actions), 1), actions).exp().detach()
    assert abs(float(density.sum() * 0.001) - 1.0) < 1e-3


def test_it_explores_where_the_routine_never_acts() -> None:
    scenario = load_scenario("po-blend-d2")
    episodes = collect(scenario, episodes=4, seed=0, progress=False)
    recorded = RecordedRuns(episodes_to_arrays(episodes), [], [], scenario, scenario.action_radius)
    policy = train_uncertainty(scenario, recorded, TrainingOptions(updates=300))
    begin_episode(policy, 3)
    taken = np.array([policy.act(np.array([0.4, 0.4])) for _ in range(20)])
    assert (np.linalg.norm(taken, axis=1) > 4 * 0.025).mean() > 0.8  # the routine's steps are 0.025 long
    begin_episode(policy, 3)
    assert np.array_equal(policy.act(np.array([0.4, 0.4])), taken[0])
