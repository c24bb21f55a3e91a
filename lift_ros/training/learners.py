"""Who learns: what every learner offers, our CQL as one, and cloning as another."""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar

import torch

from lift_ros.errors import UserError
from lift_ros.policies.model_file import Tensors
from lift_ros.shortcuts.sampler import ShortcutBatch
from lift_ros.training.cql import CQL, Batch, anchor
from lift_ros.training.dense import Adam, DenseGradient, DenseParameters, DensePass, ScalarAdam, name_layers, to_array
from lift_ros.training.options import TrainingOptions


class Learner(ABC):
    """Something that improves with every mini-batch; actions in a batch are divided by the action radius."""

    random_name: ClassVar[str] = "generator"  # of the random state in a checkpoint

    def __init__(self, random: torch.Generator, options: TrainingOptions) -> None:
        self._random = random
        self._options = options
        self._updates = 0

    @property
    def drives(self) -> bool:
        """Whether the actor has begun to learn."""
        return self._updates > 0

    @property
    def batch_size(self) -> int:
        """How many shortcuts the next update is to be given."""
        return self._options.batch_size

    @abstractmethod
    def update(self, batch: ShortcutBatch) -> dict[str, float]:
        """Learn from a mini-batch and return the losses."""

    @abstractmethod
    def networks(self) -> Tensors:
        """Return actor and critics under the names of the model file."""

    @abstractmethod
    def _tensors(self) -> dict[str, torch.Tensor]:
        """Return all that an update changes, to be read or filled."""

    def state(self) -> tuple[Tensors, dict[str, Any]]:
        """Return all that `restore` needs to continue bit for bit: weights, optimisers and random state."""
        tensors = {name: to_array(tensor) for name, tensor in self._tensors().items()}
        tensors[self.random_name] = to_array(self._random.get_state())
        return tensors, {"updates": self._updates}

    @torch.no_grad()
    def restore(self, tensors: Tensors, facts: dict[str, Any]) -> None:
        """Continue from an earlier `state`."""
        self._updates = int(facts["updates"])
        self._random.set_state(torch.from_numpy(tensors[self.random_name].copy()))
        for name, tensor in self._tensors().items():
            array = tensors[name]
            if tensor.shape != array.shape:
                raise UserError(f"the checkpoint holds a tensor of shape {array.shape}, expected {tuple(tensor.shape)}")
            tensor.copy_(torch.from_numpy(array.copy()))

    def close(self) -> None:  # noqa: B027 (most hold nothing)
        """Release threads, where there are any."""


def rate_factor(options: TrainingOptions, share: float) -> float:
    """Return by what learning rates are multiplied once this share of the updates is done."""
    return 1.0 if options.schedule == "constant" else 0.5 * (1.0 + math.cos(math.pi * share))


def anchor_factor(options: TrainingOptions, update: int) -> float:
    """Return by what β is multiplied at an update: 1 in the first half, then more and more, up to `anchor_rise`.

    The critic says early which shortcuts are worth more than others; precision near the goal comes from imitation.
    """
    return 1.0 + (options.anchor_rise - 1.0) * max(0.0, 2.0 * update / options.updates - 1.0)


