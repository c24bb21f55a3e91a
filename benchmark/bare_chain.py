"""A bare ping chain of the loop's hops, plant → arbiter → policy → arbiter → plant, with empty callbacks.

`python -m benchmark.bare_chain ROLE …` is one of its processes; `benchmark.graph` runs them beside the real graph.
"""

from __future__ import annotations

import json
import sys
import time
from array import array
from typing import Any

ROLES = ("arbiter", "policy", "plant")


def _node(role: str) -> tuple[Any, Any]:
    import rclpy
    from rclpy.node import Node

    from lift_ros.nodes.executor import make_executor
    from lift_ros.nodes.transport import prepare_transport

    prepare_transport()
    rclpy.init()
    node = Node(f"bare_{role}", namespace="bare")
    executor = make_executor(node.get_logger())
    executor.add_node(node)
    return node, executor


def _message(kind: type, size: int) -> Any:
    message = kind()
    for name in ("values", "position", "goal", "action"):
        if hasattr(message, name):
            setattr(message, name, array("d", [0.5] * size))
    return message


def serve(role: str, steps: int, size: int) -> None:
    """Pass messages on until killed; the plant sends the first, counts and prints what it measured."""
    from rclpy.task import Future

    import lift_ros.msg as msg
    from lift_ros.nodes import qos

    node, executor = _node(role)
    done: Future[None] = Future()
    hops = {
        "arbiter": (
            (msg.Observation, qos.OBSERVATION, msg.Query, qos.QUERY),
            (msg.Proposal, qos.PROPOSAL, msg.Command, qos.COMMAND),
        ),
        "policy": ((msg.Query, qos.QUERY, msg.Proposal, qos.PROPOSAL),),
        "plant": ((msg.Command, qos.COMMAND, msg.Observation, qos.OBSERVATION),),
    }[role]
    latencies: list[float] = []
    sent = 0.0

    def pass_on(publisher: Any, message: Any) -> Any:
        def receive(_: Any) -> None:
            nonlocal sent
            if role == "plant":
                now = time.perf_counter()
                latencies.append(now - sent)
                sent = now
                if len(latencies) >= steps:
                    done.set_result(None)
                    return
            publisher.publish(message)

        return receive

    for incoming, source, outgoing, target in hops:
        publisher = node.create_publisher(outgoing, target, qos.LOOP)
        node.create_subscription(incoming, source, pass_on(publisher, _message(outgoing, size)), qos.LOOP)
    if role == "plant":
        started = time.monotonic()
        while not latencies and time.monotonic() - started < 60.0:  # until the others are there
            sent = time.perf_counter()
            publisher.publish(_message(msg.Observation, size))
            executor.spin_once(timeout_sec=1.0)
        latencies.clear()
    while not done.done():
        executor.spin_until_future_complete(done, timeout_sec=0.1)
    print(json.dumps(latencies), flush=True)


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
