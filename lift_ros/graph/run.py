"""Brings up a graph as supervised processes and sees it through: what `lift run` and `lift demo` share."""

from __future__ import annotations

import os
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from lift_ros.bags.reader import RunReader
from lift_ros.collection.interruption import stop_on_signals
from lift_ros.collection.records import Outcome
from lift_ros.graph.live_view import LiveView, RunStatus
from lift_ros.graph.processes import process_specs
from lift_ros.graph.supervisor import Supervisor
from lift_ros.graph.table import GraphOptions, describe_graph, graph_nodes


@dataclass(frozen=True)
class GraphResult:
    """How a graph ended."""

    completed: bool  # False: it was interrupted
    outcomes: Mapping[Outcome, int]  # of the episodes that this graph recorded, read from the run itself


def own_domain() -> int:
    """Return the user's ROS domain, or one that follows from this process, so that two runs do not meet."""
    given = os.environ.get("ROS_DOMAIN_ID")
    return int(given) if given else 1 + os.getpid() % 100


def run_graph(
    options: GraphOptions, *, show_logs: bool = True, stream: TextIO | None = None, plain_interval_s: float = 5.0
) -> GraphResult:
    """Run a graph until its last episode is recorded or Ctrl-C; raise `GraphFailed` when a node gives up."""
    output = stream or sys.stdout
    rows = graph_nodes(options)
    before = set(RunReader(options.run).episode_indices) if options.run.exists() else set()
    wanted = next(row.parameters["episodes"] for row in rows if row.executable == "arbiter")
    print(describe_graph(options), file=output, flush=True)
    view = LiveView(int(wanted) or None, stream=output, plain_interval_s=plain_interval_s)

    def on_line(name: str, line: str) -> None:
        status = RunStatus.from_json(line) if name == "monitor" else None
        if status is not None:
            view.update(status)

    with closing(view), tempfile.TemporaryDirectory(prefix="lift-run-") as folder, stop_on_signals() as interrupted:
        specs = process_specs(rows, options.namespace, Path(folder), own_domain())
        log = view.log if show_logs else lambda _line: None
        with Supervisor(specs, on_line=on_line, log=log, colour=output.isatty()) as supervisor:
            supervisor.run(interrupted)
            completed = not interrupted()
    return GraphResult(completed, _outcomes(options.run, before))


def _outcomes(run: Path, before: set[int]) -> Counter[Outcome]:
    if not run.exists():
        return Counter()
    reader = RunReader(run)
    return Counter(reader.episode(index).outcome for index in reader.episode_indices if index not in before)
