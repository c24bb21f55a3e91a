"""Brings up a graph as supervised processes and sees it through: what `lift run` and `lift demo` share."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from lift_ros.bags.reader import RunReader
from lift_ros.collection.interruption import stop_on_signals
from lift_ros.collection.records import Outcome
from lift_ros.errors import UserError
from lift_ros.graph.live_view import UP, LiveView, RunStatus
from lift_ros.graph.meeting import Place
from lift_ros.graph.parameters import Value
from lift_ros.graph.restarts import RESTARTS
from lift_ros.graph.supervisor import ProcessSpec, Supervisor
from lift_ros.graph.table import HARDWARE, GraphOptions, NodeEntry, describe_graph, graph_nodes
from lift_ros.graph.transport import DOMAIN, RANGE, discovery_range

LAST_DOMAIN = 232  # above it the ports of a domain do not exist
MONITOR = "monitor"  # what it prints is for the live view, not for the log


@dataclass(frozen=True)
class GraphResult:
    """How a graph ended."""

    completed: bool  # False: it was interrupted
    outcomes: Mapping[Outcome, int]  # of the episodes that this graph recorded, read from the run itself
    recorded: int  # episodes that were in the run before
    wanted: int  # episodes that shall be in the run; 0 for no end

    @property
    def full(self) -> bool:
        """Whether nothing was left to do, so that nothing was started."""
        return 0 < self.wanted <= self.recorded


def own_domain() -> int:
    """Return the user's ROS domain, or one that follows from this process, so that two runs do not meet."""
    given = _given_domain()
    return 1 + os.getpid() % 100 if given is None else given


def meeting_settings(plant: str) -> dict[str, str]:
    """Return the environment in which the graph's nodes meet: with hardware the user's, whose plant node is there.

    A simulated graph needs nobody else, so it stays on this machine and where nothing is set in a domain of its own.
    """
    if plant == HARDWARE:
        return {DOMAIN: str(_given_domain() or 0)}
    return {DOMAIN: str(own_domain()), RANGE: "LOCALHOST"}


def _given_domain() -> int | None:
    given = os.environ.get(DOMAIN, "")
    if given and not (given.isdecimal() and int(given) <= LAST_DOMAIN):
        raise UserError(f"{DOMAIN} is {given!r}; allowed: a whole number from 0 to {LAST_DOMAIN}, or unset it for 0")
    return int(given) if given else None


def run_graph(options: GraphOptions, *, show_logs: bool = True, plain_interval_s: float = 5.0) -> GraphResult:
    """Run a graph until its last episode is recorded or Ctrl-C; raise `GraphFailed` when a node gives up."""
    rows = graph_nodes(options)
    before = _recorded(options.run)
    wanted = int(next(row.parameters["episodes"] for row in rows if row.executable == "arbiter"))
    recorded = max(before, default=-1) + 1
    if 0 < wanted <= recorded:
        return GraphResult(True, Counter(), recorded, wanted)
    settings = meeting_settings(options.plant)
    print(describe_graph(options), flush=True)
    if options.plant == HARDWARE:
        place = Place(namespace_of(options.namespace), int(settings[DOMAIN]), discovery_range())
        print(f"your plant node is expected in {place}", flush=True)
    starting = [row.executable for row in rows]
    view = LiveView(wanted or None, starting=starting, plain_interval_s=plain_interval_s)

    def on_line(name: str, line: str) -> None:
        if name == MONITOR and (status := RunStatus.from_json(line)) is not None:
            view.update(status)
        elif line.endswith(UP):
            view.node_up(name)

    def should_stop() -> bool:
        view.refresh()
        return interrupted() or view.reader_gone

    with closing(view), tempfile.TemporaryDirectory(prefix="lift-run-") as folder, stop_on_signals() as interrupted:
        specs = process_specs(rows, options.namespace, Path(folder), settings)
        log = view.log if show_logs else lambda _line: None
        with Supervisor(specs, on_line=on_line, log=log) as supervisor:
            supervisor.run(should_stop)
            completed = not interrupted()
    if view.reader_gone:
        raise BrokenPipeError
    return GraphResult(completed, _outcomes(options.run, before), recorded, wanted)


def _recorded(run: Path) -> set[int]:
    """Return the episodes of a run; a folder without files is a run to be."""
    return set(RunReader(run).episode_indices) if run.is_dir() and any(run.iterdir()) else set()


def _outcomes(run: Path, before: set[int]) -> Counter[Outcome]:
    added = sorted(_recorded(run) - before)
    if not added:
        return Counter()
    reader = RunReader(run)
    return Counter(reader.episode(index).outcome for index in added)


def process_specs(
    rows: Iterable[NodeEntry], namespace: str, folder: Path, settings: Mapping[str, str]
) -> list[ProcessSpec]:
    """Return what the supervisor starts: one process per row, its parameters in a file of `folder`."""
    environment = {
        **settings,
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


def namespace_of(name: str) -> str:
    """Return a namespace with its leading slash, however it was written."""
    return f"/{name.strip('/')}"


def node_command(executable: str, parameters: Mapping[str, Value], namespace: str, folder: Path) -> list[str]:
    """Return the command line of a node; JSON is YAML, so strings keep their type in the parameter file."""
    command = [sys.executable, "-m", "lift_ros.nodes", executable, "--ros-args"]
    command += ["-r", f"__ns:={namespace_of(namespace)}"]
    if parameters:
        path = folder / f"{executable}.yaml"
        path.write_text(json.dumps({"/**": {"ros__parameters": dict(parameters)}}))
        command += ["--params-file", str(path)]
    return command
