"""Brings up a graph as supervised processes and sees it through: what `lift run` and `lift demo` share."""

from __future__ import annotations

import json
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from lift_ros.bags.reader import RunReader
from lift_ros.collection.interruption import stop_on_signals
from lift_ros.collection.records import Outcome
from lift_ros.errors import UserError
from lift_ros.graph.domains import check_room, given_domain, reserved_domain
from lift_ros.graph.enclaves import enclave_words, is_secured
from lift_ros.graph.isolation import private_network
from lift_ros.graph.live_view import UP, LiveView, RunStatus
from lift_ros.graph.meeting import Place
from lift_ros.graph.page_address import TOKEN_VARIABLE, Address, choose_token
from lift_ros.graph.parameters import Value
from lift_ros.graph.restarts import RESTARTS
from lift_ros.graph.supervisor import ProcessSpec, Supervisor
from lift_ros.graph.table import (
    HARDWARE,
    PAGE,
    SIMULATOR,
    GraphOptions,
    NodeEntry,
    describe_graph,
    graph_nodes,
    moves_hardware,
)
from lift_ros.graph.transport import DOMAIN, LOCALHOST, RANGE, discovery_range
from lift_ros.processes import module_command
from lift_ros.scenario import load_scenario

MONITOR = "monitor"  # what it prints is for the live view, not for the log


@dataclass(frozen=True)
class GraphResult:
    """How a graph ended."""

    completed: bool  # False: it was interrupted
    outcomes: Mapping[Outcome, int]  # of the episodes that this graph recorded, read from the run itself
    recorded: int  # episodes that were in the run before
    wanted: int  # episodes that shall be in the run; 0 for no end

    @property
    def short(self) -> int:
        """How many episodes are missing although nobody ended the run."""
        return max(0, self.wanted - self.recorded - sum(self.outcomes.values())) if self.completed else 0

    @property
    def full(self) -> bool:
        """Whether nothing was left to do, so that nothing was started."""
        return 0 < self.wanted <= self.recorded


@contextmanager
def meeting_settings(plant: str) -> Iterator[dict[str, str]]:
    """Yield the environment in which the graph's nodes meet: with hardware the user's, whose plant node is there.

    A simulated graph needs nobody else, so it stays on this machine, and where nothing is set in a domain of its own,
    which is reserved until the block ends.
    """
    given = given_domain()
    if given is None and is_secured():
        given = 0  # permissions name the domain that they are for, and this is what `ros2 security` writes unless told
    if plant == HARDWARE:
        yield {DOMAIN: str(given or 0)}
    elif given is not None:
        yield {DOMAIN: str(given), RANGE: LOCALHOST}
    else:
        with reserved_domain() as domain:
            yield {DOMAIN: str(domain), RANGE: LOCALHOST}


def run_graph(
    options: GraphOptions,
    *,
    isolated: bool = False,
    apart: bool = False,
    show_logs: bool = True,
    plain_interval_s: float = 5.0,
) -> GraphResult:
    """Run a graph until its last episode is recorded or Ctrl-C; raise `GraphFailed` when a node gives up.

    With `apart` also the graph of a rig meets in a domain of its own, where only this graph's nodes drive it.
    """
    if isolated and options.plant == HARDWARE:
        raise UserError("--isolated keeps everybody out, also your plant node; it is for simulated graphs")
    if isolated and options.page:
        raise UserError("--isolated keeps everybody out, also your browser; leave one of --isolated and --page out")
    rows = graph_nodes(options)
    before = _recorded(options.run)
    wanted = int(next(row.parameters["episodes"] for row in rows if row.executable == "arbiter"))
    recorded = max(before, default=-1) + 1
    if 0 < wanted <= recorded:
        return GraphResult(True, Counter(), recorded, wanted)
    page = _prepare_page(options) if options.page else {}
    print(describe_graph(options), flush=True)
    with ExitStack() as held:
        settings, enter = _meeting(options, isolated, apart, len(rows) + 1, held)
        view = LiveView(wanted or None, starting=[row.executable for row in rows], plain_interval_s=plain_interval_s)
        held.enter_context(closing(view))
        folder = Path(held.enter_context(tempfile.TemporaryDirectory(prefix="lift-run-")))
        interrupted = held.enter_context(stop_on_signals())

        def on_line(name: str, line: str) -> None:
            if name == MONITOR and (status := RunStatus.from_json(line)) is not None:
                view.update(status)
            elif line.endswith(UP):
                view.node_up(name)

        def should_stop() -> bool:
            view.refresh()
            return interrupted() or view.reader_gone

        specs = process_specs(rows, options.namespace, folder, settings, page)
        log = view.log if show_logs else lambda _line: None
        with Supervisor(specs, on_line=on_line, log=log, enter=enter) as supervisor:
            supervisor.run(should_stop)
            completed = not interrupted()
    if view.reader_gone:
        raise BrokenPipeError
    return GraphResult(completed, _outcomes(options.run, before), recorded, wanted)


