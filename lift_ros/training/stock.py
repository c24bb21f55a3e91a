"""Any Q-learning algorithm of d3rlpy by name, trained through its own update and exported as a model file."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import replace
from typing import Any

import torch

from lift_ros.errors import UserError
from lift_ros.lazy import quietly
from lift_ros.policies.encoder import EncoderPlan
from lift_ros.policies.model_file import Tensors
from lift_ros.policies.preprocessing import Preprocessing
from lift_ros.seeds import generator
from lift_ros.shortcuts.sampler import ShortcutBatch
from lift_ros.training.dense import name_layers
from lift_ros.training.learners import Learner
from lift_ros.training.options import TrainingOptions
from lift_ros.training.picture_batches import PictureBatches
from lift_ros.training.picture_learner import make_plan

with quietly():
    import d3rlpy
    from d3rlpy.models.torch import DeterministicPolicy, NormalPolicy
    from d3rlpy.models.torch.q_functions import ContinuousMeanQFunction
    from d3rlpy.torch_utility import TorchMiniBatch

_TRIALS = 64
_TOLERANCE = 1e-4
# How our options are called where an algorithm of d3rlpy has them.
_NAMES = {
    "batch_size": "batch_size",
    "gamma": "gamma",
    "tau": "tau",
    "critics": "n_critics",
    "action_samples": "n_action_samples",
    "actor_learning_rate": "actor_learning_rate",
    "critic_learning_rate": "critic_learning_rate",
}


def algorithm_names() -> list[str]:
    """Return the names of d3rlpy's Q-learning algorithms."""
    module = d3rlpy.algos
    names = (name.removesuffix("Config") for name in dir(module) if name.endswith("Config"))
    return sorted(name for name in names if hasattr(module, name) and _is_continuous(getattr(module, name)))


def _is_continuous(kind: Any) -> bool:
    return (
        isinstance(kind, type)
        and issubclass(kind, d3rlpy.algos.QLearningAlgoBase)
        and not kind.__name__.startswith("Discrete")
        and kind.__name__ not in ("DQN", "DoubleDQN", "NFQ", "QLearningAlgoBase")
    )


