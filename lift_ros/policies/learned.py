"""The learned policy: a trained network that answers with numpy alone, so that one question costs microseconds."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from lift_ros.array_types import Float32Array, FloatArray
from lift_ros.errors import UserError
from lift_ros.policies.model_file import TensorFile, Tensors, read_tensor_file

Layer = tuple[Float32Array, Float32Array]  # weight as (inputs, outputs), bias

MODEL_KIND = "model"
MODEL_VERSION = 1
_LAYERS_LIMIT = 64
_RADIUS_SLACK = 1e-6


class Plant(Protocol):
    """What a model has to fit; a scenario is one."""

    @property
    def name(self) -> str:
        """How errors call it."""

    @property
    def observation_size(self) -> int:
        """Number of entries of an observation."""

    @property
    def action_size(self) -> int:
        """Number of entries of an action."""

    @property
    def action_radius(self) -> float:
        """Length of the longest action."""


class LearnedPolicy:
    """A `Policy` read from a model file; it keeps no state between calls."""

    def __init__(self, tensors: Tensors, description: Mapping[str, Any], hash: str, source: str) -> None:
        """Check that tensors and description belong together; `source` names the file in errors."""
        self._source = source
        self.hash = hash
        self.description = dict(description)
        self.algorithm = str(self._fact("algorithm", str))
        self.observation_size = self._size("observation_size")
        self.action_size = self._size("action_size")
        self.action_radius = float(self._fact("action_radius", int | float))
        if not 0.0 < self.action_radius < float("inf"):
            raise self._bad(f"action_radius is {self.action_radius}, not a positive number")
        used: set[str] = set()
        self._actor = self._network(tensors, "actor", self.observation_size, self.action_size, used)
        critics = self._fact("critics", int)
        if not 0 <= critics <= _LAYERS_LIMIT:
            raise self._bad(f"critics is {critics}, not between 0 and {_LAYERS_LIMIT}")
        inputs = self.observation_size + self.action_size
        self._critics = [self._network(tensors, f"critics.{k}", inputs, 1, used) for k in range(critics)]
        self._mean = self._vector(tensors, "observation.mean", used)
        self._deviation = self._vector(tensors, "observation.deviation", used)
        if not (self._deviation > 0).all():
            raise self._bad("observation.deviation holds a value that is not positive")
        if left := sorted(set(tensors) - used):
            raise self._bad(f"tensor {left[0]!r} belongs to no part of the described network")
        self._unscaled = not self._mean.any() and bool((self._deviation == 1).all())
        action = self.act(np.zeros(self.observation_size))
        if not np.isfinite(action).all():
            raise self._bad("a trial inference gave an action that is not finite")

    def reset(self) -> None:
        """Do nothing: the answer depends on the observation alone."""

    def act(self, observation: FloatArray) -> FloatArray:
        """Return the action for one observation, inside the ball of the action radius."""
        values = np.asarray(observation, dtype=np.float32)
        if values.shape != (self.observation_size,):
            raise UserError(
                f"the model {self._source} expects observations of size {self.observation_size}, "
                f"got shape {values.shape}; use it with the plant it was trained for"
            )
        return self._to_action(_forward(self._actor, self._scaled(values)))

    def act_batch(self, observations: FloatArray) -> FloatArray:
        """Return one action per row of `observations`."""
        values = np.asarray(observations, dtype=np.float32)
        if values.ndim != 2 or values.shape[1] != self.observation_size:
            raise UserError(
                f"the model {self._source} expects rows of size {self.observation_size}, got shape {values.shape}"
            )
        return self._to_action(_forward(self._actor, self._scaled(values)))

    def q_value(self, observation: FloatArray, action: FloatArray) -> float:
        """Return the discounted return that the critics expect, averaged over them."""
        return float(self.q_values(np.asarray(observation)[None], np.asarray(action)[None])[0])

    def q_values(self, observations: FloatArray, actions: FloatArray) -> FloatArray:
        """Return the critics' expected return for each row of observations and actions."""
        if not self._critics:
            raise UserError(f"the model {self._source} ({self.algorithm}) has no critic; train one with CQL to ask it")
        scaled = self._scaled(np.asarray(observations, dtype=np.float32))
        unit = (np.asarray(actions, dtype=np.float64) / self.action_radius).astype(np.float32)
        if scaled.shape[1:] != (self.observation_size,) or unit.shape != (len(scaled), self.action_size):
            raise UserError(
                f"the model {self._source} expects observations of size {self.observation_size} and actions of size "
                f"{self.action_size}, got shapes {scaled.shape} and {unit.shape}"
            )
        inputs = np.concatenate([scaled, unit], axis=1)
        values = np.stack([_forward(critic, inputs)[:, 0] for critic in self._critics])
        return np.asarray(values.mean(axis=0, dtype=np.float64))

    @property
    def actor_layers(self) -> list[Layer]:
        """Weights as (inputs, outputs) and biases of the actor, in order; all but the last are followed by ReLU."""
        return list(self._actor)

    @property
    def observation_scaling(self) -> tuple[Float32Array, Float32Array]:
        """What is subtracted from an observation, and by what it is then divided."""
        return self._mean, self._deviation

    def _scaled(self, values: Float32Array) -> Float32Array:
        return values if self._unscaled else (values - self._mean) / self._deviation

    def _to_action(self, raw: Float32Array) -> FloatArray:
        unit = np.tanh(raw.astype(np.float64))
        norm = np.sqrt((unit * unit).sum(axis=-1, keepdims=True))
        # The last factor keeps the norm at or below the radius after rounding.
        return np.asarray(unit * (self.action_radius / np.maximum(norm, 1.0) * (1.0 - 1e-15)))

    def _network(self, tensors: Tensors, prefix: str, inputs: int, outputs: int, used: set[str]) -> list[Layer]:
        layers: list[Layer] = []
        for index in range(_LAYERS_LIMIT):
            weight_name, bias_name = f"{prefix}.{index}.weight", f"{prefix}.{index}.bias"
            if weight_name not in tensors:
                break
            weight = tensors[weight_name]
            bias = tensors.get(bias_name)
            if weight.ndim != 2 or weight.shape[1] != inputs or weight.dtype != np.float32:
                raise self._bad(f"tensor {weight_name!r} has shape {weight.shape}, expected (any, {inputs}) of float32")
            if bias is None or bias.shape != weight.shape[:1] or bias.dtype != np.float32:
                raise self._bad(f"tensor {bias_name!r} is missing or does not fit {weight_name!r}")
            layers.append((np.ascontiguousarray(weight.T), bias))
            used.update((weight_name, bias_name))
            inputs = weight.shape[0]
        if not layers or inputs != outputs:
            raise self._bad(
                f"the network {prefix!r} ends with {inputs if layers else 'no'} outputs, expected {outputs}"
            )
        return layers

    def _vector(self, tensors: Tensors, name: str, used: set[str]) -> Float32Array:
        vector = tensors.get(name)
        if vector is None or vector.shape != (self.observation_size,) or vector.dtype != np.float32:
            raise self._bad(f"tensor {name!r} is missing or is not a float32 vector of size {self.observation_size}")
        used.add(name)
        return vector

    def _size(self, name: str) -> int:
        value = int(self._fact(name, int))
        if not 1 <= value <= 1_000_000:
            raise self._bad(f"{name} is {value}, not between 1 and 1000000")
        return value

    def _fact(self, name: str, kind: Any) -> Any:
        value = self.description.get(name)
        if not isinstance(value, kind) or isinstance(value, bool):
            raise self._bad(f"its description has no valid {name!r}: {value!r}")
        return value

    def _bad(self, reason: str) -> UserError:
        return UserError(f"{self._source} is not a valid model file: {reason}; write it again with `lift train`")


