"""Learning from pictures: an encoder before our learners, which see its features as observations."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch

from lift_ros.array_types import Float32Array
from lift_ros.policies.coverage import fit_coverage
from lift_ros.policies.encoder import EncoderPlan
from lift_ros.policies.model_file import Tensors
from lift_ros.policies.preprocessing import Preprocessing
from lift_ros.seeds import generator
from lift_ros.shortcuts.sampler import ShortcutBatch
from lift_ros.training.dense import Adam
from lift_ros.training.encoder import TorchEncoder
from lift_ros.training.learners import CloneLearner, CQLLearner, Learner, follow, rate_factor
from lift_ros.training.options import TrainingOptions
from lift_ros.training.picture_batches import PictureBatches

_COVERED = 4000  # pictures whose features say what the data cover
_AXES = 16  # along which they do: of hundreds of features most say the same
_SMALLEST_SIDE = 16  # of the last maps: there are no strides below


def make_plan(options: TrainingOptions, preprocessing: Preprocessing) -> EncoderPlan:
    """Return the encoder for these pictures: a wide first kernel, and strides as long as the maps stay large enough."""
    height, width, channels = preprocessing.shape
    views = preprocessing.settings.views
    side, strides = min(height, width // views), []
    for _ in options.maps:
        strides.append(2 if side >= 2 * _SMALLEST_SIDE else 1)
        side = -(-side // strides[-1])
    kernels = (5, *(3 for _ in options.maps[1:]))
    return EncoderPlan(
        height, width // views, channels, views, options.maps, kernels, tuple(strides), min(options.grid, side)
    )


class PictureLearner(Learner):
    """Encodes each picture of a mini-batch once, lets a learner of ours learn from the features, and the encoder too.

    The inner learner leaves the derivative of its losses by its observations in `slopes`; torch carries it through the
    encoder.
    """

    def __init__(
        self,
        options: TrainingOptions,
        values_size: int,
        action_size: int,
        threads: int,
        pictures: PictureBatches,
    ) -> None:
        super().__init__(torch.Generator().manual_seed(options.seed))
        self._options, self._pictures = options, pictures
        self.plan = make_plan(options, pictures.preprocessing)
        self._encoder = TorchEncoder(self.plan, self._random)
        self._inner = _inner_learner(options, self.plan.features + values_size, action_size, threads)
        self._adam = Adam(self._encoder.values)
        self._average = self._encoder.values.clone()

    def update(self, batch: ShortcutBatch) -> dict[str, float]:
        """Make one step of encoder and learner."""
        # A stream of its own for each update, so that a resumed training draws the same.
        rng = generator(self._options.seed, "shifts", self._updates)
        values = self._encoder.values.detach().requires_grad_()
        before = torch.from_numpy(self._pictures.before(batch.starts, rng))
        features = self._encoder.features(before, values)
        shown = replace(batch, observations=_beside(features, batch.observations))
        if self._inner.looks_ahead:
            with torch.no_grad():
                after = torch.from_numpy(self._pictures.after(batch.starts, batch.offsets, rng))
                following = self._encoder.features(after, values)
            shown = replace(shown, next_observations=_beside(following, batch.next_observations))
        losses = self._inner.update(shown)
        features.backward(self._inner.slopes[:, : self.plan.features])  # type: ignore[no-untyped-call]
        assert values.grad is not None
        rate = rate_factor(self._options, self._updates) * self._options.encoder_learning_rate
        with torch.no_grad():
            self._adam.step(values.grad, rate)
        self._updates += 1
        follow(self._average, self._encoder.values, self._options.actor_average, self._updates)
        return losses

    def networks(self) -> Tensors:
        """Return encoder, actor and critics; all are averaged, or an averaged actor would look through other eyes."""
        return self._encoder.tensors(self._average) | self._inner.networks()

    def coverage(self, values: Float32Array) -> Tensors:
        """Return which features the data cover, as tensors of the model file; `values` are the inputs of all steps."""
        seen = []
        for steps, pictures in self._pictures.every(_COVERED):
            with torch.no_grad():
                features = self._encoder.features(torch.from_numpy(pictures), self._average).numpy()
            seen.append(np.concatenate([features, values[steps]], axis=1))
        return fit_coverage(np.concatenate(seen), most_axes=_AXES)

    def state(self) -> tuple[Tensors, dict[str, Any]]:
        """Return what every learner does, and the inner learner's under a name of its own."""
        tensors, facts = super().state()
        inner, inner_facts = self._inner.state()
        return tensors | {f"inner.{name}": tensor for name, tensor in inner.items()}, {**facts, "inner": inner_facts}

    def restore(self, tensors: Tensors, facts: dict[str, Any]) -> None:
        """Continue from an earlier `state`."""
        super().restore(tensors, facts)
        self._adam.steps = self._updates
        inner = {name.removeprefix("inner."): value for name, value in tensors.items() if name.startswith("inner.")}
        self._inner.restore(inner, facts["inner"])

    def close(self) -> None:
        """End the inner learner's threads."""
        self._inner.close()

    def _tensors(self) -> dict[str, torch.Tensor]:
        found = {"encoder": self._encoder.values, "encoder.average": self._average}
        return found | {"encoder.first": self._adam.first, "encoder.second": self._adam.second}


def _beside(features: torch.Tensor, values: Float32Array) -> Float32Array:
    return np.concatenate([features.detach().numpy(), values], axis=1)


def _inner_learner(options: TrainingOptions, inputs: int, action_size: int, threads: int) -> CQLLearner | CloneLearner:
    if options.algorithm == "clone":
        return CloneLearner(options, inputs, action_size, slopes=True)
    return CQLLearner(options, inputs, action_size, threads, slopes=True)