class CQLLearner(Learner):
    """Our CQL, with learning rates that may fall and an averaged actor."""

    def __init__(self, options: TrainingOptions, observation_size: int, action_size: int, threads: int) -> None:
        self._action_size = action_size
        self.cql = CQL(options, observation_size, action_size, threads)
        super().__init__(self.cql.generator, options)
        self._average = self.cql.actor.values.clone()

    def update(self, batch: ShortcutBatch) -> dict[str, float]:
        """Make one step of CQL."""
        losses = self.cql.update(
            Batch(
                torch.from_numpy(batch.observations),
                torch.from_numpy(batch.actions),
                torch.from_numpy(batch.rewards[:, 0]),
                torch.from_numpy(batch.next_observations),
                torch.from_numpy(batch.terminals[:, 0]),
                torch.from_numpy(batch.aims),
            ),
            rate_factor=rate_factor(self._options, self._updates / self._options.updates),
            anchor_factor=anchor_factor(self._options, self._updates),
        )
        self._updates += 1
        follow(self._average, self.cql.actor.values, self._options.actor_average, self._updates)
        return losses._asdict()

    def networks(self) -> Tensors:
        """Return the averaged actor's mean and the critics."""
        *hidden, last = self.cql.actor.views(self._average)
        tensors = name_layers("actor", map(_split, [*hidden, last[:, : self._action_size]]))
        for index, critic in enumerate(self.cql.critics):
            tensors.update(name_layers(f"critics.{index}", map(_split, critic.online.layers)))
        return tensors

    def state(self) -> tuple[Tensors, dict[str, Any]]:
        """Return what every learner does, and the numbers that no tensor holds."""
        tensors, facts = super().state()
        return tensors, {**facts, "scalars": [dataclasses.astuple(scalar) for scalar in self._scalars()]}

    def restore(self, tensors: Tensors, facts: dict[str, Any]) -> None:
        """Continue from an earlier `state`."""
        super().restore(tensors, facts)
        for adam in (self.cql.actor_adam, *(critic.adam for critic in self.cql.critics)):
            adam.steps = self._updates
        for scalar, values in zip(self._scalars(), facts["scalars"], strict=True):
            scalar.value, scalar.first, scalar.second, scalar.steps = values

    def close(self) -> None:
        """End the threads."""
        self.cql.close()

    def _tensors(self) -> dict[str, torch.Tensor]:
        adams = {"actor": self.cql.actor_adam}
        found = {"average": self._average, "actor": self.cql.actor.values}
        for index, critic in enumerate(self.cql.critics):
            adams[f"critics.{index}"] = critic.adam
            found[f"critics.{index}"] = critic.online.values
            found[f"targets.{index}"] = critic.target.values
        for name, adam in adams.items():
            found |= {f"{name}.first": adam.first, f"{name}.second": adam.second}
        return found

    def _scalars(self) -> tuple[ScalarAdam, ScalarAdam]:
        return self.cql.log_temperature, self.cql.log_alpha


class CloneLearner(Learner):
    """Imitates what the anchor of our CQL pulls to, with the same actor and no critic: the baseline for everything."""

    def __init__(self, options: TrainingOptions, observation_size: int, action_size: int) -> None:
        super().__init__(torch.Generator().manual_seed(options.seed), options)
        self._actor = DenseParameters((observation_size, *options.hidden, action_size))
        self._actor.initialise(self._random)
        self._adam = Adam(self._actor.values)
        self._gradient = DenseGradient(self._actor)
        self._pass = DensePass(self._actor, options.batch_size)
        self._inputs = torch.ones(options.batch_size, observation_size + 1)
        self._average = self._actor.values.clone()

    @torch.no_grad()
    def update(self, batch: ShortcutBatch) -> dict[str, float]:
        """Make one step towards the actions to imitate."""
        self._inputs[:, :-1] = torch.from_numpy(batch.observations)
        means = self._pass.forward(self._inputs)
        pull = anchor(means, torch.from_numpy(batch.aims), 1.0, self._options.anchor_floor)
        self._gradient.values.zero_()
        self._pass.backward(self._inputs, pull.slopes, self._gradient)
        rate = rate_factor(self._options, self._updates / self._options.updates) * self._options.actor_learning_rate
        self._adam.step(self._gradient.values, rate)
        self._updates += 1
        follow(self._average, self._actor.values, self._options.actor_average, self._updates)
        return {"clone_loss": pull.loss}

    def networks(self) -> Tensors:
        """Return the averaged actor; there are no critics."""
        return name_layers("actor", map(_split, self._actor.views(self._average)))

    def restore(self, tensors: Tensors, facts: dict[str, Any]) -> None:
        """Continue from an earlier `state`."""
        super().restore(tensors, facts)
        self._adam.steps = self._updates

    def _tensors(self) -> dict[str, torch.Tensor]:
        found = {"average": self._average, "actor": self._actor.values}
        return found | {"actor.first": self._adam.first, "actor.second": self._adam.second}


def follow(average: torch.Tensor, values: torch.Tensor, keep: float, updates: int) -> None:
    """Let a running average follow after so many updates; early on faster, or it would long remember the beginning."""
    average.lerp_(values, 1.0 - min(keep, updates / (updates + 9.0)) if keep > 0 else 1.0)


def _split(layer: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return weight and bias of a layer that keeps its bias in its last row."""
    return layer[:-1].t(), layer[-1]
