"""`colcon build` in an ordinary workspace: executables, launch and parameter files where `ros2` looks for them."""

from __future__ import annotations

import configparser
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import rclpy
from sources import ROOT, clean_environment, copy_sources, node_names

import lift_ros
from lift_ros import msg
from lift_ros.nodes.executor import make_executor, spin

ENOUGH = 120.0


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace built on top of the environment that runs this test, in which a step has one more field."""
    tmp_path = tmp_path_factory.mktemp("workspace")
    copy_sources(tmp_path / "src" / "lift_ros")
    add_field(tmp_path / "src" / "lift_ros")
    colcon(tmp_path, "build", *BUILD_WORDS)
    return tmp_path


@pytest.fixture(scope="module")
def symlinked(workspace: Path) -> Path:
    """The same workspace, installed a second time beside the first, by links; nothing is compiled again."""
    # Where ament copied modules it cannot link them: users, too, begin with a clean build folder.
    shutil.rmtree(workspace / "build" / "lift_ros" / "ament_cmake_python")
    colcon(workspace, "build", "--symlink-install", "--install-base", "symlinked", *BUILD_WORDS)
    return workspace / "symlinked"


BUILD_WORDS = (
    "--event-handlers",
    "console_cohesion+",
    "--cmake-args",
    "-GNinja",
    "-DCMAKE_PROJECT_INCLUDE=src/lift_ros/cmake/pypi_wheels.cmake",
    f"-DPython3_EXECUTABLE={sys.executable}",
)


def colcon(workspace: Path, *words: str, **settings: str) -> str:
    """Run colcon in a workspace on top of the environment that runs this test, and return what it printed."""
    prefix = Path(sys.prefix)
    words = tuple(word.replace("src/", f"{workspace}/src/") for word in words)
    environment = clean_environment() | {
        "AMENT_PREFIX_PATH": str(prefix),
        "CMAKE_PREFIX_PATH": str(prefix),
        "PATH": os.pathsep.join([str(prefix / "bin"), os.environ["PATH"]]),
        "CFLAGS": "-O0",
        "CXXFLAGS": "-O0",
    }
    done = subprocess.run(
        [prefix / "bin" / "colcon", *words], cwd=workspace, env=environment | settings, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


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


def sourced(workspace: Path, words: str, install: str = "install") -> list[str]:
    """Return a command that runs from another folder in a shell where the workspace is sourced."""
    return ["bash", "-c", f". {workspace}/{install}/setup.bash && cd / && exec {words}"]


def settings_of_this_python() -> dict[str, str]:
    return clean_environment() | {"PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])}


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
    assert {path.name for path in (installed / "bin").iterdir()} == {"lift", *(f"lift_{name}" for name in node_names())}
    for folder in ("config", "launch"):
        names = {path.name for path in (ROOT / folder).iterdir() if path.name != "__pycache__"}
        assert {path.name for path in (installed / "share" / "lift_ros" / folder).iterdir()} == names

    settings = settings_of_this_python()
    program = "import lift_ros, lift_ros.msg; print(lift_ros.__path__[0]); print(lift_ros.msg.__file__)"
    shown = subprocess.run(
        sourced(workspace, f"python -c '{program}'"), env=settings, capture_output=True, text=True, timeout=ENOUGH
    )
    assert shown.returncode == 0, shown.stderr
    assert all(Path(line).is_relative_to(installed) for line in shown.stdout.splitlines()), shown.stdout

    found = subprocess.run(
        sourced(workspace, "which lift lift_arbiter"), env=settings, capture_output=True, text=True, timeout=ENOUGH
    )
    assert found.stdout.split() == [str(installed / "bin" / name) for name in ("lift", "lift_arbiter")]

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


@pytest.mark.timeout(900)
def test_executables_of_a_symlinked_workspace_run_and_edits_are_live(workspace: Path, symlinked: Path) -> None:
    installed = symlinked / "lift_ros"
    for path in [*(installed / "lib" / "lift_ros").iterdir(), *(installed / "bin").iterdir()]:
        assert os.access(path, os.X_OK), path
    package = workspace / "src" / "lift_ros" / "lift_ros" / "__init__.py"
    before = package.read_text()
    package.write_text(before.replace(f'"{lift_ros.__version__}"', '"9.8.7"'))
    try:
        shown = subprocess.run(
            sourced(workspace, f"{installed}/lib/lift_ros/lift --version", "symlinked"),
            env=settings_of_this_python(),
            capture_output=True,
            text=True,
            timeout=ENOUGH,
        )
    finally:
        package.write_text(before)
    assert shown.stdout == "lift_ros 9.8.7\n", shown.stderr
    helped = subprocess.run(
        sourced(workspace, f"{installed}/lib/lift_ros/recorder --help", "symlinked"),
        env=settings_of_this_python(),
        capture_output=True,
        text=True,
        timeout=ENOUGH,
    )
    assert (helped.returncode, helped.stdout.startswith("recorder")) == (0, True), helped.stderr


@pytest.mark.timeout(900)
def test_colcon_test_runs_tests_of_the_installed_package(workspace: Path, tmp_path: Path) -> None:
    """A few of those in test/workspace.ini, and one that says which package they saw."""
    seen = tmp_path / "test_seen.py"
    installed = workspace / "install" / "lift_ros"
    seen.write_text(
        f"import lift_ros\n\n\ndef test_seen():\n    assert lift_ros.__path__[0].startswith({str(installed)!r})\n"
    )
    colcon(workspace, "test", PYTEST_ADDOPTS=f"graph/test_parameters.py {seen}")
    told = colcon(workspace, "test-result", "--all")
    (tests,) = re.findall(r"workspace.xunit.xml: (\d+) tests, 0 errors, 0 failures, 0 skipped", told)
    assert int(tests) > 10

    seen.write_text("def test_fails():\n    assert False\n")
    colcon(workspace, "test", PYTEST_ADDOPTS=str(seen))  # succeeds, as ever: the result tells
    with pytest.raises(AssertionError, match="1 failure"):
        colcon(workspace, "test-result", "--all")


def test_quick_tests_of_a_workspace_exist() -> None:
    config = configparser.ConfigParser()
    config.read(ROOT / "test" / "workspace.ini")
    paths = config["pytest"]["testpaths"].split()
    assert paths
    assert all((ROOT / "test" / path).exists() for path in paths)


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
    settings = settings_of_this_python()
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
