"""The learned policy: a trained network that answers with numpy alone, so that one question costs microseconds."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from lift_ros.array_types import Float32Array, FloatArray, Picture
from lift_ros.configuration import Key, check_value
from lift_ros.errors import UserError
from lift_ros.policies import coverage
from lift_ros.policies.encoder import EncoderPlan, PictureEncoder
from lift_ros.policies.inputs import DEVIATION, MEAN, SWITCHES, Inputs
from lift_ros.policies.model_file import Tensors, read_tensor_file
from lift_ros.policies.preprocessing import Preprocessing
from lift_ros.policies.sight import VALUES, Seen, Sight
from lift_ros.positioning.problem import LARGEST_LENGTH, Limits
from lift_ros.untrusted import brief, check_path

Layer = tuple[Float32Array, Float32Array]  # weight as (inputs, outputs), bias

MODEL_KIND = "model"
MODEL_VERSION = 1
SIGHT_VERSION = 2  # of models that do not see all values and nothing else, and say what
REFERENCE = "picture.reference"
_RADIUS_SLACK = 1e-6
_SIZE = Key(int, low=1, high=1_000_000)
_FACTS = {
    "algorithm": Key(str),
    "observation_size": Key(int, low=0, high=1_000_000),
    "action_size": _SIZE,
    "action_radius": Key(float, above=0, high=LARGEST_LENGTH),
    "critics": Key(int, low=0, high=64),
}


class LearnedPolicy:
    """A `Policy` read from a model file; it keeps no state between calls.

    What it calls an observation is what its `sight` shows: a vector, a picture, or both as `Seen`. `observation_size`
    counts the entries of the vector.
    """

    def __init__(self, tensors: Tensors, description: Mapping[str, Any], hash: str, source: str) -> None:
        """Check that tensors and description belong together; `source` names the file in errors."""
        self._source = source
        self.hash = hash
        self.description = dict(description)
        try:
            facts = [check_value(name, self.description.get(name), key) for name, key in _FACTS.items()]
        except UserError as error:
            raise self._bad(str(error)) from None
        self.algorithm: str = facts[0]
        self.observation_size: int = facts[1]
        self.action_size: int = facts[2]
        self.action_radius: float = facts[3]
        left = dict(tensors)
        self.sight = self._sight()
        self.inputs = self._inputs(left)
        self._as_given = not (self.inputs.is_scaled or self.inputs.switches.size)
        self.preprocessing, self.encoder = self._eyes(left)
        self.encoder_tensors = {name: tensors[name] for name in tensors.keys() - left.keys() if name != REFERENCE}
        seen = self.inputs.size + (0 if self.encoder is None else self.encoder.plan.outputs)
        # Weights as (inputs, outputs) and biases, in order; all but the last are followed by ReLU.
        self.actor_layers = self._network(left, "actor", seen, self.action_size)
        both = seen + self.action_size
        self._critics = [self._network(left, f"critics.{k}", both, 1) for k in range(facts[4])]
        # Of an encoder's many features only the principal axes are watched.
        watched: tuple[int, int | None] = (self.observation_size, self.observation_size)
        if self.encoder is not None:
            watched = self.inputs.size + self.encoder.plan.features, None
        self._coverage = self._region(left, *watched)
        if left:
            raise self._bad(f"tensor {min(left)!r} belongs to no part of the described network")
        action = self.act(self._nothing())
        if not np.isfinite(action).all():
            raise self._bad("a trial inference gave an action that is not finite")

    def reset(self) -> None:
        """Do nothing: the answer depends on the observation alone."""

    def act(self, observation: Any) -> FloatArray:
        """Return the action for one observation, inside the ball of the action radius."""
        if self.encoder is not None:
            return np.asarray(self._drive(self._read(self._features(observation)))[0])
        return self._drive(self._vector(observation, 1))

    def act_batch(self, observations: FloatArray) -> FloatArray:
        """Return one action per row of `observations`, which are vectors; `act_on` is for those who see pictures."""
        return self._drive(self._vector(observations, 2))

    def act_on(self, values: Float32Array, kept: Picture) -> FloatArray:
        """Return one action per row of values and of pictures, both as training keeps them."""
        return self._drive(self._read(self._look(values, kept)))

    def covers(self, observation: Any) -> bool:
        """Whether the training data cover an observation; a model that does not say (0.1.0) takes all for covered."""
        if self._coverage is None:
            return True
        seen = np.asarray(observation, dtype=np.float32) if self.encoder is None else self._features(observation)[0]
        return coverage.is_covered(seen, *self._coverage)

    def _look(self, values: Float32Array, kept: Picture) -> Float32Array:
        """Return features of pictures as training keeps them, and beside them the inputs for values, one per row."""
        assert self.encoder is not None and self.preprocessing is not None
        seen = self.encoder.features(self.preprocessing.scaled(kept))
        return np.concatenate([seen, self.inputs.of(values)], axis=1) if values.shape[1] else seen

    def _read(self, seen: Float32Array) -> Float32Array:
        """Return what the networks are given for features and inputs."""
        assert self.encoder is not None
        features = self.encoder.plan.features
        return np.concatenate([self.encoder.read(seen[:, :features]), seen[:, features:]], axis=1)

    @property
    def knows_coverage(self) -> bool:
        """Whether the model says which observations its data cover."""
        return self._coverage is not None

    def q_value(self, observation: FloatArray, action: FloatArray) -> float:
        """Return the discounted return that the critics expect, averaged over them."""
        return float(self.q_values(np.asarray(observation)[None], np.asarray(action)[None])[0])

    def q_values(self, observations: FloatArray, actions: FloatArray) -> FloatArray:
        """Return the critics' expected return for each row of observations and actions."""
        if not self._critics:
            raise UserError(f"the model {self._source} ({self.algorithm}) has no critic; train one with CQL to ask it")
        values = np.asarray(observations, dtype=np.float32)
        unit = (np.asarray(actions, dtype=np.float64) / self.action_radius).astype(np.float32)
        if values.shape[1:] != (self.observation_size,) or unit.shape != (len(values), self.action_size):
            raise UserError(
                f"the model {self._source} expects observations of size {self.observation_size} and actions of size "
                f"{self.action_size}, got shapes {values.shape} and {unit.shape}"
            )
        inputs = np.concatenate([self._seen(values), unit], axis=1)
        answers = np.stack([_forward(critic, inputs)[:, 0] for critic in self._critics])
        return np.asarray(answers.mean(axis=0, dtype=np.float64))

    def _seen(self, values: Float32Array) -> Float32Array:
        return values if self._as_given else self.inputs.of(values)

    def _vector(self, observations: Any, axes: int) -> Float32Array:
        """Return what the networks are given for one or more vectors."""
        values = np.asarray(observations, dtype=np.float32)
        if values.ndim != axes or values.shape[-1] != self.observation_size or self.encoder is not None:
            raise UserError(
                f"the model {self._source} expects observations of size {self.observation_size} ({self.sight}), "
                f"got shape {values.shape}; use it with the plant it was trained for"
            )
        return self._seen(values)

    def _features(self, observation: Any) -> Float32Array:
        """Return the features and inputs for one observation with a picture, as the only row."""
        assert self.preprocessing is not None
        values, picture = observation if isinstance(observation, Seen) else (np.empty(0), observation)
        if isinstance(observation, Seen) != self.sight.values or len(values) != self.observation_size:
            raise UserError(
                f"the model {self._source} sees {self.sight} with {self.observation_size} values; got {len(values)} of "
                "them; use it with the plant it was trained for"
            )
        return self._look(np.asarray(values, dtype=np.float32)[None], self.preprocessing.of(np.asarray(picture))[None])

    def _drive(self, inputs: Float32Array) -> FloatArray:
        """Return the actor's answer to what the networks are given."""
        unit = np.tanh(_forward(self.actor_layers, inputs).astype(np.float64))
        norm = np.sqrt((unit * unit).sum(axis=-1, keepdims=True))
        # The last factor keeps the norm at or below the radius after rounding.
        return np.asarray(unit * (self.action_radius / np.maximum(norm, 1.0) * (1.0 - 1e-15)))

    def _sight(self) -> Sight:
        try:
            sight = Sight.parse(str(self.description.get("sees", VALUES)))
        except UserError as error:
            raise self._bad(f"sees: {error}") from None
        if sight.values != bool(self.observation_size):
            allowed = "a whole number >= 1" if sight.values else "0"
            raise self._bad(f"observation_size is {self.observation_size}; allowed: {allowed} for who sees {sight}")
        if sight.image != ("picture" in self.description):
            raise self._bad(f"it sees {sight}, which does not go with its description of pictures")
        return sight

    def _eyes(self, left: Tensors) -> tuple[Preprocessing | None, PictureEncoder | None]:
        """Return how pictures are prepared and encoded, where the model sees any."""
        if not self.sight.image:
            return None, None
        try:
            about = check_value("picture", self.description["picture"], Key(dict))
            plan = EncoderPlan.parse(check_value("encoder", self.description.get("encoder"), Key(dict)))
            preprocessing = Preprocessing.from_description(about, left.pop(REFERENCE, None))
        except UserError as error:
            raise self._bad(str(error)) from None
        height, width, channels = preprocessing.shape
        if (height, width, channels) != (plan.height, plan.views * plan.width, plan.channels):
            raise self._bad(f"its encoder is not made for pictures of shape {preprocessing.shape}")
        shapes: dict[str, Sequence[tuple[int, ...]]] = {}
        shapes |= {"encoder": plan.weight_shapes(), "readout": plan.readout_shapes()}
        layers = {
            name: [
                (self._take(left, f"{name}.{k}.weight", *shape), self._take(left, f"{name}.{k}.bias", shape[0]))
                for k, shape in enumerate(each)
            ]
            for name, each in shapes.items()
        }
        return preprocessing, PictureEncoder(plan, layers["encoder"], layers["readout"])

    def _nothing(self) -> Any:
        """Return an observation of zeros, to try the model with."""
        values = np.zeros(self.observation_size)
        if self.preprocessing is None:
            return values
        form = self.preprocessing.format
        picture = np.zeros(form.shape, form.dtype)
        return Seen(values, picture) if self.sight.values else picture

    def _inputs(self, left: Tensors) -> Inputs:
        mean, deviation = (self._take(left, name, self.observation_size) for name in (MEAN, DEVIATION))
        if not (deviation > 0).all():
            raise self._bad(f"{DEVIATION} holds a value that is not positive")
        switches = self._take(left, SWITCHES, None) if SWITCHES in left else np.empty(0, dtype=np.float32)
        if not np.isin(switches, np.arange(self.observation_size)).all():
            raise self._bad(f"{SWITCHES} names an entry that observations of {self.observation_size} do not have")
        return Inputs(mean, deviation, switches.astype(np.int64))

    def _network(self, left: Tensors, prefix: str, inputs: int, outputs: int) -> list[Layer]:
        layers: list[Layer] = []
        while (name := f"{prefix}.{len(layers)}.weight") in left:
            weight = self._take(left, name, None, inputs)
            inputs = len(weight)
            layers.append((np.ascontiguousarray(weight.T), self._take(left, f"{prefix}.{len(layers)}.bias", inputs)))
        if not layers or inputs != outputs:
            raise self._bad(
                f"the network {prefix!r} ends with {inputs if layers else 'no'} outputs, expected {outputs}"
            )
        return layers

    def _region(self, left: Tensors, size: int, axes: int | None) -> tuple[Float32Array, Float32Array] | None:
        if coverage.MEAN not in left and coverage.WHITENING not in left:
            return None
        return self._take(left, coverage.MEAN, size), self._take(left, coverage.WHITENING, size, axes)

    def _take(self, left: Tensors, name: str, *shape: int | None) -> Float32Array:
        """Return a tensor and remove it from those left; None stands for any size."""
        tensor = left.pop(name, None)
        if tensor is None:
            raise self._bad(f"tensor {name!r} is missing")
        wanted = tuple(size if want is None else want for size, want in zip_longest(tensor.shape, shape))
        if len(tensor.shape) != len(shape) or tensor.shape != wanted or tensor.dtype != np.float32:
            raise self._bad(f"tensor {name!r} is {tensor.dtype} of shape {tensor.shape}, expected float32 of {shape}")
        return tensor

    def _bad(self, reason: str) -> UserError:
        return UserError(f"{self._source} is not a valid model file: {reason}; write it again with `lift train`")


