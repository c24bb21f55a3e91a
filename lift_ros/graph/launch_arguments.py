"""The arguments of the launch files and the graph that they describe; needs neither ROS nor `launch`."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lift_ros.collection.plan import MODES, OFF, ON
from lift_ros.configuration import Key
from lift_ros.errors import UserError
from lift_ros.graph.page_address import DEFAULT_ADDRESS, TOKEN_VARIABLE
from lift_ros.graph.parameter_file import read_parameter_file
from lift_ros.graph.parameters import Value
from lift_ros.graph.table import HARDWARE, SIMULATOR, GraphOptions, NodeEntry, graph_nodes, topic_names
from lift_ros.policies.augmentations import AUGMENTATION_NAMES

LOG_LEVELS = ("debug", "info", "warn", "error", "fatal")
_TRUTHS = {"true": True, "false": False}
_TEXT = Key(str)
_COUNT = Key(int, low=0, high=2**31 - 1)
_OPTION = re.compile(r"(?:lift run )?--([a-z][a-z-]*)(?: ([A-Z]+(?: …)?|simulator|hardware))?")


def _paths(text: str) -> list[Path]:
    return [Path(path) for path in text.split(os.pathsep) if path]


@dataclass(frozen=True)
class Argument:
    """One launch argument: all of them are text, which is checked as `key` says and then read."""

    default: str  # an empty one leaves the choice to the scenario
    description: str
    key: Key = _TEXT
    read: Callable[[Any], Any] = lambda value: value

    def value(self, name: str, text: str) -> Any:
        """Return what the text means; refuse what is not allowed in the words of a launch file."""
        try:
            return self.read(self.key.convert(_typed(text, self.key.kind)))
        except (KeyError, ValueError, OverflowError):
            raise UserError(f"{name}:={text} is refused; allowed: {self.key.allowed()}{_hint(name, text)}") from None


def _typed(text: str, kind: type) -> Any:
    return _TRUTHS[text.lower()] if kind is bool else kind(text)


def _hint(name: str, text: str) -> str:
    """Return what was probably meant by a probability in percent."""
    percent = name == "p" and re.fullmatch(r"\d{1,2}(\.\d+)?|100", text)
    return f"; {text} % is p:={float(text) / 100:g}" if percent and float(text) > 1 else ""


ARGUMENTS: Mapping[str, Argument] = {
    "scenario": Argument("po-blend-d2", "name of a scenario, or path of a YAML file"),
    "run": Argument("runs/latest", "folder of the run (a rosbag2 folder), created or continued", read=Path),
    "mode": Argument("collect", "collect, shadow, evaluate or assist", Key(str, choices=tuple(MODES))),
    "episodes": Argument("", "episodes in the run; empty takes the scenario's, 0 goes on without end", _COUNT),
    "p": Argument("", "probability of an augmented step; empty takes the scenario's", Key(float, low=0.0, high=1.0)),
    "seed": Argument("0", "seed of the run", Key(int, low=0, high=2**63 - 1)),
    "model": Argument("", "model file that the augmentor serves from the start", read=Path),
    "augmentation": Argument(
        "",
        "learned, gaussian_noise, random_scaling, uniform or uncertainty; empty: the scenario's",
        Key(str, choices=AUGMENTATION_NAMES),
    ),
    "data": Argument("", "runs in which the uncertainty model has seen its actions, separated by ':'", read=_paths),
    "train_after": Argument(
        "", "train after so many episodes and go on with the model; empty: the scenario's, 0 never", _COUNT
    ),
    "guard": Argument(
        "",
        "on or off: lower p and budget where augmented episodes are worse; empty: the scenario's",
        Key(str, choices=(ON, OFF)),
    ),
    "topics": Argument("", "further topics to record along, separated by commas", read=topic_names),
    "plant": Argument(
        SIMULATOR, "simulator, or hardware when your own plant node is running", Key(str, choices=(SIMULATOR, HARDWARE))
    ),
    "namespace": Argument("lift", "namespace of the graph"),
    "page": Argument("false", "true serves the operator's page", Key(bool)),
    "page_address": Argument(
        DEFAULT_ADDRESS,
        f"HOST:PORT of the page; beyond this machine it asks for a token ({TOKEN_VARIABLE} or new)",
    ),
    "autostart": Argument("true", "true, or false to wait for a call of the service start", Key(bool)),
    "log_level": Argument("info", f"of all nodes: {', '.join(LOG_LEVELS)}", Key(str, choices=LOG_LEVELS)),
    "parameters": Argument("", "parameter file of your rig, applied on top (ROS 2 YAML)", read=Path),
}
_NOT_OF_THE_GRAPH = ("autostart", "log_level", "parameters")  # they say how nodes are started


def graph_options(given: Mapping[str, str]) -> GraphOptions:
    """Return the graph that launch arguments describe, all checked; an empty one is left to the scenario."""
    values: dict[str, Any] = {}
    for name, text in given.items():
        argument = ARGUMENTS[name]
        if text:
            values[name] = argument.value(name, text)
        elif argument.default:
            raise UserError(f"{name}:= is empty; allowed: {argument.description}")
    options = GraphOptions(**{name: value for name, value in values.items() if name not in _NOT_OF_THE_GRAPH})
    parameters: dict[str, dict[str, Value]] = {}
    if "parameters" in values:
        parameters = read_parameter_file(values["parameters"], options.namespace)
    parameters["arbiter"] = {"autostart": values.get("autostart", True), **parameters.get("arbiter", {})}
    return GraphOptions(**{**vars(options), "parameters": parameters})


def graph_of(given: Mapping[str, str]) -> tuple[GraphOptions, list[NodeEntry]]:
    """Return the graph of these launch arguments and its nodes, or refuse them before anything starts or is created."""
    try:
        options = graph_options(given)
        return options, graph_nodes(options)
    except UserError as error:
        raise UserError(in_launch_words(str(error))) from None


def in_launch_words(sentence: str) -> str:
    """Return a sentence with launch arguments in place of the options of `lift run` that it names."""

    def argument(match: re.Match[str]) -> str:
        name = match[1].replace("-", "_").replace("out", "run")
        return f"{name}:={match[2] or '…'}" if name in ARGUMENTS else match[0]

    return _OPTION.sub(argument, sentence)