class StockLearner(Learner):
    """An algorithm of d3rlpy whose actor is a plain network."""

    random_name = "random"

    def __init__(
        self,
        options: TrainingOptions,
        observation_size: int,
        action_size: int,
        pictures: PictureBatches | None = None,
    ) -> None:
        """With pictures d3rlpy's own pixel encoder sees them, one for the actor and one for each critic."""
        super().__init__(torch.default_generator, options)
        if options.algorithm not in algorithm_names():
            raise UserError(
                f"there is no algorithm {options.algorithm!r}; choose CQL or from {', '.join(algorithm_names())}"
            )
        self._pictures = pictures
        self.plan = None if pictures is None else pixel_plan(options, pictures.preprocessing)
        if self.plan is not None and observation_size:
            raise UserError(
                f"{options.algorithm} of d3rlpy sees pictures or values, not both; choose CQL or clone, or let "
                "sees.augmentor be 'image'"
            )
        self._shape: tuple[int, ...] = (observation_size,)
        if self.plan is not None:
            self._shape = (self.plan.channels, self.plan.height, self.plan.width)
        self.algorithm = _configure(options, self.plan).create(device="cpu")
        self.algorithm.create_impl(self._shape, action_size)
        self._impl: Any = self.algorithm.impl
        self.networks()  # refuses what cannot be exported before any work is done

    @property
    def batch_size(self) -> int:
        """How many shortcuts the next update is to be given: pictures are dear."""
        return super().batch_size if self._pictures is None else self._options.picture_batch

    def update(self, batch: ShortcutBatch) -> dict[str, float]:
        """Hand the mini-batch to d3rlpy's own update."""
        observations, next_observations = self._seen(batch)
        stock = TorchMiniBatch(
            observations=observations,
            actions=torch.from_numpy(batch.actions),
            rewards=torch.from_numpy(batch.rewards),
            next_observations=next_observations,
            next_actions=torch.from_numpy(batch.next_actions),
            returns_to_go=torch.from_numpy(batch.returns),
            terminals=torch.from_numpy(batch.terminals),
            intervals=torch.ones(len(batch), 1),
            device="cpu",
        )
        losses = self._impl.update(stock, self._updates)
        self._updates += 1
        return {name: float(value) for name, value in losses.items()}

    def _seen(self, batch: ShortcutBatch) -> tuple[torch.Tensor, torch.Tensor]:
        if self._pictures is None:
            return torch.from_numpy(batch.observations), torch.from_numpy(batch.next_observations)
        rng = generator(self._options.seed, "shifts", self._updates)
        before = self._pictures.before(batch.starts, rng)
        after = self._pictures.after(batch.starts, batch.offsets, rng)
        return torch.from_numpy(before).permute(0, 3, 1, 2), torch.from_numpy(after).permute(0, 3, 1, 2)

    def networks(self) -> Tensors:
        """Return actor and critics; refuse an actor that does not answer like the plain network it is written as."""
        modules = self._impl.modules
        policy = getattr(modules, "policy", getattr(modules, "imitator", None))
        if not isinstance(policy, DeterministicPolicy | NormalPolicy):
            raise self._not_plain()
        head = policy._mu if isinstance(policy, NormalPolicy) else policy._fc
        layers = [*_linear_layers(policy._encoder), head]
        convolutions = [part for part in policy._encoder.modules() if isinstance(part, torch.nn.Conv2d)]
        self._compare(convolutions, layers)
        tensors = name_layers("actor", map(_split, layers))
        if convolutions:  # those of the critics are others, which a model file has no place for
            return tensors | name_layers("encoder", map(_split, convolutions))
        functions = getattr(modules, "q_funcs", [])
        continuous = [function for function in functions if isinstance(function, ContinuousMeanQFunction)]
        for index, function in enumerate(continuous):
            linear = [*_linear_layers(function._encoder), function._fc]
            tensors.update(name_layers(f"critics.{index}", map(_split, linear)))
        return tensors

    def restore(self, tensors: Tensors, facts: dict[str, Any]) -> None:
        """Continue from an earlier `state`; optimisers have none before their first step, so they come first."""
        for name, wrapper in self._parts(d3rlpy.optimizers.OptimizerWrapper).items():
            current = wrapper.optim.state_dict()
            state: dict[int, dict[str, torch.Tensor]] = {}
            for full, value in tensors.items():
                if full.startswith(f"{name}."):
                    index, key = full.removeprefix(f"{name}.").split(".", 1)
                    state.setdefault(int(index), {})[key] = torch.from_numpy(value.copy())
            wrapper.optim.load_state_dict({**current, "state": state})
        super().restore(tensors, facts)

    def _parts(self, kind: Any) -> dict[str, Any]:
        modules = self._impl.modules
        parts = {entry.name: getattr(modules, entry.name) for entry in dataclasses.fields(modules)}
        return {name: part for name, part in parts.items() if isinstance(part, kind)}

    def _tensors(self) -> dict[str, torch.Tensor]:
        found: dict[str, torch.Tensor] = {}
        for name, module in self._parts(torch.nn.Module).items():
            found.update({f"{name}.{key}": value for key, value in module.state_dict(keep_vars=True).items()})
        for name, wrapper in self._parts(d3rlpy.optimizers.OptimizerWrapper).items():
            for index, state in wrapper.optim.state_dict()["state"].items():
                for key, value in state.items():
                    if isinstance(value, torch.Tensor):
                        found[f"{name}.{index}.{key}"] = value
        return found

    def _compare(self, convolutions: list[torch.nn.Conv2d], layers: list[torch.nn.Linear]) -> None:
        probe = torch.linspace(-1.0, 1.0, _TRIALS * math.prod(self._shape)).view(_TRIALS, *self._shape)
        random_state = torch.get_rng_state()
        with torch.no_grad():
            hidden = probe
            for convolution in convolutions:
                hidden = torch.relu(convolution(hidden))
            hidden = hidden.flatten(start_dim=1)
            for layer in layers[:-1]:
                hidden = torch.relu(layer(hidden))
            ours = torch.tanh(layers[-1](hidden))
            theirs = self._impl.predict_best_action(probe)
        torch.set_rng_state(random_state)
        if theirs.shape != ours.shape or float((ours - theirs).abs().max()) > _TOLERANCE:
            raise self._not_plain()

    def _not_plain(self) -> UserError:
        return UserError(
            f"the policy of {self._options.algorithm} is not a plain network, so that no model file can hold it; "
            "choose for example CQL, SAC, IQL, TD3PlusBC, AWAC or BC"
        )


def pixel_plan(options: TrainingOptions, preprocessing: Preprocessing) -> EncoderPlan:
    """Return d3rlpy's pixel encoder with our kernels and strides; views side by side are one picture to it."""
    ours = make_plan(options, preprocessing, 1)
    return replace(ours, width=ours.width * ours.views, views=1, grid=0, flat=True, readout=())


def _configure(options: TrainingOptions, plan: EncoderPlan | None) -> Any:
    kind = getattr(d3rlpy.algos, f"{options.algorithm}Config")
    fields = {entry.name for entry in dataclasses.fields(kind)}
    values = {theirs: getattr(options, ours) for ours, theirs in _NAMES.items() if theirs in fields}
    encoder = d3rlpy.models.VectorEncoderFactory(hidden_units=list(options.hidden))
    if plan is not None:
        filters = [list(layer) for layer in zip(plan.maps, plan.kernels, plan.strides, strict=True)]
        encoder = d3rlpy.models.PixelEncoderFactory(filters=filters, feature_size=options.hidden[-1])
    values.update({name: encoder for name in fields if name.endswith("encoder_factory")})
    if "learning_rate" in fields:
        values["learning_rate"] = options.actor_learning_rate
    for name, value in options.extra.items():
        if name not in fields:
            raise UserError(
                f"{options.algorithm} has no option {name!r}; known are "
                f"{', '.join(sorted(field for field in fields if 'factory' not in field and 'scaler' not in field))}"
            )
        values[name] = value
    try:
        return kind(**values)
    except (TypeError, ValueError, AssertionError) as error:
        raise UserError(f"{options.algorithm} refuses its options: {error}") from error


def _linear_layers(encoder: torch.nn.Module) -> list[torch.nn.Linear]:
    return [part for part in encoder.modules() if isinstance(part, torch.nn.Linear)]


def _split(layer: torch.nn.Linear | torch.nn.Conv2d) -> tuple[torch.Tensor, torch.Tensor]:
    assert layer.bias is not None
    return layer.weight, layer.bias
