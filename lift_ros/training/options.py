"""All choices of a training in one record; presets, a scenario and the command line fill it in this order."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lift_ros.errors import UserError
from lift_ros.shortcuts.rule import STRATEGIES

if TYPE_CHECKING:
    from lift_ros.scenario import Scenario

_CHOICES: dict[str, tuple[str, ...]] = {
    "strategy": (*STRATEGIES, "none"),
    "draw": ("transitions", "episodes"),
    "reward": ("recorded", "hindsight"),
    "schedule": ("constant", "cosine"),
}
_AT_LEAST_ONE = ("updates", "batch_size", "critics", "action_samples")
_POSITIVE = ("actor_learning_rate", "critic_learning_rate", "initial_temperature", "initial_alpha")
_NOT_NEGATIVE = (
    "C",
    "temperature_learning_rate",
    "alpha_learning_rate",
    "conservative_weight",
    "pairs_memory",
    "seed",
)
_SHARE = ("gamma", "tau", "actor_average")
LIMIT = 2**53


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
    reward: str = "recorded"  # or "hindsight": −‖s_{i+1} − s_W‖ once the goal is known
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
        for name, allowed in _CHOICES.items():
            if getattr(self, name) not in allowed:
                raise UserError(f"{name} is {getattr(self, name)!r}, but must be one of {', '.join(allowed)}")
        for name in _AT_LEAST_ONE:
            self._check(name, getattr(self, name) >= 1, "at least 1")
        for name in _POSITIVE:
            self._check(name, getattr(self, name) > 0, "greater than 0")
        for name in _NOT_NEGATIVE:
            self._check(name, getattr(self, name) >= 0, "at least 0")
        for name in _SHARE:
            self._check(name, 0 <= getattr(self, name) <= 1, "between 0 and 1")
        if not self.hidden or not all(isinstance(width, int) and 1 <= width <= 65536 for width in self.hidden):
            raise UserError(f"hidden is {self.hidden!r}, but must name one width or more, each from 1 to 65536")
        if self.extra and self.algorithm == "CQL":
            raise UserError(
                f"CQL has no option {next(iter(self.extra))!r}; known are {', '.join(sorted(option_names()))}"
            )

    def _check(self, name: str, good: bool, limit: str) -> None:
        value = getattr(self, name)
        if not good or not math.isfinite(value) or value > LIMIT:
            raise UserError(f"{name} is {value}, but must be {limit}")

    def replaced(self, changes: Mapping[str, Any]) -> TrainingOptions:
        """Return these options with changes; names that belong to no field go to `extra`."""
        known = option_names()
        own = {name: value for name, value in changes.items() if name in known}
        if "hidden" in own:
            own["hidden"] = tuple(own["hidden"])
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
    return {entry.name for entry in dataclasses.fields(TrainingOptions)} - {"extra"}


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
    types = {entry.name: entry.default for entry in dataclasses.fields(TrainingOptions)}
    default = types.get(name)
    try:
        if name == "hidden":
            return tuple(int(part) for part in text.replace("x", ",").split(",") if part)
        if isinstance(default, bool):
            return {"true": True, "false": False}[text.lower()]
        if isinstance(default, int):
            return int(text)
        if isinstance(default, float):
            return float(text)
        if name in types:
            return text
    except (ValueError, KeyError) as error:
        raise UserError(f"option {name}={text} is not a {type(default).__name__}") from error
    return _guess(text)


def _guess(text: str) -> Any:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
