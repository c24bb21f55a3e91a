"""Random augmentations of a logging policy: the baselines that LIFT is compared with, by name.

Those that change the logging policy's action ask a logging policy of their own: it proposes the same as the one that is
recorded, as long as it is asked at every step and reset at every hand-off, as an arbiter does. So a query is all they
need, in process and in a graph of nodes alike.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lift_ros.array_types import FloatArray
from lift_ros.configuration import Key, check_mapping, nearest
from lift_ros.errors import UserError
from lift_ros.policies.protocol import Policy, begin_episode
from lift_ros.policies.sight import Sight, sight_of
from lift_ros.positioning.ball import shorten, uniform_in_ball
from lift_ros.seeds import generator

LEARNED = "learned"  # the augmentation of LIFT itself, which is trained and comes as a model
UNCERTAINTY = "uncertainty"
_Kernels = tuple[FloatArray, FloatArray]  # centres, one per row, and their common width per column


@dataclass(eq=False)
class RandomAugmentation(ABC):
    """A policy with a random stream of its own, seeded for each episode."""

    logging_policy: Policy  # of its own
    action_size: int
    action_radius: float
    _stream: np.random.Generator | None = field(default=None, init=False)

    @property
    def sight(self) -> Sight:
        """What it sees: what its logging policy does."""
        return sight_of(self.logging_policy)

    def begin_episode(self, seed: int) -> None:
        """Seed the randomness of one episode."""
        self._stream = generator(seed, "augmentation")
        begin_episode(self.logging_policy, seed)

    def reset(self) -> None:
        """Reset the logging policy of its own; the randomness goes on."""
        self.logging_policy.reset()

    @abstractmethod
    def act(self, observation: FloatArray) -> FloatArray:
        """Return the action to take instead of the logging policy's."""

    @property
    def _rng(self) -> np.random.Generator:
        if self._stream is None:
            raise UserError("an augmentation needs a seed: call begin_episode(seed) before the first step")
        return self._stream


@dataclass(eq=False)
class GaussianNoise(RandomAugmentation):
    """π_β(o) + ε with normal ε."""

    sigma: float | None = None  # a third of the action radius unless given

    def act(self, observation: FloatArray) -> FloatArray:
        """Add noise to the logging policy's action."""
        sigma = self.action_radius / 3 if self.sigma is None else self.sigma
        noise = self._rng.normal(0.0, sigma, self.action_size)
        return shorten(self.logging_policy.act(observation) + noise, self.action_radius)


@dataclass(eq=False)
class RandomScaling(RandomAugmentation):
    """π_β(o)·ε with ε = 2·exp(η) and normal η."""

    sigma: float = 0.5

    def act(self, observation: FloatArray) -> FloatArray:
        """Scale the logging policy's action."""
        factor = 2.0 * math.exp(self._rng.normal(0.0, self.sigma))
        return shorten(self.logging_policy.act(observation) * factor, self.action_radius)


class UniformActions(RandomAugmentation):
    """Actions drawn uniformly from the ball, whatever is observed."""

    def act(self, observation: FloatArray) -> FloatArray:
        """Draw an action."""
        return np.asarray(uniform_in_ball(self._rng, 1, self.action_size, self.action_radius)[0])


