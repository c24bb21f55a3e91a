"""The package that docs/your-own-rig.md prints does what the page says; docs/deploying.md drives with its model."""

from __future__ import annotations

import ast
import contextlib
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from isolation import isolated
from page import DOCS, blocks, write_files
from sources import ROOT, clean_environment

from lift_ros.bags.reader import read_run
from lift_ros.collection.records import Mode, Outcome, Source
from lift_ros.graph.launch_arguments import ARGUMENTS, graph_options

PAGE, DEPLOYING = DOCS / "your-own-rig.md", DOCS / "deploying.md"
BUILD, STAGE, WORK = (block.text for block in blocks(PAGE, "## 5. Run it") if block.language == "bash")
SOURCED, _, STAGE_COMMAND = STAGE.rstrip().rpartition("\n")
WAIT_S = 800
pytestmark = pytest.mark.timeout(WAIT_S + 100)
PARTIES = ("logging_policy", "plant", "augmentor")
# A loaded machine must not abort episodes: the page's deadlines are for rigs. Trainings are shorter, too.
SHORT = shlex.quote("""trainer.training='{"updates": 300}'""")  # quoted twice: for the shell, and as text for YAML
ADDED = {
    "run": " ".join([*(f"--set arbiter.{party}_deadline=60.0" for party in PARTIES), f"--set {SHORT}"]),
    "train": "--updates 500",
}


class Terminal:
    """A new terminal of somebody whose home has the workspace: every block is run as it is printed."""

    def __init__(self, home: Path) -> None:
        self.home = home
        # Whoever sits there has no environment activated yet.
        path = os.pathsep.join(part for part in os.environ["PATH"].split(os.pathsep) if sys.prefix not in part)
        self.environment = clean_environment() | {"HOME": str(home), "PATH": path, "PYTHONUNBUFFERED": "1"}

    def start(self, script: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            ["bash", "-ec", script],
            cwd=self.home,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, script: str, status: int = 0) -> str:
        done = self.start(script)
        output, _ = done.communicate(timeout=WAIT_S)
        assert done.returncode == status, f"{script}\n{output}"
        return output


def patient(script: str) -> str:
    """Return a script as a loaded machine can run it; nothing else is changed."""
    return re.sub(
        rf"^lift ({'|'.join(ADDED)}) .*$", lambda line: f"{line[0]} {ADDED[line[1]]}", script, flags=re.MULTILINE
    )


def read_until(process: subprocess.Popen[str], words: str) -> str:
    """Return the line that says so."""
    assert process.stdout is not None
    seen = []
    deadline = time.monotonic() + WAIT_S
    for line in process.stdout:
        seen.append(line)
        if words in line:
            return line
        assert time.monotonic() < deadline, "".join(seen)
    raise AssertionError(f"ended without {words!r}:\n{''.join(seen)}")


@contextlib.contextmanager
def stage_is_up(terminal: Terminal, command: str = STAGE_COMMAND) -> Iterator[str]:
    """Keep the first terminal open."""
    stage = terminal.start(f"{SOURCED}\nexec {command}")
    try:
        yield read_until(stage, "the plant is up")
    finally:
        stage.send_signal(signal.SIGINT)
        stage.communicate(timeout=60)
    assert stage.returncode == 0


@pytest.fixture(scope="module")
def terminal(tmp_path_factory: pytest.TempPathFactory) -> Terminal:
    """A home with the page's package in a workspace that is built as the page says."""
    home = tmp_path_factory.mktemp("home")
    workspace = home / "ws"
    write_files(PAGE, workspace / "src")
    write_files(DEPLOYING, workspace / "src")
    for name in ("lens_rig/resource/lens_rig", "lens_rig/lens_rig/__init__.py"):
        (workspace / "src" / name).parent.mkdir(exist_ok=True)
        (workspace / "src" / name).touch()
    (workspace / "venv").symlink_to(sys.prefix)
    terminal = Terminal(home)
    terminal.run(BUILD)
    return terminal


