"""Iterative offline RL: exploration by a trained model E_θ(o, a) of how likely an action is at an observation.

E_θ is a network whose outputs are the weights, centres and widths of a few Gaussians over actions. It is trained by
minimising −log E_θ(o, a) + R(θ) over the recorded steps, R being the squared weights. While collecting, the action that
it holds for the least likely of some candidates is taken.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import torch

from lift_ros.array_types import FloatArray
from lift_ros.policies.augmentations import RandomAugmentation
from lift_ros.policies.inputs import Inputs, fit_inputs
from lift_ros.positioning.ball import uniform_in_ball
from lift_ros.scenario import Scenario
from lift_ros.studies.networks import multilayer, secluded
from lift_ros.training.data import shown
from lift_ros.training.options import TrainingOptions
from lift_ros.training.runs import RecordedRuns

_GAUSSIANS = 8
_CANDIDATES = 32
_REGULARISATION = 1e-4
_NARROWEST, _WIDEST = -4.0, 1.0  # logarithm of a width, as a share of the action radius


class UncertaintyNetwork(torch.nn.Module):
    """E_θ: a mixture of Gaussians over actions for each observation; actions are divided by the action radius."""

    def __init__(self, observation_size: int, action_size: int, hidden: tuple[int, ...]) -> None:
        super().__init__()
        self._action_size = action_size
        self._layers = multilayer(observation_size, hidden, _GAUSSIANS * (1 + 2 * action_size))

    def log_density(self, observations: torch.Tensor, actions: torch.Tensor) -> torch.Tensor:
        """Return log E_θ(o, a) row by row."""
        size = _GAUSSIANS * self._action_size
        weights, centres, widths = self._layers(observations).split((_GAUSSIANS, size, size), dim=1)
        shape = (len(observations), _GAUSSIANS, self._action_size)
        spread = widths.view(shape).clamp(_NARROWEST, _WIDEST)
        offsets = (actions[:, None, :] - centres.view(shape)) * torch.exp(-spread)
        constant = 0.5 * self._action_size * math.log(2 * math.pi)
        each = -0.5 * offsets.square().sum(dim=2) - spread.sum(dim=2) - constant
        return torch.logsumexp(torch.log_softmax(weights, dim=1) + each, dim=1)


@dataclass(eq=False)
class TrainedUncertainty(RandomAugmentation):
    """Takes the candidate that E_θ holds for the least likely."""

    network: UncertaintyNetwork | None = field(default=None)
    inputs: Inputs | None = field(default=None)

    def act(self, observation: FloatArray) -> FloatArray:
        """Draw candidates and take the least likely."""
        actions = uniform_in_ball(self._rng, _CANDIDATES, self.action_size, self.action_radius)
        return np.asarray(actions[int(np.argmin(self.log_density(observation, actions)))])

    def log_density(self, observation: FloatArray, actions: FloatArray) -> FloatArray:
        """Return log E_θ(o, a) for each row of actions."""
        assert self.network is not None and self.inputs is not None
        seen = self.inputs.of(np.asarray(observation, dtype=np.float32)[None]).repeat(len(actions), axis=0)
        unit = torch.from_numpy((actions / self.action_radius).astype(np.float32))
        with torch.no_grad():
            return np.asarray(self.network.log_density(torch.from_numpy(seen), unit).double().numpy())


def train_uncertainty(scenario: Scenario, recorded: RecordedRuns, options: TrainingOptions) -> TrainedUncertainty:
    """Train E_θ on recorded steps and return the augmentation that explores with it."""
    policy = TrainedUncertainty(scenario.make_logging_policy(), scenario.action_size, scenario.action_radius)
    arrays = shown(recorded.arrays, policy.sight)
    policy.inputs = fit_inputs(arrays.observations.astype(np.float32), options.scale_observations)
    observations = torch.from_numpy(policy.inputs.of(arrays.observations.astype(np.float32)))
    actions = torch.from_numpy((arrays.actions / scenario.action_radius).astype(np.float32))
    policy.network = fit_uncertainty(observations, actions, options)
    return policy


def fit_uncertainty(observations: torch.Tensor, actions: torch.Tensor, options: TrainingOptions) -> UncertaintyNetwork:
    """Minimise −log E_θ(o, a) + R(θ) over all steps."""
    with secluded(options.seed):
        network = UncertaintyNetwork(observations.shape[1], actions.shape[1], options.hidden)
        optimiser = torch.optim.Adam(network.parameters(), options.actor_learning_rate)
        for _ in range(options.updates):
            rows = torch.randint(len(actions), (options.batch_size,))
            size = sum(parameter.square().sum() for parameter in network.parameters())
            loss = -network.log_density(observations[rows], actions[rows]).mean() + _REGULARISATION * size
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
    return network
