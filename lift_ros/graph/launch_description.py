"""Turns the graph's table into a launch description; imported by the launch files alone, as it needs `launch_ros`."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from launch import LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, LogInfo, OpaqueFunction, SetEnvironmentVariable, Shutdown
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from lift_ros.graph.table import GraphOptions, describe_graph, graph_nodes, topic_names


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


def graph_description(**defaults: str) -> LaunchDescription:
    """Return the description of a graph whose arguments have these defaults instead of the table's."""
    declared = [
        DeclareLaunchArgument(name, default_value=defaults.get(name, default), description=description)
        for name, (default, _, description) in ARGUMENTS.items()
    ]
    return LaunchDescription(
        [*declared, SetEnvironmentVariable("PYTHONUNBUFFERED", "1"), OpaqueFunction(function=_start)]
    )


def _start(context: LaunchContext) -> list[Any]:
    given = {name: LaunchConfiguration(name).perform(context) for name in ARGUMENTS}
    options = graph_options(given)
    rows = graph_nodes(options)
    return [LogInfo(msg=describe_graph(options)), *(_node(row, given) for row in rows)]


def graph_options(given: Mapping[str, str]) -> GraphOptions:
    """Return the graph that launch arguments, which are all text, describe; an empty one is left out."""
    texts = {name: text for name, text in given.items() if text and name != "parameters"}
    return GraphOptions(**{name: ARGUMENTS[name][1](text) for name, text in texts.items()})


def _node(row: Any, given: Mapping[str, str]) -> Node:
    extra = [given["parameters"]] if given["parameters"] else []
    return Node(
        package="lift_ros",
        executable=row.executable,
        namespace=given["namespace"],
        parameters=[dict(row.parameters), *extra],
        output="screen",
        respawn=not row.ends_graph,
        respawn_delay=1.0,
        on_exit=[Shutdown(reason="the run is complete")] if row.ends_graph else None,
    )
