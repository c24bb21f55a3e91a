"""What `lift doctor` runs in a process of its own: facts about this ROS, round trips over DDS, whether it has security.

`python -m lift_ros.nodes.doctor_probe facts | round_trips | security` prints one line of JSON. A broken installation
may end the process that looks at it, so nobody looks in the doctor's own.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import rclpy
from rclpy.utilities import get_rmw_implementation_identifier

from lift_ros.collection.exchange import Query
from lift_ros.collection.records import Mode
from lift_ros.distribution import distribution, rclpy_version
from lift_ros.messages.records import encode_query
from lift_ros.nodes.executor import make_executor, spin

ROUND_TRIPS = 100
WARM_UP = 10
LIMIT = 30.0  # seconds for all of them
SECURITY_FILES = (
    "identity_ca.cert.pem",
    "cert.pem",
    "key.pem",
    "permissions_ca.cert.pem",
    "governance.p7s",
    "permissions.p7s",
)
NO_SECURITY = ("doesn't have the security libraries", "does not have security support")  # Fast DDS, Cyclone DDS
PATIENCE = 0.2  # seconds; then a question is put again, since DDS needs a moment to find the other process


def facts() -> dict[str, str]:
    """Return which ROS this is and where its build of our messages lies, or why they cannot be loaded."""
    found = {"rclpy": rclpy_version(), "distribution": distribution(), "rmw": get_rmw_implementation_identifier()}
    try:
        import lift_ros.msg as msg

        msg.Step.__class__.__import_type_support__()
    except ImportError as error:
        return found | {"messages_error": str(error)}
    # <prefix>/lib/python3.x/site-packages/lift_ros/msg/__init__.py
    prefix = Path(str(msg.__file__)).parents[5]
    return found | {"definitions": str(prefix / "share" / "lift_ros" / "msg")}


def security() -> bool:
    """Return whether this middleware has DDS security, which shows only when a node asks for it: with keys of paper."""
    with tempfile.TemporaryDirectory() as keystore:
        enclave = Path(keystore, "enclaves", "probe")
        enclave.mkdir(parents=True)
        for name in SECURITY_FILES:
            (enclave / name).write_text("not a key\n")
        os.environ.update(ROS_SECURITY_ENABLE="true", ROS_SECURITY_STRATEGY="Enforce", ROS_SECURITY_KEYSTORE=keystore)
        rclpy.init(args=["--ros-args", "--enclave", "/probe"])
        try:
            rclpy.create_node("lift_doctor_security").destroy_node()
        except Exception as error:  # of the binding, which has no name to catch
            return not any(refusal in str(error) for refusal in NO_SECURITY)
        finally:
            rclpy.try_shutdown()
    return False  # keys of paper were taken: nobody looked at them


def echo(topic: str) -> None:
    """Send every question on `topic` back as it is."""
    from lift_ros.msg import Query as QueryMessage

    rclpy.init()
    node = rclpy.create_node("lift_doctor_echo")
    publisher = node.create_publisher(QueryMessage, f"{topic}/answer", 10)
    node.create_subscription(QueryMessage, f"{topic}/query", publisher.publish, 10, raw=True)
    executor = make_executor(node.get_logger())
    executor.add_node(node)
    deadline = time.monotonic() + LIMIT
    spin(executor, lambda: time.monotonic() > deadline)


def round_trips() -> dict[str, float]:
    """Ask another process, wait for the answer, ask again, and return the latency in milliseconds."""
    from lift_ros.msg import Query as QueryMessage

    topic = f"/lift_doctor_{os.getpid()}"
    other = multiprocessing.get_context("spawn").Process(target=echo, args=(topic,), daemon=True)
    other.start()
    rclpy.init()
    node = rclpy.create_node("lift_doctor_ping")
    publisher = node.create_publisher(QueryMessage, f"{topic}/query", 10)
    answers: set[bytes] = set()
    # A lambda, since rclpy asks for the signature, which a built-in method does not tell.
    node.create_subscription(QueryMessage, f"{topic}/answer", lambda data: answers.add(data), 10, raw=True)
    executor = make_executor(node.get_logger())
    executor.add_node(node)
    deadline = time.monotonic() + LIMIT
    milliseconds: list[float] = []
    try:
        while len(milliseconds) < WARM_UP + ROUND_TRIPS:
            values = np.linspace(-1.0, 1.0, 5)
            question = bytes(encode_query(Query(0, len(milliseconds), 0, values, False, Mode.COLLECT), time.time_ns()))
            asked = time.perf_counter()
            publisher.publish(question)
            spin(executor, lambda: question in answers or time.perf_counter() > asked + PATIENCE)  # noqa: B023
            if question in answers:
                milliseconds.append(1000.0 * (time.perf_counter() - asked))
            elif time.monotonic() > deadline:
                raise TimeoutError(f"{len(milliseconds)} of {WARM_UP + ROUND_TRIPS} round trips in {LIMIT:.0f} s")
    finally:
        other.kill()
    p50, p99 = np.quantile(milliseconds[WARM_UP:], (0.5, 0.99)).tolist()
    return {"p50_ms": p50, "p99_ms": p99}


if __name__ == "__main__":
    print(json.dumps({"facts": facts, "round_trips": round_trips, "security": security}[sys.argv[1]]()))
