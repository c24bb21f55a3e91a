"""Keeps ROS tests apart: a domain of its own for each, nothing beyond this machine, no process left behind."""

from __future__ import annotations

import contextlib
import os
import signal
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

from lift_ros.graph.domains import reserved_domain
from lift_ros.graph.transport import transport_settings
from lift_ros.processes import environment_with

MARK = "LIFT_ROS_TEST"


def _marked_processes(mark: str) -> list[int]:
    wanted = f"{MARK}={mark}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                if wanted in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
    return found


def end_processes(mark: str) -> list[int]:
    """Kill whatever was started with this mark in its environment, and wait until it is gone."""
    killed = []
    deadline = time.monotonic() + 30.0
    while (alive := _marked_processes(mark)) and time.monotonic() < deadline:
        for process in alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(process, os.WNOHANG)
        killed.extend(alive)
        time.sleep(0.02)
    return sorted(set(killed))


@contextlib.contextmanager
def isolated() -> Iterator[int]:
    """Run what is inside in a domain of its own on loopback alone; processes it leaves behind are killed."""
    mark = uuid.uuid4().hex
    with reserved_domain() as domain:
        settings = {"ROS_DOMAIN_ID": str(domain), "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST", MARK: mark}
        before = {name: os.environ.get(name) for name in settings}
        os.environ.update(settings)
        try:
            yield domain
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value
            end_processes(mark)


def udp_alone() -> contextlib.AbstractContextManager[None]:
    """Make ROS nodes that are first created inside speak UDP alone; afterwards the environment is as before."""
    return environment_with(transport_settings())