def _forward(layers: list[Layer], values: Float32Array) -> Float32Array:
    for weight, bias in layers[:-1]:
        values = np.maximum(values @ weight + bias, 0.0)
    weight, bias = layers[-1]
    return values @ weight + bias


def load_model(path: str | Path) -> LearnedPolicy:
    """Read a model file whole, check it, try it, and return its policy."""
    return policy_from_file(read_tensor_file(path, MODEL_KIND), str(path))


def load_fitting_model(path: str | Path, plant: Plant, sha256: str = "") -> LearnedPolicy:
    """Read a model file for a plant: of the same sizes, with steps no longer than allowed, and the announced one."""
    policy = load_model(path)
    if sha256 and policy.hash != sha256:
        raise UserError(f"{path} has the hash {policy.hash[:12]}…, announced was {sha256[:12]}…; it was changed since")
    sizes = (policy.observation_size, policy.action_size)
    wanted = (plant.observation_size, plant.action_size)
    if sizes != wanted:
        raise UserError(
            f"{path} maps observations of size {sizes[0]} to actions of size {sizes[1]}, but {plant.name} has "
            f"{wanted[0]} and {wanted[1]}; use it with the plant it was trained for"
        )
    if policy.action_radius > plant.action_radius * (1 + _RADIUS_SLACK):
        raise UserError(
            f"{path} makes steps up to {policy.action_radius:g}, but {plant.name} allows {plant.action_radius:g}; "
            "train one for this plant"
        )
    return policy


def policy_from_file(file: TensorFile, source: str) -> LearnedPolicy:
    """Return the policy of a file already read; `source` names it in errors."""
    version = file.description.get("version")
    if version != MODEL_VERSION:
        raise UserError(
            f"{source} has model version {version!r}, this lift_ros reads {MODEL_VERSION}; "
            "train it again or use the lift_ros that wrote it"
        )
    return LearnedPolicy(file.tensors, file.description, file.hash, source)
