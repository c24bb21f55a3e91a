"""Who learns: our CQL or an algorithm of d3rlpy, behind one small interface."""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch

from lift_ros.errors import UserError
from lift_ros.policies.model_file import Tensors
from lift_ros.shortcuts.sampler import ShortcutBatch
from lift_ros.training.cql import CQL, Batch, CQLSettings
from lift_ros.training.dense import Adam, DenseParameters, ScalarAdam
from lift_ros.training.options import TrainingOptions


class Learner(Protocol):
    """Something that improves with every mini-batch; actions in a batch are divided by the action radius."""

    @property
    def critics(self) -> int:
        """How many critics `networks` gives."""

    def update(self, batch: ShortcutBatch) -> dict[str, float]:
        """Learn from a mini-batch and return the losses."""

    def networks(self) -> Tensors:
        """Return actor and critics under the names of the model file."""

    def state(self) -> tuple[Tensors, dict[str, Any]]:
        """Return all that `restore` needs to continue bit for bit."""

    def restore(self, tensors: Tensors, facts: dict[str, Any]) -> None:
        """Continue from an earlier `state`."""

    def close(self) -> None:
        """Release threads."""


def rate_factor(options: TrainingOptions, update: int) -> float:
    """Return by what learning rates are multiplied at an update."""
    if options.schedule == "constant":
        return 1.0
    return 0.5 * (1.0 + math.cos(math.pi * update / options.updates))


class CQLLearner:
    """Our CQL, with learning rates that may fall and an averaged actor."""

    def __init__(self, options: TrainingOptions, observation_size: int, action_size: int, threads: int) -> None:
        self._options = options
        self._settings = CQLSettings(
            observation_size=observation_size,
            action_size=action_size,
            hidden=options.hidden,
            critics=options.critics,
            batch_size=options.batch_size,
            action_samples=options.action_samples,
            actor_learning_rate=options.actor_learning_rate,
            critic_learning_rate=options.critic_learning_rate,
            temperature_learning_rate=options.temperature_learning_rate,
            alpha_learning_rate=options.alpha_learning_rate,
            conservative_weight=options.conservative_weight,
            alpha_threshold=options.alpha_threshold,
            gamma=options.gamma,
            tau=options.tau,
            initial_temperature=options.initial_temperature,
            initial_alpha=options.initial_alpha,
        )
        self.cql = CQL(self._settings, options.seed, threads)
        self._average = self.cql.actor.values.clone()
        self._updates = 0

    @property
    def critics(self) -> int:
        """How many critics there are."""
        return self._options.critics

    def update(self, batch: ShortcutBatch) -> dict[str, float]:
        """Make one step of CQL."""
        losses = self.cql.update(
            Batch(
                torch.from_numpy(batch.observations),
                torch.from_numpy(batch.actions),
                torch.from_numpy(batch.rewards[:, 0]),
                torch.from_numpy(batch.next_observations),
                torch.from_numpy(batch.terminals[:, 0]),
            ),
            rate_factor=rate_factor(self._options, self._updates),
        )
        self._updates += 1
        # Early on the average follows faster, or it would remember the initial weights for long.
        keep = min(self._options.actor_average, self._updates / (self._updates + 9.0))
        self._average.lerp_(self.cql.actor.values, 1.0 - keep if self._options.actor_average > 0 else 1.0)
        return losses._asdict()

    def networks(self) -> Tensors:
        """Return the averaged actor's mean and the critics."""
        tensors = _named(self.cql.actor.views(self._average), "actor", self._settings.action_size)
        for index, critic in enumerate(self.cql.critics):
            tensors.update(_named(critic.online.layers, f"critics.{index}", 1))
        return tensors

    def state(self) -> tuple[Tensors, dict[str, Any]]:
        """Return weights, optimisers and random state."""
        cql = self.cql
        tensors: Tensors = {"average": _copy(self._average), "generator": _copy(cql.generator.get_state())}
        facts: dict[str, Any] = {"updates": self._updates}
        for name, parameters, adam in self._parts():
            tensors[f"{name}.values"] = _copy(parameters.values)
            if adam is not None:
                tensors[f"{name}.first"] = _copy(adam.first)
                tensors[f"{name}.second"] = _copy(adam.second)
                facts[f"{name}.steps"] = adam.steps
        for name, scalar in self._scalars():
            facts[name] = [scalar.value, scalar.first, scalar.second, scalar.steps]
        return tensors, facts

    def restore(self, tensors: Tensors, facts: dict[str, Any]) -> None:
        """Continue from an earlier `state`."""
        self._updates = int(facts["updates"])
        _fill(self._average, tensors["average"])
        self.cql.generator.set_state(torch.from_numpy(tensors["generator"].copy()))
        for name, parameters, adam in self._parts():
            _fill(parameters.values, tensors[f"{name}.values"])
            if adam is not None:
                _fill(adam.first, tensors[f"{name}.first"])
                _fill(adam.second, tensors[f"{name}.second"])
                adam.steps = int(facts[f"{name}.steps"])
        for name, scalar in self._scalars():
            scalar.value, scalar.first, scalar.second, scalar.steps = facts[name]

    def close(self) -> None:
        """End the threads."""
        self.cql.close()

    def _parts(self) -> list[tuple[str, DenseParameters, Adam | None]]:
        parts: list[tuple[str, DenseParameters, Adam | None]] = [("actor", self.cql.actor, self.cql.actor_adam)]
        for index, critic in enumerate(self.cql.critics):
            parts.append((f"critics.{index}", critic.online, critic.adam))
            parts.append((f"targets.{index}", critic.target, None))
        return parts

    def _scalars(self) -> list[tuple[str, ScalarAdam]]:
        return [("log_temperature", self.cql.log_temperature), ("log_alpha", self.cql.log_alpha)]


def _named(layers: list[torch.Tensor], prefix: str, outputs: int) -> Tensors:
    """Return layers as the model file names them; of the last layer only the first `outputs` columns."""
    tensors: Tensors = {}
    for index, layer in enumerate(layers):
        used = layer if index < len(layers) - 1 else layer[:, :outputs]
        tensors[f"{prefix}.{index}.weight"] = _copy(used[:-1].t())
        tensors[f"{prefix}.{index}.bias"] = _copy(used[-1])
    return tensors


def _copy(tensor: torch.Tensor) -> npt.NDArray[Any]:
    return np.ascontiguousarray(tensor.detach().numpy()).copy()


def _fill(tensor: torch.Tensor, array: npt.NDArray[Any]) -> None:
    if tensor.shape != array.shape:
        raise UserError(f"the checkpoint holds a tensor of shape {array.shape}, expected {tuple(tensor.shape)}")
    tensor.copy_(torch.from_numpy(array.copy()))


def make_learner(options: TrainingOptions, observation_size: int, action_size: int, threads: int) -> Learner:
    """Return the learner of the algorithm that the options name."""
    if options.algorithm == "CQL":
        return CQLLearner(options, observation_size, action_size, threads)
    from lift_ros.training.stock import StockLearner

    return StockLearner(options, observation_size, action_size)