def _prepare_page(options: GraphOptions) -> dict[str, str]:
    """Refuse an address that cannot be had, say where the page will be, and return what its process must know."""
    address = Address.parse(options.page_address)
    address.bind().close()
    token = choose_token(address, os.environ.get(TOKEN_VARIABLE, ""))
    if address.port:  # else nobody knows before it is there, and its log says
        print(f"the page: {address.url(token)}", flush=True)
    return {TOKEN_VARIABLE: token}


def _meeting(
    options: GraphOptions, isolated: bool, apart: bool, nodes: int, held: ExitStack
) -> tuple[dict[str, str], Callable[[], None]]:
    """Return the environment in which the nodes meet and what each does first; say what a user must know of it."""
    if isolated:
        network = held.enter_context(private_network())
        print(network, flush=True)
        return {DOMAIN: "0", RANGE: LOCALHOST}, network.join
    open_to_others = moves_hardware(options, load_scenario(options.scenario)) and not apart
    settings = held.enter_context(meeting_settings(HARDWARE if open_to_others else SIMULATOR))
    reach = settings.get(RANGE) or discovery_range()
    check_room(int(settings[DOMAIN]), nodes, loopback=reach == LOCALHOST)
    if options.plant == HARDWARE:
        place = Place(namespace_of(options.namespace), int(settings[DOMAIN]), reach)
        print(f"your plant node is expected in {place}", flush=True)
    return settings, lambda: None


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
    rows: Iterable[NodeEntry],
    namespace: str,
    folder: Path,
    settings: Mapping[str, str],
    page: Mapping[str, str] | None = None,
) -> list[ProcessSpec]:
    """Return what the supervisor starts: one process per row, its parameters in a file of `folder`.

    `settings` are in the environment of all, `page` in that of the operator's page.
    """
    rows = list(rows)
    monitor = NodeEntry(MONITOR, {"graph": next((row.parameters.get("graph", "") for row in rows), "")})
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
            vital=row.vital,
            quiet=row.executable == MONITOR,
            environment={**environment, **(page or {})} if row.executable == PAGE else environment,
        )
        for row in (*rows, monitor)
    ]


def namespace_of(name: str) -> str:
    """Return a namespace with its leading slash, however it was written."""
    return f"/{name.strip('/')}"


def node_command(executable: str, parameters: Mapping[str, Value], namespace: str, folder: Path) -> list[str]:
    """Return the command line of a node; JSON is YAML, so strings keep their type in the parameter file."""
    command = [*module_command("lift_ros.nodes"), executable, "--ros-args"]
    command += ["-r", f"__ns:={namespace_of(namespace)}", *enclave_words(namespace, executable)]
    if parameters:
        path = folder / f"{executable}.yaml"
        path.write_text(json.dumps({"/**": {"ros__parameters": dict(parameters)}}))
        command += ["--params-file", str(path)]
    return command
