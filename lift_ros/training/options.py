"""All choices of a training in one record; presets, a scenario and the command line fill it in this order."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from lift_ros.configuration import Key, check_value
from lift_ros.errors import UserError
from lift_ros.scenario import TRAINING_KEYS, Scenario
from lift_ros.untrusted import LARGEST_MODEL, brief

_MOST_LAYERS = 32
_WIDTH = Key(int, low=1, high=65536)
_MAY_BE_EMPTY = {"readout"}
WIDTHS = {
    "hidden": "Widths of the networks' hidden layers; on the command line 64x64.",
    "maps": "Maps of each convolution of an encoder of pictures; on the command line 16x32.",
    "readout": "Widths of hidden layers between an encoder's features and the offset that it learns to see.",
}
OURS = ("CQL", "clone")  # algorithms; all others are d3rlpy's
_LARGEST = 2**53  # whole numbers up to here survive JSON


def _option(default: Any, meaning: str, **limits: Any) -> Any:
    """Return the field of an option of the default's type within these limits; those of a scenario's keys are known."""
    return field(default=default, metadata={"key": Key(type(default), default, **limits, meaning=meaning)})


@dataclass(frozen=True)
class TrainingOptions:
    """What is trained, on what and how long. The defaults are the preset `fast`."""

    algorithm: str = _option(
        "CQL", "CQL, clone (imitates the best shortcuts, no critic), or one of d3rlpy by its name."
    )
    updates: int = 1000
    seed: int = _option(0, "Seed of weights, draws and noise.", low=0, high=_LARGEST)
    # what is drawn
    strategy: str = "best"
    C: float = 0.0
    motion: str = "auto"
    draw: str = "episodes"
    reward: str = "hindsight"
    held_out: float = _option(0.1, "Share of the episodes that is kept to judge the model by.", low=0, high=0.5)
    scale_observations: bool = True
    pairs_memory: int = _option(2**29, "Bytes that precomputed shortcuts may take.", low=0, high=_LARGEST)
    # the networks and their updates; the paper's names
    hidden: tuple[int, ...] = (64, 64)
    critics: int = _option(2, "Number of critics.", low=1, high=64)
    batch_size: int = _option(256, "Shortcuts per update.", low=1, high=1_000_000)
    action_samples: int = _option(4, "Actions drawn per state for CQL's conservative term.", low=1, high=10_000)
    gamma: float = 0.99
    tau: float = _option(0.005, "How fast target critics follow the critics.", low=0, high=1)
    actor_learning_rate: float = _option(1e-3, "Learning rate of the actor.", above=0)
    critic_learning_rate: float = _option(1e-3, "Learning rate of the critics.", above=0)
    temperature_learning_rate: float = _option(1e-4, "Learning rate of the entropy's temperature; 0 fixes it.", low=0)
    alpha_learning_rate: float = _option(1e-4, "Learning rate of the conservative term's factor α; 0 fixes it.", low=0)
    conservative_weight: float = _option(5.0, "Weight of CQL's conservative term.", low=0)
    alpha_threshold: float = _option(10.0, "Conservative loss above which α grows and below which it falls.")
    initial_temperature: float = _option(1.0, "Temperature at the start.", above=0)
    initial_alpha: float = _option(1.0, "α at the start.", above=0)
    anchor: float = _option(5.0, "β, how strongly the actor is pulled to the shortcuts' actions; 0 for not.", low=0)
    anchor_rise: float = _option(
        4.0, "To how many times itself β grows over the second half of the updates; 1 keeps it.", low=0
    )
    anchor_to: str = "far"
    anchor_floor: float = _option(
        0.3, "Errors count relative to the action's length; below this share of λ absolutely.", above=0
    )
    schedule: str = _option("cosine", "How learning rates fall over the updates.", choices=("constant", "cosine"))
    actor_average: float = _option(
        0.995, "The model's actor is a running average with this decay of the trained one; 0 for none.", low=0, high=1
    )
    # what pictures need; nobody else heeds it
    maps: tuple[int, ...] = (16, 32, 32)
    readout: tuple[int, ...] = ()
    grid: int = _option(
        0, "Cells along a side over which an encoder averages its maps besides; 0 for none.", low=0, high=64
    )
    lessons: int = 2000
    picture_batch: int = _option(64, "Pictures per lesson, and per update of d3rlpy's algorithms.", low=1, high=65536)
    eyes: str = _option("", "Hash of the model whose encoder is taken instead of lessons; `lift train --eyes` sets it.")
    jitter: float = 0.0
    shift: int = 0
    composed: float = 0.0
    pixel_noise: float = _option(0.02, "Deviation of noise on pixels; from black to white is 2.", low=0, high=1)
    encoder_learning_rate: float = _option(3e-3, "Learning rate of the encoder of pictures.", above=0)
    picture_memory: int = _option(
        2**31, "Bytes of pictures kept in memory; more are read from a file.", low=0, high=_LARGEST
    )
    extra: Mapping[str, Any] = field(default_factory=dict)  # options of a d3rlpy algorithm other than CQL

    def __post_init__(self) -> None:
        for name, key in OPTION_KEYS.items():
            object.__setattr__(self, name, check_value(name, getattr(self, name), key))
        for name in WIDTHS:
            object.__setattr__(self, name, _widths(name, getattr(self, name)))
        size = 4 * (1 + self.critics) * sum(before * after for before, after in pairwise(self.hidden))
        if size > LARGEST_MODEL:
            raise UserError(
                f"hidden is {'x'.join(map(str, self.hidden))}: an actor and {self.critics} critics of these widths "
                f"take {size / 1e6:.0f} MB; allowed: {LARGEST_MODEL / 1e6:.0f} MB, choose narrower layers"
            )
        if self.extra and self.algorithm == "CQL":
            raise UserError(
                f"CQL has no option {next(iter(self.extra))!r}; known are {', '.join(sorted({*OPTION_KEYS, *WIDTHS}))}"
            )

    @property
    def aims_far(self) -> bool:
        """Whether actions of shortcuts beyond the ball are imitated."""
        return self.anchor_to in ("far", "goal") and (self.anchor > 0 or self.algorithm == "clone")

    @property
    def aims_at_goals(self) -> bool:
        """Whether ways lead on to recorded goals from where episodes ended."""
        return self.anchor_to in ("goal", "drawn_goal")

    def total_updates(self, *, pictures: bool) -> int:
        """Return how many updates make a whole training, of runs with pictures that are learned from or without."""
        return self.updates + (self.lessons if pictures and self.algorithm in OURS else 0)

    def with_eyes(self, model_hash: str) -> TrainingOptions:
        """Return these options for a training that takes the encoder of a model, which spares the lessons."""
        return dataclasses.replace(self, lessons=0, eyes=model_hash)

    def replaced(self, changes: Mapping[str, Any]) -> TrainingOptions:
        """Return these options with changes; names that belong to no field go to `extra`."""
        own = {name: value for name, value in changes.items() if name in OPTION_KEYS or name in WIDTHS}
        extra = {name: value for name, value in changes.items() if name not in own}
        return dataclasses.replace(self, **own, extra={**self.extra, **extra})

    def as_dict(self) -> dict[str, Any]:
        """Return the options as JSON values; `TrainingOptions().replaced` of it gives the same options."""
        data = dataclasses.asdict(self)
        extra = data.pop("extra")
        return {**data, **{name: list(data[name]) for name in WIDTHS}, **extra}


# What each option but `hidden` may be; those that a scenario knows are its keys.
OPTION_KEYS: dict[str, Key] = {
    **{
        name: dataclasses.replace(key, optional=False, default=getattr(TrainingOptions, name))
        for name, key in TRAINING_KEYS.items()
    },
    **{entry.name: entry.metadata["key"] for entry in dataclasses.fields(TrainingOptions) if entry.metadata},
}

PRESETS: dict[str, dict[str, Any]] = {
    "fast": {},
    "paper": {
        "strategy": "weighted",
        "hidden": (256, 256),
        "batch_size": 500,
        "action_samples": 10,
        "draw": "transitions",
        "scale_observations": False,
        "anchor": 0.0,
        "schedule": "constant",
        "actor_average": 0.0,
    },
}


def preset(name: str = "fast", scenario: Scenario | None = None, **changes: Any) -> TrainingOptions:
    """Return a preset, adapted to what a scenario says of training, with changes on top."""
    if name not in PRESETS:
        raise UserError(f"there is no preset {name!r}; choose from {', '.join(PRESETS)}")
    options = TrainingOptions(**PRESETS[name])
    if scenario is not None:
        options = options.replaced({key: value for key, value in scenario.training.items() if value is not None})
    return options.replaced(changes)


def convert_option(name: str, text: str) -> Any:
    """Return the value of an option given as text on the command line, in the type of the option."""
    if name in WIDTHS:
        return _widths(name, text)
    key = OPTION_KEYS.get(name)
    value: Any = text
    if key is None or key.kind is not str:
        with contextlib.suppress(ValueError):  # then it is a word
            value = json.loads(text.lower() if text.lower() in ("true", "false") else text)
    return value if key is None else check_value(f"option {name}", value, key)


def width_keys() -> dict[str, Key]:
    """Return the keys of the options that are lists: they have a rule of their own."""
    return {
        name: Key(list, list(getattr(TrainingOptions, name)), entries=int, meaning=meaning)
        for name, meaning in WIDTHS.items()
    }


def _widths(name: str, value: Any) -> tuple[int, ...]:
    """Return the widths of layers, given as numbers or as text like 64x64."""
    try:
        parts = map(int, value.replace("x", ",").split(",") if value else ()) if isinstance(value, str) else value
        widths = tuple(_WIDTH.convert(part) for part in parts)
    except (TypeError, ValueError):
        widths = ()
    if not (widths or name in _MAY_BE_EMPTY) or len(widths) > _MOST_LAYERS:
        raise UserError(
            f"{name} is {brief(value)}; allowed: one width or up to {_MOST_LAYERS}, each {_WIDTH.allowed()}"
        )
    return widths
