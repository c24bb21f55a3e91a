"""Keeps ROS tests apart: a domain of its own for each, nothing beyond this machine, no process left behind."""

from __future__ import annotations

import contextlib
import fcntl
import os
import random
import signal
import socket
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from lift_ros.graph.transport import transport_settings

# Above 100 the ports of a domain reach into those that the system hands out to anybody.
DOMAINS = range(1, 101)
MARK = "LIFT_ROS_TEST"


def _ports_free(domain: int) -> bool:
    """Whether nobody, ourselves excluded by the lock, listens on the first ports that DDS takes for a domain."""
    first = 7400 + 250 * domain
    for port in (first + 10, first + 11, first + 12, first + 13):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            try:
                probe.bind(("", port))
            except OSError:
                return False
    return True


def _try_lock(path: Path) -> IO[str] | None:
    lock = path.open("a")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.close()
        return None
    return lock


@contextlib.contextmanager
def own_domain() -> Iterator[int]:
    """Reserve a domain against all other tests on this machine; the system frees it when this process ends."""
    folder = Path(tempfile.gettempdir()) / f"lift_ros_domains_{os.getuid()}"
    folder.mkdir(exist_ok=True)
    for domain in random.SystemRandom().sample(DOMAINS, len(DOMAINS)):
        lock = _try_lock(folder / str(domain))
        if lock is None:
            continue
        with lock:
            if _ports_free(domain):
                yield domain
                return
    raise RuntimeError("All ROS domains from 1 to 100 are in use on this machine.")


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
    with own_domain() as domain:
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


@contextlib.contextmanager
def udp_alone() -> Iterator[None]:
    """Make ROS nodes that are first created inside speak UDP alone; afterwards the environment is as before."""
    settings = transport_settings()
    before = {name: os.environ.get(name) for name in settings}
    os.environ.update(settings)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
