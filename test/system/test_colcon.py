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


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace built on top of the environment that runs this test, in which a step has one more field."""
    tmp_path = tmp_path_factory.mktemp("workspace")
    copy_sources(tmp_path / "src" / "lift_ros")
    add_field(tmp_path / "src" / "lift_ros")
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


def add_field(sources: Path) -> None:
    """Let steps tell a force: in the message and in the record, and nowhere else."""
    with (sources / "msg" / "Step.msg").open("a") as message:
        message.write("float64 force                       # what a load cell said [N]\n")
    record = sources / "lift_ros" / "collection" / "records.py"
    text = record.read_text()
    last = text.index("@dataclass(slots=True)\nclass Episode:")
    record.write_text(f"{text[:last].rstrip()}\n    force: float = 7.25\n\n\n{text[last:]}")


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


READ_BACK = """
import sys
from mcap.reader import make_reader
from mcap_ros2.decoder import DecoderFactory
from pathlib import Path
from lift_ros.bags import RunReader, load_arrays
run = Path(sys.argv[1])
steps = [step for episode in RunReader(run) for step in episode.steps]
assert {step.force for step in steps} == {7.25}, "the reader"
assert load_arrays(run, columns=["force"]).columns["force"].tolist() == [7.25] * len(steps), "the loader"
file = sorted(run.glob("*.mcap"))[0]
with file.open("rb") as stream:
    reader = make_reader(stream, decoder_factories=[DecoderFactory()])
    foreign = next(reader.iter_decoded_messages(topics=["/lift/step"])).decoded_message
assert foreign.force == 7.25, "readers without this package"
print(len(steps))
"""


@pytest.mark.timeout(900)
def test_field_added_to_message_and_record_travels_through_graph_bag_and_arrays(
    workspace: Path, tmp_path: Path, ros_domain: int
) -> None:
    settings = clean_environment() | {"PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])}
    lift = workspace / "install" / "lift_ros" / "lib" / "lift_ros" / "lift"
    run = tmp_path / "run"
    words = f"python {lift} run --scenario po-none-d2 --out {run} --episodes 2 --p 0"
    done = subprocess.run(sourced(workspace, words), env=settings, capture_output=True, text=True, timeout=4 * ENOUGH)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    (tmp_path / "read_back.py").write_text(READ_BACK)
    words = f"python {tmp_path / 'read_back.py'} {run}"
    read = subprocess.run(sourced(workspace, words), env=settings, capture_output=True, text=True, timeout=ENOUGH)
    assert read.returncode == 0, read.stderr
    assert int(read.stdout) > 2
