"""Turns the graph's table into a launch description; imported by the launch files alone, as it needs `launch_ros`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from launch import LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, LogInfo, OpaqueFunction, SetEnvironmentVariable, Shutdown
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from lift_ros.graph.table import GraphOptions, describe_graph, graph_nodes

# Name: default, description. An empty value leaves the choice to the scenario.
ARGUMENTS: Mapping[str, tuple[str, str]] = {
    "scenario": ("po-blend-d2", "name of a scenario, or path of a YAML file"),
    "run": ("runs/latest", "folder of the run (a rosbag2 folder), created or continued"),
    "mode": ("collect", "collect, shadow or evaluate"),
    "episodes": ("", "episodes in the run; empty takes the scenario's, 0 goes on without end"),
    "p": ("", "probability of an augmented step; empty takes the scenario's"),
    "seed": ("0", "seed of the run"),
    "model": ("", "model file that the augmentor serves from the start"),
    "augmentation": ("", "learned, gaussian_noise, random_scaling, uniform or uncertainty; empty takes the scenario's"),
    "data": ("", "runs in which the uncertainty model has seen its actions, separated by ':'"),
    "train_after": ("", "train after so many episodes and go on with the model; empty takes the scenario's, 0 never"),
    "topics": ("", "further topics to record along, separated by commas"),
    "plant": ("simulator", "simulator, or hardware when your own plant node is running"),
    "namespace": ("lift", "namespace of the graph"),
    "parameters": ("", "parameter file of your rig, applied on top (ROS 2 YAML)"),
}


def graph_description(**defaults: str) -> LaunchDescription:
    """Return the description of a graph whose arguments have these defaults instead of the table's."""
    declared = [
        DeclareLaunchArgument(name, default_value=defaults.get(name, default), description=description)
        for name, (default, description) in ARGUMENTS.items()
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
    """Return the graph that launch arguments, which are all text, describe."""
    return GraphOptions(
        scenario=given["scenario"],
        run=Path(given["run"]),
        mode=given["mode"],
        episodes=int(given["episodes"]) if given["episodes"] else None,
        p=float(given["p"]) if given["p"] else None,
        seed=int(given["seed"]),
        model=Path(given["model"]) if given["model"] else None,
        augmentation=given["augmentation"] or None,
        data=[Path(path) for path in given["data"].split(os.pathsep) if path],
        train_after=int(given["train_after"]) if given["train_after"] else None,
        topics=given["topics"].replace(",", " ").split(),
        plant=given["plant"],
        namespace=given["namespace"].strip("/"),
    )


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