@pytest.fixture(scope="module")
def said(terminal: Terminal) -> dict[str, str]:
    """What was said while the page's second terminal did its work, begun before the plant was up."""
    with isolated() as domain:
        terminal.environment |= {name: os.environ[name] for name in os.environ if name.startswith(("ROS_", "LIFT_"))}
        work = terminal.start(patient(WORK))
        said = {"domain": str(domain), "expected": read_until(work, "your plant node is expected")}
        said["waits"] = read_until(work, "Nobody publishes")
        with stage_is_up(terminal) as said["up"]:
            said["rest"], _ = work.communicate(timeout=WAIT_S)
        assert work.returncode == 0, said["rest"]
    return said


def test_the_page_needs_nothing_of_the_package_but_its_rig_module() -> None:
    for page in (PAGE, DEPLOYING):
        assert set(re.findall(r"(?:from|import) (lift_ros[\w.]*)", page.read_text())) == {"lift_ros.rig"}


def test_limits_stand_once() -> None:
    (node,) = (block.text for block in blocks(PAGE) if block.file.endswith("stage_node.py"))
    assert not re.search(r"Limits|0\.4|400|THRESHOLD", node)


def test_a_terminal_that_has_not_sourced_the_workspace_is_told_to(terminal: Terminal) -> None:
    unsourced = WORK.replace("source install/setup.bash\n", "")
    output = terminal.run(unsourced, status=2)
    assert "there is no module 'lens_rig' in this terminal: source the workspace that has it" in output
    assert "Traceback" not in output


def test_plant_and_graph_say_where_they_are_and_meet(said: dict[str, str]) -> None:
    where = f"namespace /lift, domain {said['domain']}, discovery range LOCALHOST"
    assert where in said["expected"] and where in said["up"]
    assert f"Nobody publishes /lift/observation in domain {said['domain']}" in said["waits"]
    assert "start your plant node in namespace /lift" in said["waits"]


def test_the_rig_is_recorded_trained_and_evaluated(terminal: Terminal, said: dict[str, str]) -> None:
    collected, evaluated = (read_run(terminal.home / "ws/runs" / name) for name in ("lens", "check"))
    assert (len(collected), len(evaluated)) == (40, 10)
    assert {episode.outcome for episode in [*collected, *evaluated]} == {Outcome.REACHED}
    alone = [len(episode.steps) for episode in collected[:30]]
    learned = [len(episode.steps) for episode in evaluated]
    assert sum(learned) / len(learned) < sum(alone) / len(alone)


@pytest.mark.usefixtures("said")
def test_a_model_is_deployed_with_the_commands_of_the_page(terminal: Terminal, ros_domain: int) -> None:
    use_domain(terminal, ros_domain)
    commands = "".join(block.text for block in blocks(DEPLOYING) if block.language == "bash")
    assert [line.split()[1] for line in commands.splitlines()] == ["evaluate", "run", "run", "inspect", "export"]
    with stage_is_up(terminal):
        terminal.run(f"{SOURCED}\n{patient(commands)}")
    shadow, production = (read_run(terminal.home / "ws/runs" / name) for name in ("shadow", "production"))
    assert {episode.mode for episode in shadow} == {Mode.SHADOW}
    assert {episode.mode for episode in production} == {Mode.ASSIST}
    assert [episode.outcome for episode in production] == [Outcome.REACHED] * 5
    assert any(step.source is Source.AUGMENTOR for episode in production for step in episode.steps)


