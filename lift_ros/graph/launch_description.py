"""Turns the graph's table into a launch description; imported by the launch files alone, as it needs `launch_ros`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from launch import LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, LogInfo, OpaqueFunction, SetEnvironmentVariable, Shutdown
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from lift_ros.graph.roles import require_libraries

require_libraries(["recorder"])  # one sentence instead of what the imports below would say

from lift_ros.graph.enclaves import enclave_words  # noqa: E402
from lift_ros.graph.launch_arguments import ARGUMENTS, graph_options  # noqa: E402
from lift_ros.graph.table import describe_graph, graph_nodes  # noqa: E402


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


def _node(row: Any, given: Mapping[str, str]) -> Node:
    extra = [given["parameters"]] if given["parameters"] else []
    return Node(
        package="lift_ros",
        executable=row.executable,
        namespace=given["namespace"],
        parameters=[dict(row.parameters), *extra],
        ros_arguments=enclave_words(given["namespace"], row.executable),
        output="screen",
        respawn=not row.ends_graph,
        respawn_delay=1.0,
        on_exit=[Shutdown(reason="the run is complete")] if row.ends_graph else None,
    )
