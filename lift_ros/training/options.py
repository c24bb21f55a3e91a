"""All choices of a training in one record; presets, a scenario and the command line fill it in this order."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lift_ros.configuration import Key, check_value
from lift_ros.errors import UserError
from lift_ros.scenario import TRAINING_KEYS

if TYPE_CHECKING:
    from lift_ros.scenario import Scenario

_COUNT, _RATE, _WIDTH = Key(int, low=1, high=2**53), Key(float, above=0), Key(int, low=1, high=65536)
# What each option but `hidden` may be; those that a scenario knows are its keys.
OPTION_KEYS: dict[str, Key] = {
    **{name: dataclasses.replace(key, optional=False) for name, key in TRAINING_KEYS.items()},
    "algorithm": Key(str),
    "seed": Key(int, low=0, high=2**53),
    "pairs_memory": Key(int, low=0, high=2**53),
    "critics": _COUNT,
    "batch_size": _COUNT,
    "action_samples": _COUNT,
    "tau": Key(float, low=0, high=1),
    "actor_learning_rate": _RATE,
    "critic_learning_rate": _RATE,
    "temperature_learning_rate": Key(float, low=0),
    "alpha_learning_rate": Key(float, low=0),
    "conservative_weight": Key(float, low=0),
    "alpha_threshold": Key(float),
    "initial_temperature": _RATE,
    "initial_alpha": _RATE,
    "schedule": Key(str, choices=("constant", "cosine")),
    "actor_average": Key(float, low=0, high=1),
}


@dataclass(frozen=True)
class TrainingOptions:
    """What is trained, on what and how long. The defaults are the preset `fast`."""

    algorithm: str = "CQL"
    updates: int = 1000
    seed: int = 0
    # what is drawn
    strategy: str = "best"  # of the shortcuts; "none" trains on plain transitions
    C: float = 0.0
    draw: str = "transitions"  # start states uniform over transitions, or over episodes first
    reward: str = "hindsight"  # label episodes that miss rewards, measured ones stay; "recorded" refuses them
    scale_observations: bool = False
    pairs_memory: int = 2**29  # bytes that precomputed shortcuts may take
    # the networks and their updates; the paper's names
    hidden: tuple[int, ...] = (64, 64)
    critics: int = 2
    batch_size: int = 256
    action_samples: int = 4
    gamma: float = 0.99
    tau: float = 0.005
    actor_learning_rate: float = 1e-3
    critic_learning_rate: float = 1e-3
    temperature_learning_rate: float = 1e-4
    alpha_learning_rate: float = 1e-4
    conservative_weight: float = 5.0
    alpha_threshold: float = 10.0
    initial_temperature: float = 1.0
    initial_alpha: float = 1.0
    schedule: str = "cosine"  # how learning rates fall over the updates
    actor_average: float = 0.995  # the model's actor is this running average of the trained one; 0 for none
    extra: Mapping[str, Any] = field(default_factory=dict)  # options of a d3rlpy algorithm other than CQL

    def __post_init__(self) -> None:
        for name, key in OPTION_KEYS.items():
            object.__setattr__(self, name, check_value(name, getattr(self, name), key))
        object.__setattr__(self, "hidden", _widths(self.hidden))
        if self.extra and self.algorithm == "CQL":
            raise UserError(
                f"CQL has no option {next(iter(self.extra))!r}; known are {', '.join(sorted(option_names()))}"
            )

    def replaced(self, changes: Mapping[str, Any]) -> TrainingOptions:
        """Return these options with changes; names that belong to no field go to `extra`."""
        known = option_names()
        own = {name: value for name, value in changes.items() if name in known}
        extra = {**self.extra, **{name: value for name, value in changes.items() if name not in known}}
        return dataclasses.replace(self, **own, extra=extra)

    def as_dict(self) -> dict[str, Any]:
        """Return the options as JSON values; `TrainingOptions().replaced` of it gives the same options."""
        data = dataclasses.asdict(self)
        extra = data.pop("extra")
        return {**data, "hidden": list(self.hidden), **extra}


PRESETS: dict[str, dict[str, Any]] = {
    "fast": {},
    "paper": {
        "strategy": "weighted",
        "hidden": (256, 256),
        "batch_size": 500,
        "action_samples": 10,
        "schedule": "constant",
        "actor_average": 0.0,
    },
}


def option_names() -> set[str]:
    """Return the names of all options but `extra`."""
    return {*OPTION_KEYS, "hidden"}


def preset(name: str = "fast", scenario: Scenario | None = None, **changes: Any) -> TrainingOptions:
    """Return a preset, adapted to what a scenario says of training, with changes on top."""
    if name not in PRESETS:
        raise UserError(f"there is no preset {name!r}; choose from {', '.join(PRESETS)}")
    options = TrainingOptions(**PRESETS[name])
    if scenario is not None:
        wishes = dataclasses.asdict(scenario.training)
        options = options.replaced({key: value for key, value in wishes.items() if value is not None})
    return options.replaced(changes)


def convert_option(name: str, text: str) -> Any:
    """Return the value of an option given as text on the command line, in the type of the option."""
    if name == "hidden":
        return _widths(text)
    key = OPTION_KEYS.get(name)
    value: Any = text
    if key is None or key.kind is not str:
        with contextlib.suppress(ValueError):  # then it is a word
            value = json.loads(text.lower() if text.lower() in ("true", "false") else text)
    return value if key is None else check_value(f"option {name}", value, key)


def _widths(value: Any) -> tuple[int, ...]:
    """Return the widths of hidden layers, given as numbers or as text like 64x64."""
    try:
        parts = map(int, value.replace("x", ",").split(",")) if isinstance(value, str) else value
        widths = tuple(_WIDTH.convert(part) for part in parts)
    except (TypeError, ValueError):
        widths = ()
    if not widths:
        raise UserError(f"hidden is {value!r}; allowed: one width or more, each {_WIDTH.allowed()}")
    return widths
