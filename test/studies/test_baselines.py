"""Each baseline on a small task on which its paper says that it works."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from lift_ros.bags import episodes_to_arrays
from lift_ros.collection.loop import collect
from lift_ros.errors import UserError
from lift_ros.evaluation.convergence import context_seeds, converge
from lift_ros.scenario import Scenario, load_scenario, parse_scenario
from lift_ros.studies.diffusion import Denoiser, Schedule
from lift_ros.studies.diffusion_ql import DiffusionQL
from lift_ros.studies.gta import EXTRA_KEYS, Pieces, TrajectoryGenerator, augmented, train_gta
from lift_ros.studies.networks import secluded
from lift_ros.studies.transitions import Transitions
from lift_ros.training.data import make_data
from lift_ros.training.options import TrainingOptions
from lift_ros.training.runs import RecordedRuns


def easy_scenario() -> Scenario:
    """A plane without distortion whose walk takes few, long steps."""
    data = load_scenario("po-none-d2").as_dict()
    data["plant"] |= {"threshold": 0.1, "step_limit": 100}
    data["logging_policy"]["arguments"]["step"] = 0.2
    return parse_scenario(data, "easy", "the test's scenario")


def record(scenario: Scenario, episodes: int = 20) -> RecordedRuns:
    found = collect(scenario, episodes=episodes, seed=0, progress=False)
    return RecordedRuns(episodes_to_arrays(found), [], [], scenario, scenario.action_radius)


def two_armed(size: int, rng: np.random.Generator) -> Transitions:
    """Return steps of one state in which two ways to act were recorded, and that to the right is worth more."""
    side = rng.choice([-0.6, 0.6], (size, 1)).astype(np.float32)
    off = 0.12 * rng.normal(size=(size, 2)).astype(np.float32)
    rewards = (side > 0) - 8 * np.square(off).sum(axis=1, keepdims=True)
    actions = np.concatenate([side, np.zeros_like(side)], axis=1) + off
    nothing = torch.zeros(size, 1)
    return Transitions(nothing, torch.from_numpy(actions), torch.from_numpy(rewards).float(), nothing, nothing + 1)


def test_noise_is_taken_away_again() -> None:
    """A model of a ring makes points on the ring."""
    rng = np.random.default_rng(0)
    angles = rng.uniform(0, 2 * np.pi, 4000)
    ring = torch.from_numpy(np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32))
    with secluded(0):
        schedule, network = Schedule(20), Denoiser(2, 1, (64, 64))
        adam = torch.optim.Adam(network.parameters(), 4e-3)
        for _ in range(700):
            points = ring[torch.randint(len(ring), (256,))]
            loss = schedule.loss(points, lambda x, t: network(x, t, torch.zeros(len(x), 1)))
            adam.zero_grad()
            loss.backward()
            adam.step()
        with torch.no_grad():
            made = schedule.denoised(torch.randn(500, 2), lambda x, t: network(x, t, torch.zeros(len(x), 1)))
    radius = made.norm(dim=1)
    assert (radius - 1).abs().median() < 0.15
    assert made.mean(dim=0).norm() < 0.25  # all around


@pytest.mark.parametrize("eta", [0.0, 0.3])
def test_diffusion_ql_keeps_both_ways_and_prefers_the_better(eta: float) -> None:
    """What a Gaussian policy cannot: its mean would lie where nobody ever acted."""
    extra = {"eta": eta, "candidates": 10}
    options = TrainingOptions(
        algorithm="DiffusionQL", hidden=(64, 64), actor_learning_rate=4e-3, critic_learning_rate=4e-3, extra=extra
    )
    rng = np.random.default_rng(1)
    with secluded(2):
        learner = DiffusionQL(1, 2, options)
        for _ in range(400):
            learner.update(two_armed(128, rng))
        drawn = learner._draw(learner._average, torch.zeros(300, 1)).detach()
    right, left = ((side * drawn[:, 0] > 0.3).float().mean() for side in (1, -1))
    assert right > 3 * left if eta else min(right, left) > 0.2
    best = learner.best_of(torch.zeros(50, 1), torch.Generator().manual_seed(0))
    assert ((best[:, 0] - 0.6).abs() < 0.35).float().mean() > 0.9


def test_gta_makes_pieces_like_the_recorded_ones_with_higher_returns() -> None:
    recorded = record(easy_scenario())
    options = TrainingOptions(updates=600, batch_size=128, actor_learning_rate=2e-3)
    data = make_data(recorded.arrays, options.reward)
    pieces = Pieces.of(data, 4, options.gamma)
    wishes = {name: key.default for name, key in EXTRA_KEYS.items()} | {"horizon": 4}
    with secluded(0):
        made = TrajectoryGenerator(pieces, options, wishes).make(400)
    # The observation after a step is where its action leads.
    error = np.abs(made[:, 1:, :2] - made[:, :-1, :2] - made[:, :-1, 2:4])
    assert np.median(error) < 0.1
    distance = np.linalg.norm(made[:, 1:, :2], axis=2)
    assert np.corrcoef(distance.ravel(), -made[:, :-1, 4].ravel())[0, 1] > 0.8
    before = data.rewards.mean()
    assert made[:, :, 4].mean() > before


def test_gta_gives_cql_more_to_learn_from() -> None:
    recorded = record(easy_scenario(), 10)
    options = TrainingOptions(
        algorithm="GTA",
        updates=20,
        hidden=(16, 16),
        strategy="none",
        anchor=0.0,
        extra={"horizon": 4, "synthetic": 0.5},
    )
    trained = train_gta(recorded, options, 0.3, None)
    assert trained.facts["made_episodes"] == round(0.5 * recorded.arrays.steps / 3)
    both = augmented(recorded, options, 0.3, {name: key.default for name, key in EXTRA_KEYS.items()} | {"horizon": 4})
    assert np.linalg.norm(both.actions, axis=1).max() <= 0.3 + 1e-9
    assert not both.terminated[len(recorded.arrays) :].any()


def test_gta_refuses_episodes_that_are_too_short() -> None:
    options = TrainingOptions(algorithm="GTA", updates=1, extra={"horizon": 500})
    with pytest.raises(UserError, match="GTA needs episodes of at least horizon = 500 steps"):
        train_gta(record(easy_scenario(), 4), options, 0.3, None)


def test_sac_learns_online_from_a_warm_start(tmp_path: Path) -> None:
    from lift_ros.studies.warm_start import train_warm_start

    scenario = easy_scenario()
    options = TrainingOptions(
        algorithm="SAC warm start",
        hidden=(32, 32),
        batch_size=64,
        strategy="none",
        # Few updates leave no time for the temperature to fall.
        extra={"online_episodes": 12, "updates_per_step": 4, "initial_temperature": 0.02},
    )
    recorded = record(scenario, 10)
    trained = train_warm_start(recorded, options, scenario.action_radius, scenario)
    reached = converge(scenario, trained.policy, context_seeds(1, 20), steps=30)
    assert reached.success > 0.7
    assert trained.facts["online_steps"] >= 12
    with pytest.raises(UserError, match="learns while it acts: name a scenario"):
        train_warm_start(recorded, options, scenario.action_radius, None)
    with pytest.raises(UserError, match="SAC has no option 'episodes'"):
        train_warm_start(recorded, replace(options, extra={"episodes": 3}), scenario.action_radius, scenario)