def _forward(layers: list[Layer], values: Float32Array) -> Float32Array:
    for weight, bias in layers[:-1]:
        values = np.maximum(values @ weight + bias, 0.0)
    weight, bias = layers[-1]
    return values @ weight + bias


def load_model(path: str | Path) -> LearnedPolicy:
    """Read a model file whole, check it, try it, and return its policy."""
    file = read_tensor_file(path, MODEL_KIND)
    version = file.description.get("version")
    if version not in (MODEL_VERSION, SIGHT_VERSION):
        raise UserError(
            f"{path} has model version {version!r}, this lift_ros reads {MODEL_VERSION} and {SIGHT_VERSION}; "
            "train it again or use the lift_ros that wrote it"
        )
    return LearnedPolicy(file.tensors, file.description, file.hash, str(path))


def check_folder(path: str, folders: str) -> None:
    """Refuse a model that lies in none of the folders, wherever links lead; `folders` has `:` between them or is empty.

    Who announces a model is a stranger, and a path can name any file of this machine.
    """
    try:
        check_path(path)
    except OSError as error:
        raise UserError(f"{brief(path)} cannot be a model: {error.strerror}; announce the path of a file") from error
    allowed = [os.path.realpath(folder) for folder in folders.split(os.pathsep) if folder]
    if allowed and not any(Path(os.path.realpath(path)).is_relative_to(folder) for folder in allowed):
        raise UserError(
            f"{brief(path)} lies in none of the folders that models are taken from ({', '.join(allowed)}); "
            "add its folder to the parameter model_folders"
        )


