"""What `lift doctor` runs in processes of their own: facts about this ROS, and a round trip over DDS.

`python -m lift_ros.nodes.doctor_probe facts | echo TOPIC | ping TOPIC`; facts and ping print one line of JSON. A broken
installation may end the process that looks at it, so nobody looks in the doctor's own.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import rclpy
from rclpy.node import Node
from rclpy.utilities import get_rmw_implementation_identifier

from lift_ros.collection.exchange import Proposal, Query
from lift_ros.collection.records import Mode, Source
from lift_ros.graph.transport import distribution, rclpy_version
from lift_ros.messages.records import decode_proposal, decode_query, encode_proposal, encode_query
from lift_ros.nodes.executor import make_executor, spin

ROUND_TRIPS = 100
WARM_UP = 10
SIZE = 5


def facts() -> dict[str, str]:
    """Return which ROS this is and where its build of our messages lies; raises where one of them is missing."""
    found = {"rclpy": rclpy_version(), "distribution": distribution(), "rmw": get_rmw_implementation_identifier()}
    try:
        import lift_ros.msg as msg

        msg.Step.__class__.__import_type_support__()
    except ImportError as error:
        return found | {"messages_error": str(error)}
    # <prefix>/lib/python3.x/site-packages/lift_ros/msg/__init__.py
    prefix = Path(str(msg.__file__)).parents[5]
    return found | {"definitions": str(prefix / "share" / "lift_ros" / "msg")}


def _spin(node: Node, should_stop: Callable[[], bool], limit: float) -> None:
    executor = make_executor(node.get_logger())
    executor.add_node(node)
    deadline = time.monotonic() + limit
    spin(executor, lambda: should_stop() or time.monotonic() > deadline)


def echo(topic: str, parent: int, limit: float) -> None:
    """Answer every query on `topic` with a proposal until the process that wanted it has gone."""
    from lift_ros.msg import Proposal as ProposalMessage
    from lift_ros.msg import Query as QueryMessage

    rclpy.init()
    node = Node("lift_doctor_echo")
    publisher = node.create_publisher(ProposalMessage, f"{topic}/proposal", 10)

    def answer(data: bytes) -> None:
        query = decode_query(data, SIZE)
        proposal = Proposal(query.episode, query.step, Source.LOGGING_POLICY, -query.values, time_ns=time.time_ns())
        publisher.publish(encode_proposal(proposal))

    node.create_subscription(QueryMessage, f"{topic}/query", answer, 10, raw=True)
    _spin(node, lambda: os.getppid() != parent, limit)


class Ping(Node):
    """Asks, waits for the answer, asks again; a question without an answer is put again, since DDS needs a moment."""

    def __init__(self, topic: str) -> None:
        from lift_ros.msg import Proposal as ProposalMessage
        from lift_ros.msg import Query as QueryMessage

        super().__init__("lift_doctor_ping")
        self.seconds: list[float] = []
        self._values = np.linspace(-1.0, 1.0, SIZE)
        self._asked = 0.0
        self._publisher = self.create_publisher(QueryMessage, f"{topic}/query", 10)
        self.create_subscription(ProposalMessage, f"{topic}/proposal", self._receive, 10, raw=True)
        self.create_timer(0.2, self._ask_again)

    def is_done(self) -> bool:
        """Whether there are enough round trips."""
        return len(self.seconds) >= ROUND_TRIPS + WARM_UP

    def _ask(self) -> None:
        query = Query(0, len(self.seconds), 0, self._values, False, Mode.COLLECT)
        self._asked = time.perf_counter()
        self._publisher.publish(encode_query(query, time.time_ns()))

    def _ask_again(self) -> None:
        if not self.is_done() and time.perf_counter() - self._asked > 0.2:
            self._ask()

    def _receive(self, data: bytes) -> None:
        proposal = decode_proposal(data)
        if proposal.step != len(self.seconds) or not np.array_equal(proposal.action, -self._values):
            return
        self.seconds.append(time.perf_counter() - self._asked)
        if not self.is_done():
            self._ask()


def ping(topic: str, limit: float) -> dict[str, float]:
    """Measure round trips over `topic` and return their latency in milliseconds."""
    rclpy.init()
    node = Ping(topic)
    _spin(node, node.is_done, limit)
    if not node.is_done():
        raise TimeoutError(f"{len(node.seconds)} of {ROUND_TRIPS + WARM_UP} round trips in {limit:.0f} s")
    milliseconds = 1000.0 * np.array(node.seconds[WARM_UP:])
    return {
        "round_trips": ROUND_TRIPS,
        "p50_ms": round(float(np.median(milliseconds)), 3),
        "p99_ms": round(float(np.quantile(milliseconds, 0.99)), 3),
    }


def main() -> int:
    """Do what the doctor asks for."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("task", choices=("facts", "echo", "ping"))
    parser.add_argument("topic", nargs="?", default="lift_doctor")
    parser.add_argument("--parent", type=int, default=os.getppid(), help="end when this process has gone")
    parser.add_argument("--limit", type=float, default=30.0, help="seconds")
    arguments = parser.parse_args()
    if arguments.task == "echo":
        echo(arguments.topic, arguments.parent, arguments.limit)
        return 0
    try:
        result = facts() if arguments.task == "facts" else ping(arguments.topic, arguments.limit)
    except TimeoutError as error:
        print(error, file=sys.stderr)
        return 1
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