@pytest.mark.usefixtures("said")
def test_the_snippets_of_python_give_the_same_action(terminal: Terminal) -> None:
    pytest.importorskip("onnxruntime")
    bare, runtime = [block for block in blocks(DEPLOYING) if block.language == "python" and not block.file]
    export = next(line for block in blocks(DEPLOYING, "## 4. ONNX") for line in block.lines if "lift export" in line)
    terminal.run(f"{SOURCED}\n{export}")

    def numbers(script: str) -> list[float]:
        (terminal.home / "snippet.py").write_text(script)
        output = terminal.run(f"{SOURCED}\npython {terminal.home / 'snippet.py'}")
        return [float(number) for number in re.findall(r"-?\d+\.\d+(?:e-?\d+)?", output.splitlines()[0])]

    ours, theirs = numbers(bare.text), numbers(runtime.text)
    assert len(ours) == 3  # two entries of the action and the radius
    assert theirs == pytest.approx(ours, rel=1e-4)
    assert ours[-1] == 0.4
    said = terminal.run(f"{SOURCED}\npython {terminal.home / 'snippet.py'}").splitlines()
    assert said[0].endswith("0.4 mm lens-rig")
    assert "'kind': 'hardware'" in said[1]
    modules = "import sys; print([name for name in ('rclpy', 'torch') if name in sys.modules])"
    (terminal.home / "snippet.py").write_text(f"{bare.text}\n{modules}\n")
    assert terminal.run(f"{SOURCED}\npython {terminal.home / 'snippet.py'}").splitlines()[-1] == "[]"


def constants(launch_file: Path) -> dict[str, Any]:
    """Return what a launch file names before it describes anything; `launch` is not needed for that."""
    tree = ast.parse(launch_file.read_text())
    namespace: dict[str, Any] = {}
    body = [node for node in tree.body if isinstance(node, ast.Assign)]
    exec(compile(ast.Module(body, []), str(launch_file), "exec"), namespace)
    return namespace


def defaults(launch_file: Path) -> dict[str, str]:
    """Return what one of our launch files passes to `graph_description`."""
    calls = [node for node in ast.walk(ast.parse(launch_file.read_text())) if isinstance(node, ast.Call)]
    return {word.arg: ast.literal_eval(word.value) for call in calls for word in call.keywords if word.arg}


@pytest.mark.usefixtures("said")
def test_the_graph_of_the_launch_file_drives_the_stage(terminal: Terminal, ros_domain: int) -> None:
    """The very nodes and parameters that `ros2 launch` would start, started without it."""
    use_domain(terminal, ros_domain)
    named = constants(terminal.home / "ws/src/lens_rig/launch/production.launch.py")
    given = {**defaults(ROOT / "launch" / "assist.launch.py"), **named["GRAPH"]}
    assert set(given) <= set(ARGUMENTS)
    options = graph_options(given)
    assert (options.mode, options.plant, options.episodes) == ("assist", "hardware", 3)
    program = (
        "import json, sys; from lift_ros.graph.launch_arguments import graph_options; "
        "from lift_ros.graph.run import run_graph; from dataclasses import replace; "
        "given, patience = map(json.loads, sys.argv[1:]); "
        "run_graph(replace(graph_options(given), parameters={'arbiter': patience}))"
    )
    patience = {f"{party}_deadline": 60.0 for party in PARTIES}
    stage = STAGE_COMMAND.split(" --ros-args")[0]
    parameters = " ".join(f"-p {name}:={value}" for name, value in named["STAGE"].items())
    with stage_is_up(terminal, f"{stage} --ros-args -r __ns:=/lift {parameters}"):
        terminal.run(f"{SOURCED}\npython -c \"{program}\" '{json.dumps(given)}' '{json.dumps(patience)}'")
    launched = read_run(terminal.home / "ws/runs/launched")
    assert [episode.outcome for episode in launched] == [Outcome.REACHED] * 3
    assert {episode.mode for episode in launched} == {Mode.ASSIST}


@pytest.mark.usefixtures("said")
def test_the_launch_file_can_be_described(terminal: Terminal) -> None:
    pytest.importorskip("launch_ros", reason="launch_ros is not on PyPI; it comes with a ROS installation")
    import runpy

    namespace = runpy.run_path(str(terminal.home / "ws/src/lens_rig/launch/production.launch.py"))
    assert len(namespace["generate_launch_description"]().entities) == 2


def use_domain(terminal: Terminal, domain: int) -> None:
    """Let the terminal sit where this test is isolated."""
    terminal.environment |= {name: os.environ[name] for name in os.environ if name.startswith(("ROS_", "LIFT_"))}
    assert terminal.environment["ROS_DOMAIN_ID"] == str(domain)
