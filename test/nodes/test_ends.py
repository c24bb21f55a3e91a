"""Every executable as a process: its help, its refusal of bad input, and how it ends."""

from __future__ import annotations

import importlib.util
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from live_graph import ENOUGH, ROOT, LiveGraph, live_graph

from lift_ros.graph.parameters import PARAMETERS

ALONE = {
    "positioning_simulator": "READY",
    "fetch_simulator": "READY",
    "loopback_hardware": "READY",
    "logging_policy": "SERVING",
    "augmentor": "NO_MODEL",
    "arbiter": "WAITING_FOR_START",
    "recorder": "RECORDING",
    "trainer": "WAITING_FOR_EPISODES",
}
# Executables that cannot be tried without the library of an extra.
NEEDED = {"arm_simulator": ("pinocchio", "READY"), "rig": ("pymmcore", "READY"), "page": ("nicegui", "WATCHING")}
for executable, (library, status) in NEEDED.items():
    if importlib.util.find_spec(library) is not None:
        ALONE[executable] = status


def test_table_names_the_executables() -> None:
    assert set(ALONE) | set(NEEDED) == set(PARAMETERS)


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[LiveGraph]:
    """All executables at once, with nothing to do."""
    with live_graph(tmp_path) as graph:
        graph.start_idle(ALONE)
        graph.wait(f"{ALONE}", lambda: all(graph.state(name) == status for name, status in ALONE.items()))
        yield graph


def test_signals_end_every_node_with_status_0_and_no_complaint(graph: LiveGraph) -> None:
    for number, (executable, process) in enumerate(graph.processes.items()):
        assert process.end(signal.SIGINT if number % 2 else signal.SIGTERM) == 0, executable + graph.describe()
        assert "Traceback" not in process.log.read_text()


@pytest.mark.parametrize("executable", ["arbiter", "recorder"])
def test_help_describes_the_parameters(executable: str) -> None:
    command = [sys.executable, "-m", "lift_ros.nodes", executable, "--help"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=ENOUGH, check=True)
    assert all(f"  {parameter.name}  (" in done.stdout for parameter in PARAMETERS[executable])


@pytest.mark.parametrize(
    ("executable", "words", "message"),
    [
        ("arbiter", ["--ros-args", "-p", "p:=2.0"], "parameter p is 2.0; allowed: double >= 0 and <= 1"),
        ("arbiter", ["--episodes", "3"], "unknown argument '--episodes'"),
        ("positioning_simulator", ["--ros-args", "-p", "scenario:=po-blond-d2"], "did you mean 'po-blend-d2'?"),
        ("positioning_simulator", ["--ros-args", "-p", "scenario:=fetch-reach"], "simulates positioning"),
        ("augmentor", ["--ros-args", "-p", "model:=/nowhere.safetensors"], "/nowhere.safetensors"),
    ],
)
def test_bad_input_ends_with_status_2_and_one_sentence(
    executable: str, words: list[str], message: str, tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "lift_ros.nodes", executable, *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=ENOUGH, check=False)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


# Stops in the midst of a node's imports, and says so.
STUCK = """
import sys, time

class Stuck:
    def find_spec(self, name, path=None, target=None):
        if name == "rclpy.node":
            print("importing", flush=True)
            while True:
                try:
                    time.sleep(60)
                except BaseException:
                    pass  # as libraries do that try one import after another

sys.meta_path.insert(0, Stuck())
from lift_ros.nodes.starting import arbiter
sys.exit(arbiter())
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_node_interrupted_in_the_midst_of_imports_ends_without_a_word(number: signal.Signals) -> None:
    command = [sys.executable, "-c", STUCK]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "importing\n"
        process.send_signal(number)
        try:
            said, _ = process.communicate(timeout=ENOUGH)
        finally:
            process.kill()
    assert (process.returncode, said) == (0, "")
