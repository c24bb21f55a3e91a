"""Learning from pictures: an encoder learns to see the way that is left, and a learner of ours drives by what it sees.

What is left of an episode's way is known in hindsight at every step: the one action that would lead to its end. An
encoder that tells it is all that a learner needs, and it passes on nothing else, so that the learner is not shown
habits of the routine (while it moves along z, x and y are done) that it could take for what is to be done.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from lift_ros.array_types import BoolArray, Float32Array, IntArray
from lift_ros.errors import UserError
from lift_ros.policies.coverage import fit_coverage
from lift_ros.policies.encoder import EncoderPlan
from lift_ros.policies.learned import LearnedPolicy
from lift_ros.policies.model_file import Tensors
from lift_ros.policies.preprocessing import Preprocessing
from lift_ros.seeds import generator
from lift_ros.shortcuts.sampler import ShortcutBatch
from lift_ros.training.compositions import Composer, Composition
from lift_ros.training.dense import Adam
from lift_ros.training.encoder import TorchEncoder
from lift_ros.training.learners import CloneLearner, CQLLearner, Learner, follow, rate_factor
from lift_ros.training.options import TrainingOptions
from lift_ros.training.picture_batches import PictureBatches

_COVERED = 4000  # pictures whose features say what the data cover
_AXES = 16  # along which they do: of hundreds of features most say the same
_SMALLEST_SIDE = 16  # of the last maps: there are no strides below
_LONGEST_GRADIENT = 5.0  # of the encoder; early ones lead astray
_WARM_UP = 100  # updates until its learning rate is reached
_WHOLE_WAY, _PLACES = 0.5, 0.1  # weights of these losses


def make_plan(options: TrainingOptions, preprocessing: Preprocessing, action_size: int) -> EncoderPlan:
    """Return the encoder for these pictures: a wide first kernel, and strides as long as the maps stay large enough."""
    height, width, channels = preprocessing.shape
    views = preprocessing.settings.views
    side, strides = min(height, width // views), []
    for _ in options.maps:
        strides.append(2 if side >= 2 * _SMALLEST_SIDE else 1)
        side = -(-side // strides[-1])
    kernels = (5, *(3 for _ in options.maps[1:-1]), *(1 for _ in options.maps[1:][-1:]))
    return EncoderPlan(
        height=height,
        width=width // views,
        channels=channels,
        views=views,
        maps=options.maps,
        kernels=kernels,
        strides=tuple(strides),
        grid=min(options.grid, side),
        readout=(*options.readout, action_size),
    )


@dataclass(frozen=True)
class Answers:
    """What an encoder is to tell of each picture of a mini-batch."""

    ways: Float32Array
    known: Float32Array  # 0 where the way is not
    places: Float32Array | None


class Lesson:
    """What an encoder is taught at each step: the way that is left in units of λ, where it is known, and places."""

    def __init__(
        self, ways: Float32Array, known: BoolArray, places: Float32Array | None, composer: Composer | None = None
    ) -> None:
        self._ways, self._known = ways, known.astype(np.float32)
        self._places = places  # of the plant and of the end of its episode, where positions are recorded
        self._composer = composer
        self.places_size = 0 if places is None else places.shape[1]
        # What the encoder passes on is divided by it, so that networks are given numbers around 1.
        self.scale = float(np.sqrt(np.mean(np.square(ways[known])))) if known.any() else 1.0

    def compose(self, steps: IntArray, rng: np.random.Generator) -> Composition | None:
        """Return which of these steps are shown with the goal of another episode; None where pictures stay as taken."""
        return None if self._composer is None else self._composer.draw(steps, rng)

    def answers(self, steps: IntArray, composition: Composition | None = None) -> Answers:
        """Return what is to be told of the pictures of these steps."""
        ways, known = self._ways[steps], self._known[steps]
        places = None if self._places is None else self._places[steps]
        if composition is not None:
            entries, goals = composition.entries, composition.goals
            # As far as the other goal was from the start, less what has been gone since.
            ways[entries] += self._ways[goals] - self._ways[composition.starts]
            if places is not None and self._places is not None:
                half = self.places_size // 2
                places[entries, half:] = self._places[goals, half:]
        return Answers(ways, known, places)


class PictureLearner(Learner):
    """Teaches an encoder first; then the inner learner learns from what it tells of each picture, encoded once.

    The encoder learns nothing from actor and critics: their losses led it to tell the routine's habits, and policies
    went astray where these do not hold.
    """

    def __init__(
        self,
        options: TrainingOptions,
        values_size: int,
        action_size: int,
        threads: int,
        pictures: PictureBatches,
        lesson: Lesson,
        eyes: LearnedPolicy | None = None,
    ) -> None:
        super().__init__(torch.Generator().manual_seed(options.seed), options)
        self._pictures, self._lesson = pictures, lesson
        self.plan = make_plan(options, pictures.preprocessing, action_size)
        self._encoder = TorchEncoder(self.plan, self._random)
        if eyes is not None:
            self._encoder.take(_fitting_tensors(eyes, self.plan, pictures.preprocessing))
        elif not options.lessons:
            raise UserError("lessons is 0; allowed: at least 1, or a model whose encoder is taken (lift train --eyes)")
        # A readout of places that serves the lesson alone: a model file has no need of it.
        self._tutor = torch.zeros(lesson.places_size, self.plan.features + 1)
        self._tutor_adam = Adam(self._tutor)
        self._inner = _inner_learner(options, self.plan.outputs + values_size, action_size, threads)
        self._adam = Adam(self._encoder.values)
        self._average = self._encoder.values.clone()
        self._told: Float32Array | None = None  # of each picture of the store, once the encoder has learned

    @property
    def drives(self) -> bool:
        """Whether the actor has begun to learn: the lessons come first."""
        return self._inner.drives

    @property
    def batch_size(self) -> int:
        """How many shortcuts the next update is to be given: in lessons each is a picture."""
        return self._options.picture_batch if self._is_lesson else self._inner.batch_size

    @property
    def _is_lesson(self) -> bool:
        return self._updates < self._options.lessons

    def update(self, batch: ShortcutBatch) -> dict[str, float]:
        """Make one step of the encoder, or later of the inner learner."""
        losses = self._teach(batch) if self._is_lesson else self._inner.update(self._shown(batch))
        self._updates += 1
        return losses

    def networks(self) -> Tensors:
        """Return encoder, actor and critics; the encoder is averaged."""
        return self._encoder.tensors(self._average) | self._inner.networks()

    def coverage(self, values: Float32Array) -> Tensors:
        """Return which features the data cover, as tensors of the model file; `values` are the inputs of all steps."""
        seen = []
        for steps, pictures in self._pictures.some(_COVERED):
            with torch.no_grad():
                features = self._encoder.features(torch.from_numpy(pictures), self._average)
            seen.append(_beside(features.numpy(), values[steps]))
        return fit_coverage(np.concatenate(seen), most_axes=_AXES)

    def state(self) -> tuple[Tensors, dict[str, Any]]:
        """Return what every learner does, and the inner learner's under a name of its own."""
        tensors, facts = super().state()
        inner, inner_facts = self._inner.state()
        return tensors | {f"inner.{name}": tensor for name, tensor in inner.items()}, {**facts, "inner": inner_facts}

    def restore(self, tensors: Tensors, facts: dict[str, Any]) -> None:
        """Continue from an earlier `state`."""
        super().restore(tensors, facts)
        self._adam.steps = self._tutor_adam.steps = min(self._updates, self._options.lessons)
        inner = {name.removeprefix("inner."): value for name, value in tensors.items() if name.startswith("inner.")}
        self._inner.restore(inner, facts["inner"])
        self._told = None

    def close(self) -> None:
        """End the inner learner's threads."""
        self._inner.close()

    def _tensors(self) -> dict[str, torch.Tensor]:
        found = {"encoder": self._encoder.values, "encoder.average": self._average, "tutor": self._tutor}
        for name, adam in (("encoder", self._adam), ("tutor", self._tutor_adam)):
            found |= {f"{name}.first": adam.first, f"{name}.second": adam.second}
        return found

    def _teach(self, batch: ShortcutBatch) -> dict[str, float]:
        # A stream of its own for each update, so that a resumed training draws the same.
        rng = generator(self._options.seed, "shifts", self._updates)
        values, tutor = (part.detach().requires_grad_() for part in (self._encoder.values, self._tutor))
        composition = self._lesson.compose(batch.starts, rng)
        pictures = self._pictures.before(batch.starts, rng, composition)
        answers = self._lesson.answers(batch.starts, composition)
        features = self._encoder.features(torch.from_numpy(pictures), values)
        loss = self._way_loss(self._encoder.read(features, values), answers)
        loss = loss + _place_loss(features, tutor, answers)
        loss.backward()  # type: ignore[no-untyped-call]
        self._step(values, tutor)
        return {"seeing_loss": float(loss.detach())}

    def _shown(self, batch: ShortcutBatch) -> ShortcutBatch:
        """Return the mini-batch with what the encoder tells as observations."""
        if self._told is None:
            self._told = self._tell()
        before, after = self._pictures.rows(batch.starts, batch.offsets)
        return replace(
            batch,
            observations=_beside(self._told[before], batch.observations),
            next_observations=_beside(self._told[after], batch.next_observations),
        )

    @torch.no_grad()
    def _tell(self) -> Float32Array:
        """Return what the averaged encoder tells of each picture of the store."""
        blocks = (torch.from_numpy(pictures) for pictures in self._pictures.every())
        told = [self._encoder.read(self._encoder.features(block, self._average), self._average) for block in blocks]
        return torch.cat(told).numpy()

    def _way_loss(self, seen: torch.Tensor, answers: Answers) -> torch.Tensor:
        """Return how far the encoder is off the way that is left.

        As an action, shortened onto the ball, errors count as for anchors, relative to its length; so that far ways
        are told apart, too, the whole of it counts besides, but not more than in proportion.
        """
        floor = self._options.anchor_floor**2
        ways, known = torch.from_numpy(answers.ways), torch.from_numpy(answers.known)
        told = self._lesson.scale * seen
        lengths = told.norm(dim=1, keepdim=True) + 1e-6
        acted = told * torch.sqrt(torch.tanh(lengths.square())) / lengths
        aims = ways / ways.norm(dim=1, keepdim=True).clamp(min=1.0)
        weights = (1.0 + floor) / (aims.square().sum(dim=1) + floor)
        errors = weights * (acted - aims).square().sum(dim=1)
        errors = errors + _WHOLE_WAY * functional.huber_loss(told, ways, reduction="none").sum(dim=1)
        loss: torch.Tensor = (known * errors).mean()
        return loss

    @torch.no_grad()
    def _step(self, values: torch.Tensor, tutor: torch.Tensor) -> None:
        done, options = self._updates, self._options
        rate = rate_factor(options, done / options.lessons) * options.encoder_learning_rate
        rate *= min(1.0, (done + 1) / _WARM_UP)
        for adam, part in ((self._adam, values), (self._tutor_adam, tutor)):
            if part.grad is not None and len(part):
                adam.step(part.grad * min(1.0, _LONGEST_GRADIENT / (float(part.grad.norm()) + 1e-12)), rate)
        follow(self._average, self._encoder.values, options.actor_average, done + 1)


