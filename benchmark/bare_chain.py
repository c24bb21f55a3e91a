"""A bare ping chain of the loop's hops, plant → arbiter → policy → arbiter → plant, with empty callbacks.

`python -m benchmark.bare_chain ROLE STEPS SIZE [recorder]` is one of its processes; `benchmark.graph` runs them beside
the real graph. With `recorder` the chain has the graph's other hop as well: the arbiter sends a step to a recorder
and lets the plant move only when the receipt is there.
"""

from __future__ import annotations

import json
import sys
import time
from array import array
from collections.abc import Callable
from typing import Any

import rclpy
from rclpy.node import Node
from rclpy.task import Future

import lift_ros.msg as msg
from lift_ros.graph import qos
from lift_ros.graph.transport import prepare_transport
from lift_ros.nodes.executor import make_executor

READY_SECONDS = 120.0


def _message(kind: type, size: int) -> Any:
    message = kind()
    for name in ("values", "observation", "position", "goal", "action", "logging_proposal"):
        if hasattr(message, name):
            setattr(message, name, array("d", [0.5] * size))
    return message


class Chain:
    """One process of the chain."""

    def __init__(self, role: str, size: int) -> None:
        prepare_transport()
        rclpy.init()
        self._node = Node(f"bare_{role}", namespace="bare")
        self._size = size
        self.executor = make_executor(self._node.get_logger())
        self.executor.add_node(self._node)
        self.done: Future[None] = Future()

    def sender(self, kind: type, topic: str) -> Callable[[], None]:
        """Return what sends one and the same message."""
        publisher, message = self._node.create_publisher(kind, topic, qos.LOOP), _message(kind, self._size)
        return lambda: publisher.publish(message)

    def listen(self, kind: type, topic: str, react: Callable[[], None]) -> None:
        """Call `react` for every message, whatever it says."""
        self._node.create_subscription(kind, topic, lambda _: react(), qos.LOOP)

    def spin(self) -> None:
        """Serve until done, or killed."""
        while not self.done.done():
            self.executor.spin_until_future_complete(self.done, timeout_sec=0.1)


def arbiter(chain: Chain, recorder: bool) -> None:
    """Ask on every observation; command when the answer and, with a recorder, the receipt are there."""
    ask, command = chain.sender(msg.Query, qos.QUERY), chain.sender(msg.Command, qos.COMMAND)
    record = chain.sender(msg.Step, qos.STEP)
    missing = {"answer": 0, "receipt": 0}

    def observed() -> None:
        missing["answer"], missing["receipt"] = 1, int(recorder)
        ask()
        if recorder:
            record()

    def arrived(what: str) -> None:
        missing[what] = 0
        if not any(missing.values()):
            command()

    chain.listen(msg.Observation, qos.OBSERVATION, observed)
    chain.listen(msg.Proposal, qos.PROPOSAL, lambda: arrived("answer"))
    if recorder:
        chain.listen(msg.Receipt, qos.RECEIPT, lambda: arrived("receipt"))
    chain.spin()


def echo(chain: Chain, incoming: tuple[type, str], outgoing: tuple[type, str]) -> None:
    """Answer every message with another."""
    chain.listen(*incoming, chain.sender(*outgoing))
    chain.spin()


def plant(chain: Chain, steps: int) -> None:
    """Send the first observation, count commands, and print what each took."""
    latencies: list[float] = []
    sent = 0.0
    observe = chain.sender(msg.Observation, qos.OBSERVATION)

    def moved() -> None:
        nonlocal sent
        now = time.perf_counter()
        latencies.append(now - sent)
        sent = now
        if len(latencies) < steps:
            observe()
        else:
            chain.done.set_result(None)

    chain.listen(msg.Command, qos.COMMAND, moved)
    started = time.monotonic()
    while not latencies and time.monotonic() - started < READY_SECONDS:  # until the others are there
        sent = time.perf_counter()
        observe()
        chain.executor.spin_once(timeout_sec=1.0)
    latencies.clear()
    chain.spin()
    print(json.dumps(latencies), flush=True)


def serve(role: str, steps: int, size: int, recorder: bool) -> None:
    """Be one process of the chain."""
    chain = Chain(role, size)
    if role == "arbiter":
        arbiter(chain, recorder)
    elif role == "policy":
        echo(chain, (msg.Query, qos.QUERY), (msg.Proposal, qos.PROPOSAL))
    elif role == "recorder":
        echo(chain, (msg.Step, qos.STEP), (msg.Receipt, qos.RECEIPT))
    else:
        plant(chain, steps)


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), "recorder" in sys.argv[4:])