def load_fitting_model(
    path: str | Path, plant: str, limits: Limits, announced: str | None = None, shown: Sight = VALUES
) -> LearnedPolicy:
    """Read a model file for the plant of this name: one that needs what it is shown, and with steps it allows.

    `announced` is the SHA-256 that must have been announced with it, where somebody else names the file.
    """
    policy = load_model(path)
    if announced == "":
        raise UserError(f"{path} was announced without its SHA-256; announce the hash of the file with it")
    if announced is not None and policy.hash != announced:
        raise UserError(
            f"{path} has the hash {policy.hash[:12]}…, announced was {brief(announced[:12])}…; it was changed since"
        )
    _check_sight(policy, f"{path}", plant, limits, shown)
    sizes = (policy.observation_size, policy.action_size)
    wanted = (policy.sight.size(limits.observation_size), limits.action_size)
    if sizes != wanted:
        raise UserError(
            f"{path} maps observations of size {sizes[0]} to actions of size {sizes[1]}, but {plant} has "
            f"{wanted[0]} and {wanted[1]}; use it with the plant it was trained for"
        )
    if policy.action_radius > limits.action_radius * (1 + _RADIUS_SLACK):
        raise UserError(
            f"{path} makes steps up to {policy.action_radius:g}, but {plant} allows {limits.action_radius:g}; "
            "train one for this plant"
        )
    return policy


def _check_sight(policy: LearnedPolicy, path: str, plant: str, limits: Limits, shown: Sight) -> None:
    """Refuse a model that needs to see what the plant does not send, or what its scenario does not show."""
    if not shown.shows(policy.sight, limits.observation_size):
        raise UserError(
            f"{path} sees {policy.sight}, but {plant} shows {shown}; train a model for it, or change sees.augmentor"
        )
    if policy.preprocessing is not None and policy.preprocessing.format != limits.picture:
        raise UserError(
            f"{path} was trained on pictures of {policy.preprocessing.format}, but {plant} sends "
            f"{limits.picture or 'none'}; use it with the plant it was trained for"
        )