def _place_loss(features: torch.Tensor, tutor: torch.Tensor, answers: Answers) -> torch.Tensor:
    """Return how badly places can be read from the features, which makes them features of things in sight."""
    if answers.places is None:
        return torch.zeros(())
    read = functional.linear(features, tutor[:, :-1], tutor[:, -1])
    return _PLACES * (read - torch.from_numpy(answers.places)).square().sum(dim=1).mean()


def _beside(seen: Float32Array, values: Float32Array) -> Float32Array:
    return np.concatenate([seen, values], axis=1)


def _fitting_tensors(eyes: LearnedPolicy, plan: EncoderPlan, preprocessing: Preprocessing) -> Tensors:
    """Return the encoder of a model under the names of its file; refuses one that was made for other pictures."""
    if eyes.encoder is None or eyes.preprocessing is None:
        raise UserError(f"eyes cannot be taken from a model that sees {eyes.sight}; choose one that sees pictures")
    theirs, ours = (each.description() for each in (eyes.preprocessing, preprocessing))
    if eyes.encoder.plan != plan or theirs != ours:
        raise UserError(
            "eyes cannot be taken from a model with another encoder or other pictures: it has "
            f"{eyes.encoder.plan.as_dict()} and {theirs}, wanted are {plan.as_dict()} and {ours}"
        )
    return eyes.encoder_tensors


def _inner_learner(options: TrainingOptions, inputs: int, action_size: int, threads: int) -> CQLLearner | CloneLearner:
    if options.algorithm == "clone":
        return CloneLearner(options, inputs, action_size)
    return CQLLearner(options, inputs, action_size, threads)