@dataclass(eq=False)
class UncertaintyModel(RandomAugmentation):
    """The exploration of iterative offline RL: of some candidates, take the action least like those seen here before.

    E(o, a) is the density of the seen actions at an observation, as a kernel estimate: seen pairs count by how close
    their observation is to o. The model is fitted to a fixed dataset, so episodes do not depend on each other.
    """

    candidates: int = 32
    samples: int = 1000
    fit_seed: int = 0
    _seen: tuple[_Kernels, _Kernels] | None = field(default=None, init=False)  # observations, actions

    def fit(self, observations: FloatArray, actions: FloatArray) -> None:
        """Keep up to `samples` of the seen pairs, one per row, and choose the widths of the kernels."""
        if len(observations) != len(actions) or not len(actions):
            raise UserError(
                f"the uncertainty model needs as many actions as observations, at least 1: "
                f"got {len(actions)} and {len(observations)}"
            )
        rng = generator(self.fit_seed, "uncertainty_model")
        chosen = rng.permutation(len(actions))[: self.samples]
        seen, done = (np.array(values, dtype=np.float64)[chosen] for values in (observations, actions))
        self._seen = (seen, _kernel_width(seen)), (done, _kernel_width(done))

    def log_density(self, observation: FloatArray, actions: FloatArray) -> FloatArray:
        """Return log E(o, a) for each row of `actions`, up to a constant that depends on the widths alone."""
        if self._seen is None:
            raise UserError("the uncertainty model has seen no data: call fit(observations, actions) first")
        (seen, observation_width), (done, action_width) = self._seen
        here = -0.5 * np.sum(((seen - observation) / observation_width) ** 2, axis=1)
        offsets = (done[None, :, :] - actions[:, None, :]) / action_width
        return np.asarray(_log_sum(here - 0.5 * np.sum(offsets**2, axis=2)) - _log_sum(here[None, :]))

    def act(self, observation: FloatArray) -> FloatArray:
        """Draw candidates and take the least probable."""
        actions = uniform_in_ball(self._rng, self.candidates, self.action_size, self.action_radius)
        return np.asarray(actions[int(np.argmin(self.log_density(observation, actions)))])


def _kernel_width(values: FloatArray) -> FloatArray:
    """Return a width per column by Scott's rule; a column without spread gets a small one."""
    count, size = values.shape
    spread = np.std(values, axis=0)
    return np.asarray(np.maximum(spread, 1e-3) * float(count) ** (-1.0 / (size + 4)))


def _log_sum(logarithms: FloatArray) -> FloatArray:
    """Return the logarithm of the sum over each row of numbers given by their logarithms."""
    highest = np.max(logarithms, axis=1, keepdims=True)
    return np.asarray(highest[:, 0] + np.log(np.sum(np.exp(logarithms - highest), axis=1)))


_AUGMENTATIONS: dict[str, tuple[Callable[..., RandomAugmentation], dict[str, Key]]] = {
    "gaussian_noise": (
        GaussianNoise,
        {
            "sigma": Key(
                float, None, low=0, optional=True, meaning="Deviation; null takes a third of the action radius."
            )
        },
    ),
    "random_scaling": (
        RandomScaling,
        {"sigma": Key(float, 0.5, low=0, meaning="Deviation of the logarithm of the factor, whose median is 2.")},
    ),
    "uniform": (UniformActions, {}),
    UNCERTAINTY: (
        UncertaintyModel,
        {
            "candidates": Key(int, 32, low=1, meaning="Actions drawn, of which the least familiar is taken."),
            "samples": Key(int, 1000, low=1, meaning="Recorded steps at most that count as seen."),
            "fit_seed": Key(int, 0, low=0, meaning="Seed of the choice of these steps."),
        },
    ),
}
AUGMENTATION_ARGUMENTS = {name: keys for name, (_, keys) in _AUGMENTATIONS.items()}
RANDOM_NAMES = tuple(_AUGMENTATIONS)
AUGMENTATION_NAMES = (LEARNED, *RANDOM_NAMES)


def augmentation_arguments(name: str, arguments: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return the arguments of a named augmentation with defaults filled in."""
    if name not in AUGMENTATION_NAMES:
        raise UserError(f"{where}: unknown augmentation {name!r}; {nearest(name, AUGMENTATION_NAMES)}")
    keys = AUGMENTATION_ARGUMENTS.get(name, {})
    return check_mapping(dict(arguments), keys, where)


def make_augmentation(
    name: str, arguments: Mapping[str, Any], logging_policy: Policy, action_size: int, action_radius: float
) -> RandomAugmentation:
    """Return the random augmentation of this name; `logging_policy` becomes its own, so give it one of its own."""
    if name == LEARNED:
        raise UserError(f"augmentation {LEARNED!r} is a model: train one, and give its file")
    checked = augmentation_arguments(name, arguments, f"augmentation {name}")
    return _AUGMENTATIONS[name][0](logging_policy, action_size, action_radius, **checked)
