"""From rows of the graph's table to processes: commands and parameter files for `lift run`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from lift_ros.graph.parameters import Value
from lift_ros.graph.supervisor import ProcessSpec
from lift_ros.graph.table import NodeEntry

RESTARTS = 5
MONITOR = "monitor"  # what it prints is for the live view, not for the log


def process_specs(rows: Iterable[NodeEntry], namespace: str, folder: Path, domain: int) -> list[ProcessSpec]:
    """Return what the supervisor starts: one process per row, its parameters in a file of `folder`."""
    environment = {
        "ROS_DOMAIN_ID": str(domain),
        "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST",
        "RCUTILS_CONSOLE_OUTPUT_FORMAT": "{severity}: {message}",
        "RCUTILS_LOGGING_USE_STDOUT": "1",
    }
    return [
        ProcessSpec(
            row.executable,
            node_command(row.executable, row.parameters, namespace, folder),
            restarts=RESTARTS,
            ends_graph=row.ends_graph,
            quiet=row.executable == MONITOR,
            environment=environment,
        )
        for row in (*rows, NodeEntry(MONITOR, {}))
    ]


def node_command(executable: str, parameters: Mapping[str, Value], namespace: str, folder: Path) -> list[str]:
    """Return the command line of a node; JSON is YAML, so strings keep their type in the parameter file."""
    name_space = f"__ns:=/{namespace.strip('/')}"
    command = [sys.executable, "-m", "lift_ros.nodes", executable, "--ros-args", "-r", name_space]
    if parameters:
        path = folder / f"{executable}.yaml"
        path.write_text(json.dumps({"/**": {"ros__parameters": dict(parameters)}}))
        command += ["--params-file", str(path)]
    return command
