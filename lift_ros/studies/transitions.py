"""Recorded runs as mini-batches for baselines, drawn and scaled as the product's own training does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch

from lift_ros.array_types import Float32Array, FloatArray
from lift_ros.errors import UserError
from lift_ros.policies.inputs import Inputs, fit_inputs
from lift_ros.policies.sight import VALUES, Sight
from lift_ros.shortcuts.motion import choose_motion
from lift_ros.shortcuts.rule import PLAIN
from lift_ros.shortcuts.sampler import ShortcutSampler
from lift_ros.training.data import make_data, make_track
from lift_ros.training.options import TrainingOptions
from lift_ros.training.runs import RecordedRuns


class Transitions(NamedTuple):
    """A mini-batch; actions are divided by the action radius, rewards and terminals are columns."""

    observations: torch.Tensor
    actions: torch.Tensor
    rewards: torch.Tensor
    next_observations: torch.Tensor
    terminals: torch.Tensor


class Source:
    """Draws mini-batches of shortcuts, or of plain transitions, as the options say."""

    def __init__(self, recorded: RecordedRuns, options: TrainingOptions, action_radius: float) -> None:
        refuse_pictures(recorded, options.algorithm)
        data = make_data(recorded.arrays, options.reward, recorded.sight)
        motion = choose_motion("linear" if options.strategy == PLAIN else options.motion, make_track(recorded.arrays))
        self.inputs = fit_inputs(data.observations, options.scale_observations)
        self.observation_size, self.action_size = self.inputs.size, data.actions.shape[1]
        self._radius, self._batch = action_radius, options.batch_size
        self._sampler = ShortcutSampler(
            self.inputs.of(data.observations),
            data.actions,
            data.rewards,
            data.offsets,
            data.terminated,
            self.inputs.of(data.final_observations),
            action_radius=action_radius,
            gamma=options.gamma,
            C=options.C,
            strategy=options.strategy,
            kappa=motion.kappa,
            episodes_first=options.draw == "episodes",
            memory_limit_bytes=options.pairs_memory,
            seed=options.seed,
        )

    def draw(self) -> Transitions:
        """Return the next mini-batch."""
        batch = self._sampler.sample(self._batch)
        return Transitions(
            torch.from_numpy(batch.observations),
            torch.from_numpy(batch.actions / np.float32(self._radius)),
            torch.from_numpy(batch.rewards),
            torch.from_numpy(batch.next_observations),
            torch.from_numpy(batch.terminals),
        )


def refuse_pictures(recorded: RecordedRuns, algorithm: str) -> None:
    """Refuse runs of which models are to see pictures: the baselines have no encoder."""
    if recorded.sight.image:
        raise UserError(f"{algorithm} sees values only; choose CQL or clone for runs with pictures")


@dataclass
class ValuePolicy:
    """A policy for observations as values, whose answers are shares of the action radius."""

    inputs: Inputs
    action_radius: float
    sight: Sight = VALUES

    def reset(self) -> None:
        """Do nothing: the answer depends on the observation alone."""

    def act(self, observation: FloatArray) -> FloatArray:
        """Return the action for one observation."""
        return np.asarray(self.act_batch(np.asarray(observation)[None])[0])

    def act_batch(self, observations: FloatArray) -> FloatArray:
        """Return one action per row, inside the ball of the action radius."""
        unit = self.answer(self.inputs.of(np.asarray(observations, dtype=np.float32))).astype(np.float64)
        norm = np.sqrt((unit * unit).sum(axis=1, keepdims=True))
        return np.asarray(unit * (self.action_radius / np.maximum(norm, 1.0) * (1.0 - 1e-15)))

    def answer(self, inputs: Float32Array) -> Float32Array:
        """Return actions as shares of the action radius, for what networks are given."""
        raise NotImplementedError
