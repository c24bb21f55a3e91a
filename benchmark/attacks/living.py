"""A whole graph of real processes that starts quickly, is watched from outside, and can be killed and lied to.

Processes are forked from one that has imported everything, so that a thousand restarts take minutes. Each is a node as
`lift run` starts it, with a ROS of its own.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from lift_ros.graph.domains import reserved_domain
from lift_ros.graph.run import node_command
from lift_ros.graph.table import GraphOptions, graph_nodes
from lift_ros.graph.transport import DOMAIN, LOCALHOST, RANGE

SCENARIO = "po-blend-d2"
AUGMENTATION = "gaussian_noise"
MOVE_SECONDS = 0.004  # of moves and thoughts: long enough to be killed in, or for a liar to be quicker
STALLED_SECONDS = 60.0
MODULES = ["arbiter", "logging_policy", "augmentor", "positioning_simulator", "recorder"]
PARAMETERS: dict[str, dict[str, Any]] = {
    "positioning_simulator": {"step_time": MOVE_SECONDS},
    "logging_policy": {"delay": MOVE_SECONDS},
    "augmentor": {"delay": MOVE_SECONDS},
    "arbiter": {
        "plant_deadline": 5.0,
        "logging_policy_deadline": 5.0,
        "augmentor_deadline": 0.5,
        "guard_enabled": False,
    },
}


def _live(executable: str, words: list[str], log: str, settings: dict[str, str]) -> None:
    """Be a node: what a forked process does."""
    os.environ.update(settings)
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for stream in (1, 2):
        os.dup2(descriptor, stream)
    sys.argv = [executable, *words]
    from lift_ros.nodes.starting import start

    raise SystemExit(start(executable))


class LivingGraph:
    """Nodes that are started again whenever they end, and what they say."""

    def __init__(self, folder: Path, domain: int, options: GraphOptions, environment: Mapping[str, str]) -> None:
        self.run = options.run
        self.folder = folder
        self.settings = {DOMAIN: str(domain), RANGE: LOCALHOST, **environment}
        self._rows = {row.executable: row for row in graph_nodes(options)}
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload([f"lift_ros.nodes.{name}_node" for name in self._rows])
        self.processes: dict[str, BaseProcess] = {}
        self.starts: Counter[str] = Counter()

    def start(self, executable: str) -> None:
        """Start a node, or start it again."""
        words = node_command(executable, self._rows[executable].parameters, "lift", self.folder)
        words = words[words.index("--ros-args") :]
        log = str(self.folder / f"{executable}.log")
        process = self._context.Process(target=_live, args=(executable, words, log, self.settings), daemon=True)
        process.start()
        self.processes[executable] = process
        self.starts[executable] += 1

    def start_all(self) -> None:
        """Start every node."""
        for executable in self._rows:
            self.start(executable)

    def restart_dead(self) -> list[str]:
        """Start again what has ended by itself, and return its name."""
        dead = [name for name, process in self.processes.items() if not process.is_alive()]
        for name in dead:
            self.start(name)
        return dead

    def signal(self, executable: str, number: signal.Signals) -> None:
        """Send a signal to a node."""
        os.kill(self.processes[executable].pid or 0, number)

    def kill(self, executable: str) -> None:
        """End a node as a power cut would, and start it again at once."""
        process = self.processes[executable]
        process.kill()
        process.join()
        self.start(executable)

    def tracebacks(self) -> list[str]:
        """Return the logs in which nodes told of errors nobody expected."""
        return [log.name for log in self.folder.glob("*.log") if "Traceback" in log.read_text(errors="replace")]

    def close(self) -> None:
        """End all nodes, the arbiter first, so that what is under way is recorded."""
        for name in self._rows:
            process = self.processes.get(name)
            if process is not None and process.is_alive():
                process.terminate()
                process.join(10.0)
                process.kill()


@contextlib.contextmanager
def living_graph(folder: Path, seed: int, augmentation: str = AUGMENTATION) -> Iterator[tuple[LivingGraph, Watcher]]:
    """Bring a graph with a simulator up."""
    acting: dict[str, Any] = {"p": 0.3, "augmentation": augmentation, "train_after": 0}
    options = GraphOptions(SCENARIO, folder / "run", seed=seed, episodes=0, parameters=PARAMETERS, **acting)
    with living(folder, options) as made:
        yield made


@contextlib.contextmanager
def living(
    folder: Path, options: GraphOptions, environment: Mapping[str, str] | None = None, first_step: bool = True
) -> Iterator[tuple[LivingGraph, Watcher]]:
    """Bring a graph up in a domain of its own, and somebody who watches it."""
    with reserved_domain() as domain:
        graph = LivingGraph(folder, domain, options, environment or {})
        os.environ.update(graph.settings)
        watcher = Watcher(domain)
        try:
            graph.start_all()
            if first_step:
                watcher.wait("the first step", lambda: watcher.steps > 0)
            yield graph, watcher
        finally:
            graph.close()
            watcher.close()


class Stalled(Exception):
    """The graph made no step for so long that it must be taken for stuck."""


class Watcher:
    """A node of no package: it listens to everything and notes how far the graph is."""

    def __init__(self, domain: int) -> None:
        import rclpy
        from diagnostic_msgs.msg import DiagnosticArray
        from rclpy.executors import SingleThreadedExecutor
        from rclpy.node import Node

        import lift_ros.msg as msg
        from lift_ros.graph import qos

        self.steps = 0
        self.heard: dict[str, Any] = {}  # the last message of each topic
        self.status: dict[str, str] = {}  # of each node that is not well
        self.states: dict[str, str] = {}  # of each node, as names of its status
        self.on_message: Callable[[str, Any], None] = lambda _topic, _message: None
        self._context = rclpy.Context()
        rclpy.init(context=self._context, domain_id=domain)
        self.node = Node("watcher", context=self._context, namespace="lift")
        self.kinds = {
            qos.COMMAND: msg.Command,
            qos.OBSERVATION: msg.Observation,
            qos.QUERY: msg.Query,
            qos.PROPOSAL: msg.Proposal,
            qos.STEP: msg.Step,
            qos.EPISODE: msg.Episode,
            qos.RECEIPT: msg.Receipt,
        }
        for topic, kind in self.kinds.items():
            self.node.create_subscription(kind, topic, partial(self._hear, topic), qos.LOOP)
        self.node.create_subscription(DiagnosticArray, qos.DIAGNOSTICS, self._on_diagnostics, 100)
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self.node)
        self._thread = threading.Thread(target=self._spin, daemon=True)
        self._thread.start()

    def _spin(self) -> None:
        with contextlib.suppress(Exception):  # the end of ROS is the end of this
            self._executor.spin()

    def _hear(self, topic: str, message: Any) -> None:
        self.heard[topic] = message
        self.steps += topic == "step"
        self.on_message(topic, message)

    def _on_diagnostics(self, message: Any) -> None:
        for status in message.status:
            name = status.name.rsplit("/", 1)[-1]
            self.states[name] = next((item.value for item in status.values if item.key == "status"), "")
            if status.level == b"\0":
                self.status.pop(name, None)
            else:
                self.status[name] = status.message

    def wait(self, what: str, until: Callable[[], bool]) -> float:
        """Wait for something and return how long it took; `Stalled` where it never comes."""
        began = time.monotonic()
        while not until():
            if time.monotonic() - began > STALLED_SECONDS:
                raise Stalled(f"{what} did not come; said: {self.status or 'nothing'}")
            time.sleep(0.005)
        return time.monotonic() - began

    def call(self, kind: Any, service: str, **request: Any) -> Any:
        """Call a service of the graph and return its answer; `Stalled` where none comes."""
        client = self.node.create_client(kind, service)
        try:
            self.wait(f"service {service}", client.service_is_ready)
            future = client.call_async(kind.Request(**request))
            self.wait(f"the answer of {service}", future.done)
            return future.result()
        finally:
            self.node.destroy_client(client)

    def close(self) -> None:
        """Leave the graph."""
        self._executor.shutdown(timeout_sec=5.0)
        self._context.try_shutdown()
        self._thread.join(10.0)
