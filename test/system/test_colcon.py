"""`colcon build` in an ordinary workspace: executables, launch and parameter files where `ros2` looks for them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import rclpy
from sources import ROOT, clean_environment, copy_sources, node_names

from lift_ros import msg
from lift_ros.nodes.executor import make_executor, spin

ENOUGH = 120.0


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A workspace built on top of the environment that runs this test."""
    copy_sources(tmp_path / "src" / "lift_ros")
    prefix = Path(sys.prefix)
    settings = clean_environment() | {
        "AMENT_PREFIX_PATH": str(prefix),
        "CMAKE_PREFIX_PATH": str(prefix),
        "PATH": os.pathsep.join([str(prefix / "bin"), os.environ["PATH"]]),
        "CFLAGS": "-O0",
        "CXXFLAGS": "-O0",
    }
    work_around = tmp_path / "src" / "lift_ros" / "cmake" / "pypi_wheels.cmake"
    command = [prefix / "bin" / "colcon", "build", "--event-handlers", "console_cohesion+", "--cmake-args", "-GNinja"]
    command += [f"-DCMAKE_PROJECT_INCLUDE={work_around}", f"-DPython3_EXECUTABLE={sys.executable}"]
    done = subprocess.run(command, cwd=tmp_path, env=settings, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return tmp_path


@pytest.fixture
def node(ros_domain: int) -> Iterator[rclpy.node.Node]:
    rclpy.init()
    yield rclpy.create_node("visitor")
    rclpy.try_shutdown()


def sourced(workspace: Path, words: str) -> list[str]:
    """Return a command that runs from another folder in a shell where the workspace is sourced."""
    return ["bash", "-c", f". {workspace}/install/setup.bash && cd / && exec {words}"]


def answer_to_reset(node: rclpy.node.Node) -> msg.Observation | None:
    """Ask the plant for an episode until it answers."""
    answers: list[msg.Observation] = []
    commands = node.create_publisher(msg.Command, "/lift/command", 10)
    node.create_subscription(msg.Observation, "/lift/observation", answers.append, 10)
    reset = msg.Command(kind=msg.Command.KIND_RESET, episode=3, seed=1)
    node.create_timer(0.5, lambda: commands.publish(reset))
    executor = make_executor(node.get_logger())
    executor.add_node(node)
    deadline = time.monotonic() + ENOUGH
    spin(executor, lambda: bool(answers) or time.monotonic() > deadline)
    return answers[0] if answers else None


@pytest.mark.timeout(900)
def test_workspace_has_everything_and_its_executables_run(workspace: Path, node: rclpy.node.Node) -> None:
    installed = workspace / "install" / "lift_ros"
    assert {path.name for path in (installed / "lib" / "lift_ros").iterdir()} == {"lift", *node_names()}
    for folder in ("config", "launch"):
        names = {path.name for path in (ROOT / folder).iterdir() if path.is_file()}
        assert {path.name for path in (installed / "share" / "lift_ros" / folder).iterdir()} == names

    settings = clean_environment() | {"PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])}
    program = "import lift_ros, lift_ros.msg; print(lift_ros.__path__[0]); print(lift_ros.msg.__file__)"
    shown = subprocess.run(
        sourced(workspace, f"python -c '{program}'"), env=settings, capture_output=True, text=True, timeout=ENOUGH
    )
    assert shown.returncode == 0, shown.stderr
    assert all(Path(line).is_relative_to(installed) for line in shown.stdout.splitlines()), shown.stdout

    executable = installed / "lib" / "lift_ros" / "positioning_simulator"
    words = f"{executable} --ros-args -p scenario:=po-none-d2 -r __ns:=/lift"
    with subprocess.Popen(
        sourced(workspace, words), env=settings, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as plant:
        try:
            answer = answer_to_reset(node)
        finally:
            plant.terminate()
            printed, _ = plant.communicate(timeout=ENOUGH)
    assert answer is not None, printed
    assert (answer.episode, answer.step, len(answer.position)) == (3, 0, 2)
