"""Turns the graph's table into a launch description; imported by the launch files alone, as it needs `launch_ros`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from launch import LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, LogInfo, OpaqueFunction, SetEnvironmentVariable, Shutdown, TimerAction
from launch.events.process import ProcessExited
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from lift_ros.graph.roles import require_libraries

require_libraries(["recorder"])  # one sentence instead of what the imports below would say

from lift_ros.graph.enclaves import enclave_words  # noqa: E402
from lift_ros.graph.launch_arguments import ARGUMENTS, graph_of  # noqa: E402
from lift_ros.graph.parameters import CLOCK, check_clock  # noqa: E402
from lift_ros.graph.restarts import GraphFailed, Restarts  # noqa: E402
from lift_ros.graph.table import NodeEntry, describe_graph  # noqa: E402

RESTART_DELAY_S = 1.0


def graph_description(**defaults: str) -> LaunchDescription:
    """Return the description of a graph whose arguments have these defaults instead of the table's."""
    declared = [
        DeclareLaunchArgument(
            name, default_value=defaults.get(name, argument.default), description=argument.description
        )
        for name, argument in ARGUMENTS.items()
    ]
    return LaunchDescription(
        [*declared, SetEnvironmentVariable("PYTHONUNBUFFERED", "1"), OpaqueFunction(function=_start)]
    )


def _start(context: LaunchContext) -> list[Any]:
    given = {name: LaunchConfiguration(name).perform(context) for name in ARGUMENTS}
    for entry in context.launch_configurations.get("global_params", ()):  # of SetParameter in a file around this one
        if entry[0] == CLOCK:
            check_clock(entry[1])
    options, rows = graph_of(given)
    restarts = Restarts()
    return [LogInfo(msg=describe_graph(options)), *(_node(row, given, restarts) for row in rows)]


def _node(row: NodeEntry, given: Mapping[str, str], restarts: Restarts) -> Node:
    """Return the action that starts a node, and starts another one when that has ended too early."""

    def on_exit(event: ProcessExited, context: LaunchContext) -> list[Any]:
        if context.is_shutdown:
            return []
        if row.ends_graph and event.returncode == 0:
            return [Shutdown(reason="the run is complete")]
        try:
            line = restarts.claim(row.executable, event.returncode)
        except GraphFailed as failure:
            if row.vital:
                raise  # which ends the launch
            return [LogInfo(msg=f"{failure}; the graph goes on without it")]
        again = TimerAction(period=RESTART_DELAY_S, actions=[_node(row, given, restarts)])
        return [LogInfo(msg=f"{row.executable} {line}"), again]

    # The file first: what it says to our nodes is in the table already, for all to know. Qualities of service are not.
    files = [given["parameters"]] if given["parameters"] else []
    return Node(
        package="lift_ros",
        executable=row.executable,
        namespace=given["namespace"],
        parameters=[*files, dict(row.parameters)],
        ros_arguments=[*enclave_words(given["namespace"], row.executable), "--log-level", given["log_level"]],
        output="screen",
        on_exit=on_exit,
    )
