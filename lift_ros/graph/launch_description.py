"""Turns the graph's table into a launch description; imported by the launch files alone, as it needs `launch_ros`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from launch import LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction, SetEnvironmentVariable, Shutdown
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from lift_ros.graph.table import GraphOptions, graph_nodes

# Name: default, description. An empty value leaves the choice to the scenario.
ARGUMENTS: Mapping[str, tuple[str, str]] = {
    "scenario": ("po-blend-d2", "name of a scenario, or path of a YAML file"),
    "run": ("runs/latest", "folder of the run (a rosbag2 folder), created or continued"),
    "mode": ("collect", "collect, shadow or evaluate"),
    "episodes": ("", "episodes in the run; empty takes the scenario's, 0 goes on without end"),
    "p": ("", "probability of an augmented step; empty takes the scenario's"),
    "seed": ("0", "seed of the run"),
    "model": ("", "model file that the augmentor serves from the start"),
    "train_after": ("0", "train after this many episodes and go on with the model; 0 starts no trainer"),
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
    return [_node(row, given) for row in graph_nodes(graph_options(given))]


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
        train_after=int(given["train_after"]),
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
