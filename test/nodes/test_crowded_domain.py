"""In a domain where nobody would find a further node, it says so instead of waiting for ever."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lift_ros.graph.domains import LOOPBACK_ROOM
from lift_ros.processes import module_command

ENOUGH = 120


@pytest.fixture
def crowd(ros_domain: int) -> Iterator[int]:
    """The ports of 70 participants."""
    with contextlib.ExitStack() as sockets:
        for number in range(70):
            port = sockets.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            port.bind(("127.0.0.1", 7410 + 250 * ros_domain + 2 * number))
        yield ros_domain


def test_a_node_refuses_to_join(crowd: int) -> None:
    command = [*module_command("lift_ros.nodes"), "loopback_hardware"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=ENOUGH)
    assert done.returncode == 2
    assert f"ROS domain {crowd} has 70 participants on this machine and 1 more would join" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_graph_refuses_before_any_node_starts(crowd: int, tmp_path: Path) -> None:
    words = ["run", "--scenario", "po-none-d2", "--out", str(tmp_path / "run"), "--episodes", "1", "--p", "0"]
    done = subprocess.run(
        [sys.executable, "-m", "lift_ros.cli", *words], capture_output=True, text=True, timeout=ENOUGH
    )
    assert done.returncode == 2
    assert "5 more would join, but only 64 find each other" in " ".join(done.stderr.split())
    assert not (tmp_path / "run").exists()


def test_the_limit_is_that_of_the_profile() -> None:
    profile = (Path(__file__).parents[2] / "config" / "fastdds-loopback.xml").read_text()
    assert f"<maxInitialPeersRange>{LOOPBACK_ROOM}</maxInitialPeersRange>" in profile
