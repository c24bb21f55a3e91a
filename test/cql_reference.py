"""d3rlpy's own CQL with the weights of ours, to compare one update of both."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import d3rlpy
import torch
from d3rlpy.torch_utility import TorchMiniBatch

from lift_ros.training.cql import CQL, Batch, Noise
from lift_ros.training.options import TrainingOptions


@dataclass(frozen=True)
class Sized:
    """Options and the sizes of what is learned."""

    options: TrainingOptions
    observation_size: int
    action_size: int

    def cql(self, seed: int = 0, threads: int = 1) -> CQL:
        """Return ours."""
        options = replace(self.options, seed=seed)
        return CQL(options, self.observation_size, self.action_size, threads)


def stock_cql(case: Sized) -> Any:
    """Return d3rlpy's CQL with the same sizes and hyperparameters."""
    settings = case.options
    encoder = d3rlpy.models.VectorEncoderFactory(hidden_units=list(settings.hidden))
    algorithm = d3rlpy.algos.CQLConfig(
        actor_learning_rate=settings.actor_learning_rate,
        critic_learning_rate=settings.critic_learning_rate,
        temp_learning_rate=settings.temperature_learning_rate,
        alpha_learning_rate=settings.alpha_learning_rate,
        actor_encoder_factory=encoder,
        critic_encoder_factory=encoder,
        batch_size=settings.batch_size,
        gamma=settings.gamma,
        tau=settings.tau,
        n_critics=settings.critics,
        initial_temperature=settings.initial_temperature,
        initial_alpha=settings.initial_alpha,
        alpha_threshold=settings.alpha_threshold,
        conservative_weight=settings.conservative_weight,
        n_action_samples=settings.action_samples,
    ).create(device="cpu")
    algorithm.create_impl((case.observation_size,), case.action_size)
    return algorithm


def linear_layers(module: torch.nn.Module) -> list[torch.nn.Linear]:
    """Return the linear layers of one of d3rlpy's networks from input to output."""
    return [part for part in module.modules() if isinstance(part, torch.nn.Linear)]


def flatten(module: torch.nn.Module, gradients: bool = False) -> torch.Tensor:
    """Return the weights (or gradients) of one of d3rlpy's networks in our flat layout."""
    layers = linear_layers(module)
    heads = layers[-2:] if hasattr(module, "_mu") else layers[-1:]
    body = layers[: -len(heads)]

    def pick(parameter: torch.Tensor) -> torch.Tensor:
        value = parameter.grad if gradients else parameter.data
        assert value is not None
        return value

    parts = [torch.cat([pick(layer.weight).t(), pick(layer.bias)[None]]).reshape(-1) for layer in body]
    head = [torch.cat([pick(layer.weight).t(), pick(layer.bias)[None]]) for layer in heads]
    return torch.cat([*parts, torch.cat(head, dim=1).reshape(-1)])


def copy_weights(algorithm: Any, ours: CQL) -> None:
    """Give our networks the weights of d3rlpy's."""
    modules = algorithm.impl.modules
    ours.actor.values.copy_(flatten(modules.policy))
    for critic, online, target in zip(ours.critics, modules.q_funcs, modules.targ_q_funcs, strict=True):
        critic.online.values.copy_(flatten(online))
        critic.target.values.copy_(flatten(target))


def random_batch(case: Sized, seed: int) -> Batch:
    """Return a batch of plausible transitions."""
    generator = torch.Generator().manual_seed(seed)
    size = case.options.batch_size
    return Batch(
        torch.randn(size, case.observation_size, generator=generator),
        torch.rand(size, case.action_size, generator=generator) * 2 - 1,
        -torch.rand(size, generator=generator),
        torch.randn(size, case.observation_size, generator=generator),
        (torch.rand(size, generator=generator) < 0.1).float(),
        torch.rand(size, case.action_size, generator=generator) * 2 - 1,
    )


def to_stock(batch: Batch) -> TorchMiniBatch:
    """Return our batch as d3rlpy's."""
    zeros = torch.zeros_like(batch.rewards)[:, None]
    return TorchMiniBatch(
        observations=batch.observations,
        actions=batch.actions,
        rewards=batch.rewards[:, None],
        next_observations=batch.next_observations,
        next_actions=batch.actions,
        returns_to_go=zeros,
        terminals=batch.terminals[:, None],
        intervals=zeros + 1,
        device="cpu",
    )


def stock_noise(case: Sized, seed: int) -> Noise:
    """Return what d3rlpy's update draws from torch's generator after `torch.manual_seed(seed)`."""
    torch.manual_seed(seed)
    shape = (case.options.action_samples, case.options.batch_size, case.action_size)
    current = torch.normal(torch.zeros(shape), torch.ones(shape)).transpose(0, 1)
    following = torch.normal(torch.zeros(shape), torch.ones(shape)).transpose(0, 1)
    flat = torch.zeros(shape[0] * shape[1], shape[2]).uniform_(-1.0, 1.0)
    actor = torch.normal(torch.zeros(shape[1:]), torch.ones(shape[1:]))
    torch.manual_seed(seed)
    return Noise(torch.stack([current, following]), flat.view(shape[1], shape[0], shape[2]), actor)
