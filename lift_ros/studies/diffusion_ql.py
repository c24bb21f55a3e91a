"""Diffusion-QL: the policy is a diffusion model of the recorded actions, drawn to those that the critics value.

Written from "Diffusion Policies as an Expressive Policy Class for Offline Reinforcement Learning" (Wang, Hunt, Zhou,
ICLR 2023): loss L_d + η·L_q with L_q = −E[Q(s, a⁰)] / E|Q|, double critics whose targets use the averaged policy, and
of several drawn actions one that the critics value. Where the paper draws that one by exp(Q), the best is taken here.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field

import numpy as np
import torch

from lift_ros.array_types import Float32Array
from lift_ros.configuration import Key, check_mapping
from lift_ros.scenario import Scenario
from lift_ros.studies.diffusion import Denoiser, Schedule, follow
from lift_ros.studies.networks import multilayer, secluded
from lift_ros.studies.trained import Trained
from lift_ros.studies.transitions import Source, Transitions, ValuePolicy
from lift_ros.training.options import TrainingOptions
from lift_ros.training.runs import RecordedRuns

EXTRA_KEYS = {
    "eta": Key(float, 1.0, low=0, meaning="Weight of the critics beside the recorded actions."),
    "diffusion_steps": Key(int, 5, low=2, high=1000, meaning="Steps of noise."),
    "candidates": Key(int, 50, low=1, high=10_000, meaning="Drawn actions of which the best is taken."),
}
_LARGEST_GRADIENT = 5.0


class Critics(torch.nn.Module):
    """Two estimates of Q."""

    def __init__(self, observation_size: int, action_size: int, hidden: tuple[int, ...]) -> None:
        super().__init__()
        size = observation_size + action_size
        self._both = torch.nn.ModuleList(multilayer(size, hidden, 1) for _ in range(2))

    def forward(self, observations: torch.Tensor, actions: torch.Tensor) -> torch.Tensor:
        """Return both estimates as columns."""
        pairs = torch.cat([observations, actions], dim=1)
        return torch.cat([critic(pairs) for critic in self._both], dim=1)


class DiffusionQL:
    """The networks and their updates; actions are divided by the action radius."""

    def __init__(self, observation_size: int, action_size: int, options: TrainingOptions) -> None:
        wishes = check_mapping(dict(options.extra), EXTRA_KEYS, f"options of {options.algorithm}")
        self.candidates: int = wishes["candidates"]
        self._eta: float = wishes["eta"]
        self._schedule = Schedule(wishes["diffusion_steps"])
        self._action_size, self._options = action_size, options
        self._actor = Denoiser(action_size, observation_size, options.hidden)
        self._average = copy.deepcopy(self._actor)
        self._updates = 0
        self._critics = Critics(observation_size, action_size, options.hidden)
        self._targets = copy.deepcopy(self._critics)
        self._actor_adam = torch.optim.Adam(self._actor.parameters(), options.actor_learning_rate)
        self._critic_adam = torch.optim.Adam(self._critics.parameters(), options.critic_learning_rate)

    def update(self, batch: Transitions) -> dict[str, float]:
        """Make one step and return the losses."""
        with torch.no_grad():
            following = self._draw(self._average, batch.next_observations)
            value = self._targets(batch.next_observations, following).min(dim=1, keepdim=True).values
            goal = batch.rewards + self._options.gamma * (1 - batch.terminals) * value
        critic_loss = (self._critics(batch.observations, batch.actions) - goal).square().mean()
        _step(self._critic_adam, critic_loss)
        imitation = self._imitation(batch)
        first, second = self._critics(batch.observations, self._draw(self._actor, batch.observations)).T
        flip = bool(torch.rand(()) < 0.5)  # each estimate in turn is led by, the other one scales
        led, scale = (first, second) if flip else (second, first)
        guided = -led.mean() / scale.abs().mean().detach()
        _step(self._actor_adam, imitation + self._eta * guided)
        follow(self._targets, self._critics, self._options.tau)
        # Early on faster, or it would long remember the beginning.
        self._updates += 1
        follow(self._average, self._actor, max(self._options.tau, 10 / (10 + self._updates)))
        return {"critic_loss": float(critic_loss.detach()), "imitation_loss": float(imitation.detach())}

    @torch.no_grad()
    def best_of(self, observations: torch.Tensor, noise: torch.Generator) -> torch.Tensor:
        """Return for each observation the drawn action that the critics value most."""
        many = observations.repeat_interleave(self.candidates, dim=0)
        actions = self._draw(self._average, many, noise)
        values = self._targets(many, actions).min(dim=1).values.view(-1, self.candidates)
        chosen = values.argmax(dim=1) + torch.arange(len(observations)) * self.candidates
        return actions[chosen]

    def _imitation(self, batch: Transitions) -> torch.Tensor:
        return self._schedule.loss(batch.actions, lambda x, t: self._actor(x, t, batch.observations))

    def _draw(
        self, network: torch.nn.Module, observations: torch.Tensor, random: torch.Generator | None = None
    ) -> torch.Tensor:
        """Return an action for each observation."""

        def noise(like: torch.Tensor) -> torch.Tensor:
            return torch.randn(like.shape, generator=random)

        begin = noise(torch.empty(len(observations), self._action_size))
        return self._schedule.denoised(begin, lambda x, t: network(x, t, observations), bound=1.0, noise=noise)


@dataclass
class DiffusionPolicy(ValuePolicy):
    """Asks a trained Diffusion-QL; its noise begins anew with each policy."""

    learner: DiffusionQL | None = None
    seed: int = 0
    _noise: torch.Generator = field(init=False)

    def __post_init__(self) -> None:
        self._noise = torch.Generator().manual_seed(self.seed)

    def answer(self, inputs: Float32Array) -> Float32Array:
        """Return the best of several drawn actions."""
        assert self.learner is not None
        return np.asarray(self.learner.best_of(torch.from_numpy(inputs), self._noise).numpy())


def train_diffusion_ql(
    recorded: RecordedRuns, options: TrainingOptions, action_radius: float, scenario: Scenario | None
) -> Trained:
    """Train on recorded steps, or on shortcuts."""
    source = Source(recorded, options, action_radius)
    with secluded(options.seed):
        learner = DiffusionQL(source.observation_size, source.action_size, options)
        losses: dict[str, float] = {}
        for _ in range(options.updates):
            losses = learner.update(source.draw())
    return Trained(DiffusionPolicy(source.inputs, action_radius, recorded.sight, learner, options.seed), losses)


def _step(optimiser: torch.optim.Optimizer, loss: torch.Tensor) -> None:
    optimiser.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    torch.nn.utils.clip_grad_norm_(optimiser.param_groups[0]["params"], _LARGEST_GRADIENT)
    optimiser.step()
