"""The arguments of the launch files and the graph that they describe; needs neither ROS nor `launch`."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from lift_ros.graph.table import GraphOptions, topic_names


def _paths(text: str) -> list[Path]:
    return [Path(path) for path in text.split(os.pathsep) if path]


# Name: default, how its text is read, description. An empty value leaves the choice to the scenario.
ARGUMENTS: Mapping[str, tuple[str, Callable[[str], Any], str]] = {
    "scenario": ("po-blend-d2", str, "name of a scenario, or path of a YAML file"),
    "run": ("runs/latest", Path, "folder of the run (a rosbag2 folder), created or continued"),
    "mode": ("collect", str, "collect, shadow, evaluate or assist"),
    "episodes": ("", int, "episodes in the run; empty takes the scenario's, 0 goes on without end"),
    "p": ("", float, "probability of an augmented step; empty takes the scenario's"),
    "seed": ("0", int, "seed of the run"),
    "model": ("", Path, "model file that the augmentor serves from the start"),
    "augmentation": ("", str, "learned, gaussian_noise, random_scaling, uniform or uncertainty; empty: the scenario's"),
    "data": ("", _paths, "runs in which the uncertainty model has seen its actions, separated by ':'"),
    "train_after": ("", int, "train after so many episodes and go on with the model; empty: the scenario's, 0 never"),
    "guard": ("", str, "on or off: lower p and budget where augmented episodes are worse; empty: the scenario's"),
    "topics": ("", topic_names, "further topics to record along, separated by commas"),
    "plant": ("simulator", str, "simulator, or hardware when your own plant node is running"),
    "namespace": ("lift", str, "namespace of the graph"),
    "parameters": ("", str, "parameter file of your rig, applied on top (ROS 2 YAML)"),
}


def graph_options(given: Mapping[str, str]) -> GraphOptions:
    """Return the graph that launch arguments, which are all text, describe; an empty one is left out."""
    texts = {name: text for name, text in given.items() if text and name != "parameters"}
    return GraphOptions(**{name: ARGUMENTS[name][1](text) for name, text in texts.items()})
