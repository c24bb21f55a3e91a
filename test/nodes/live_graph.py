"""Real nodes as real processes in a domain of their own, watched from outside, always cleaned up."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from isolation import isolated, udp_alone
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node

import lift_ros.msg as msg
from lift_ros.bags import RunReader
from lift_ros.collection.records import Episode, Step, same
from lift_ros.errors import UserError
from lift_ros.graph import qos
from lift_ros.graph.run import node_command
from lift_ros.policies.model_file import Tensors, write_tensor_file

ROOT = Path(__file__).parents[2]
ENOUGH = 100.0  # seconds; a test that waits longer has failed, however loaded the machine is

TOPICS = {
    qos.OBSERVATION: msg.Observation,
    qos.QUERY: msg.Query,
    qos.PROPOSAL: msg.Proposal,
    qos.COMMAND: msg.Command,
    qos.STEP: msg.Step,
    qos.EPISODE: msg.Episode,
    qos.RECEIPT: msg.Receipt,
}


class Process:
    """One node as a process; its output goes into a file."""

    def __init__(self, command: list[str], log: Path, environment: dict[str, str]) -> None:
        self.log = log
        with log.open("ab") as stream:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream, cwd=ROOT, env=environment
            )

    def kill(self) -> None:
        """End it as a crash would."""
        self.process.kill()
        self.process.wait(ENOUGH)

    def end(self, number: signal.Signals = signal.SIGINT) -> int:
        """Ask it to end and return its exit status."""
        self.process.send_signal(number)
        return self.process.wait(ENOUGH)


class LiveGraph:
    """Starts nodes and sees what they publish."""

    def __init__(self, folder: Path, domain: int, namespace: str = "lift") -> None:
        self.folder = folder
        self.namespace = namespace
        self.processes: dict[str, Process] = {}
        self.seen: dict[str, list[Any]] = {topic: [] for topic in TOPICS}
        self.status: dict[str, dict[str, str]] = defaultdict(dict)
        self._environment = dict(os.environ)
        self._context = rclpy.Context()
        with udp_alone():
            rclpy.init(context=self._context, domain_id=domain)
            self.node = Node("observer", context=self._context, namespace=namespace)
        self._publishers: dict[str, Any] = {}
        for topic, kind in TOPICS.items():
            self.node.create_subscription(kind, topic, self.seen[topic].append, qos.LOOP)
        self.node.create_subscription(DiagnosticArray, qos.DIAGNOSTICS, self._on_diagnostics, 1000)
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self.node)
        self._thread = threading.Thread(target=self._spin, daemon=True)
        self._thread.start()

    def _spin(self) -> None:
        with contextlib.suppress(ExternalShutdownException):
            self._executor.spin()

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        for status in message.status:
            if status.hardware_id == f"/{self.namespace}":
                name = status.name.rsplit("/", 1)[-1]
                self.status[name] = {item.key: item.value for item in status.values}

    def start(self, executable: str, **parameters: Any) -> Process:
        """Start a node, with fast diagnostics so that tests need not wait for them."""
        folder = self.folder / f"{executable}-{len(list(self.folder.iterdir()))}"
        folder.mkdir()
        command = node_command(executable, {"diagnostics_period": 0.1, **parameters}, self.namespace, folder)
        self.status.pop(executable, None)
        self.processes[executable] = Process(command, self.folder / f"{executable}.log", self._environment)
        return self.processes[executable]

    def start_idle(self, executables: Iterable[str]) -> None:
        """Start nodes with nothing to do."""
        run = str(self.folder / "run")
        given: dict[str, dict[str, object]] = {
            "fetch_simulator": {"scenario": "fetch-reach"},
            "rig": {"scenario": "micromanager-beads"},
            "positioning_simulator": {"scenario": "light-tunnel"},  # which speaks on all topics that such plants have
            "recorder": {"run": run},
            "trainer": {"run": run},
            "arbiter": {"autostart": False},
        }
        for executable in executables:
            self.start(executable, **given.get(executable, {}))

    def add(self, node: Node) -> None:
        """Have a node of this process called back with the observer."""
        self._executor.add_node(node)

    def state(self, executable: str) -> str:
        """Return a node's status, empty where it has not reported yet."""
        return self.status[executable].get("status", "")

    def number(self, executable: str, name: str) -> float:
        """Return a number that a node reports, 0 where it does not."""
        return float(self.status[executable].get(name, "0"))

    def wait(self, what: str, until: Callable[[], Any]) -> None:
        """Wait until something holds; fail with everybody's output where it never does."""
        deadline = time.monotonic() + ENOUGH
        while not until():
            if time.monotonic() > deadline:
                raise AssertionError(f"waited in vain for: {what}\n{self.describe()}")
            time.sleep(0.02)

    def wait_for_steps(self, number: int = 3) -> None:
        """Wait until further steps are made."""
        before = len(self.seen[qos.STEP])
        self.wait(f"{number} steps", lambda: len(self.seen[qos.STEP]) >= before + number)

    def wait_for_episodes(self, number: int = 1) -> None:
        """Wait until further episodes have ended."""
        before = len(self.seen[qos.EPISODE])
        self.wait(f"{number} episodes", lambda: len(self.seen[qos.EPISODE]) >= before + number)

    def call(self, kind: Any, service: str, request: Any = None) -> Any:
        """Call a service and return its response."""
        client = self.node.create_client(kind, service)
        try:
            assert client.wait_for_service(ENOUGH), f"no service {service}\n{self.describe()}"
            future = client.call_async(request or kind.Request())
            self.wait(f"answer of {service}", future.done)
            return future.result()
        finally:
            self.node.destroy_client(client)

    def publish(self, topic: str, *messages: Any) -> None:
        """Publish messages to all who listen; the publisher stays, for what is not acknowledged is sent again."""
        if topic not in self._publishers:
            self._publishers[topic] = self.node.create_publisher(type(messages[0]), topic, qos.LOOP)
        publisher = self._publishers[topic]
        others = self.node.count_subscribers(topic)
        self.wait(f"{others} subscriptions of {topic}", lambda: publisher.get_subscription_count() >= others)
        for message in messages:
            publisher.publish(message)

    def describe(self) -> str:
        """Return what everybody said."""
        lines = [f"{name}: {status}" for name, status in self.status.items()]
        lines += [f"{topic}: {len(messages)} messages" for topic, messages in self.seen.items()]
        for name, process in self.processes.items():
            lines.append(f"--- {name} (exit status {process.process.poll()})")
            lines.append(process.log.read_text(errors="replace")[-3000:])
        return "\n".join(lines)

    def close(self) -> None:
        """Kill what still runs."""
        for process in self.processes.values():
            if process.process.poll() is None:
                process.kill()
        self._executor.shutdown(timeout_sec=5.0)
        self._context.try_shutdown()
        self._thread.join(ENOUGH)


@contextlib.contextmanager
def live_graph(folder: Path) -> Iterator[LiveGraph]:
    """A graph for one test or for all tests of a file."""
    with isolated() as domain:
        graph = LiveGraph(folder, domain)
        try:
            yield graph
        finally:
            graph.close()


def recorded(path: Path) -> list[Episode]:
    """Return the episodes of a run, also while it is recorded."""
    for _ in range(100):
        try:
            reader = RunReader(path)
            return [reader.episode(index) for index in reader.episode_indices]
        except FileNotFoundError:  # a file was completed, and so renamed, between listing and reading
            continue
        except UserError:
            return []
    raise AssertionError(f"{path} changes too fast to be read")


def timeless(episode: Episode) -> Episode:
    """Return an episode without its times, the one thing that differs between graph and process."""
    steps: list[Step] = [replace(step, time_ns=0) for step in episode.steps]
    return replace(episode, steps=steps, start_time_ns=0, end_time_ns=0)


def assert_same(graph: list[Episode], process: list[Episode]) -> None:
    """Compare two lists of episodes bit for bit, all fields but times."""
    assert [episode.index for episode in graph] == [episode.index for episode in process]
    for ours, theirs in zip(graph, process, strict=True):
        assert same(timeless(ours), timeless(theirs)), f"episode {ours.index} differs"


def write_model(
    path: Path, observation_size: int, action_size: int, radius: float, pull: float = 3.0, region: Tensors | None = None
) -> str:
    """Write a model that pulls each axis back to zero, in the region that its data cover, and return its hash."""
    weight = np.zeros((action_size, observation_size), dtype=np.float32)
    weight[:, -action_size:] = -pull * np.eye(action_size, dtype=np.float32)
    tensors = {
        "actor.0.weight": weight,
        "actor.0.bias": np.zeros(action_size, dtype=np.float32),
        "observation.mean": np.zeros(observation_size, dtype=np.float32),
        "observation.deviation": np.ones(observation_size, dtype=np.float32),
        **(region or {}),
    }
    description = {
        "kind": "model",
        "version": 1,
        "algorithm": "pull",
        "observation_size": observation_size,
        "action_size": action_size,
        "action_radius": radius,
        "critics": 0,
    }
    return write_tensor_file(path, tensors, description)
