"""The launch files under the real `launch` and `launch_ros`, which come with a ROS installation."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from sources import ROOT, node_names

from lift_ros.bags.reader import RunReader
from lift_ros.graph.restarts import RESTARTS

pytest.importorskip("launch_ros", reason="launch_ros is not on PyPI; it comes with a ROS installation")

WAIT_S = 300.0
# What `ros2 launch` does with a file and its arguments.
LAUNCH = """
import sys
from launch import LaunchDescription, LaunchService
from launch.actions import IncludeLaunchDescription
from launch.launch_description_sources import AnyLaunchDescriptionSource

given = [tuple(word.split(":=", 1)) for word in sys.argv[2:]]
included = IncludeLaunchDescription(AnyLaunchDescriptionSource(sys.argv[1]), launch_arguments=given)
service = LaunchService(argv=sys.argv[2:], noninteractive=True)
service.include_launch_description(LaunchDescription([included]))
sys.exit(service.run())
"""
AROUND = """
from launch import LaunchDescription
from launch.actions import IncludeLaunchDescription
from launch_ros.actions import SetParameter

def generate_launch_description():
    return LaunchDescription([SetParameter("use_sim_time", True), IncludeLaunchDescription({collect!r})])
"""
Launch = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def launch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Launch:
    """Start a launch file as a process; executables are found as an installed package's are."""
    prefix = tmp_path / "prefix"
    for name in node_names():
        script = prefix / "lib" / "lift_ros" / name
        script.parent.mkdir(parents=True, exist_ok=True)
        script.write_text(
            f"#!{sys.executable}\nfrom lift_ros.nodes.starting import {name}\nraise SystemExit({name}())\n"
        )
        script.chmod(0o755)
    index = prefix / "share" / "ament_index" / "resource_index" / "packages"
    index.mkdir(parents=True)
    (index / "lift_ros").touch()
    monkeypatch.setenv("AMENT_PREFIX_PATH", f"{prefix}:{os.environ.get('AMENT_PREFIX_PATH') or sys.prefix}")
    monkeypatch.setenv("ROS_LOG_DIR", str(tmp_path / "log"))

    def start(file: Path | str, **given: object) -> subprocess.Popen[str]:
        path = file if isinstance(file, Path) else ROOT / "launch" / f"{file}.launch.py"
        words = [f"{name}:={value}" for name, value in given.items()]
        command = [sys.executable, "-c", LAUNCH, str(path), *words]
        return subprocess.Popen(
            command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
        )

    return start


def finish(process: subprocess.Popen[str]) -> str:
    output, _ = process.communicate(timeout=WAIT_S)
    return output


def read_until(process: subprocess.Popen[str], pattern: str) -> re.Match[str]:
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line)
        if match := re.search(pattern, line):
            return match
    raise AssertionError(f"{pattern} was never said:\n{''.join(lines)}")


@pytest.mark.parametrize("name", ["arm", "assist", "collect", "evaluate", "fetch"])
def test_bad_arguments_are_refused_before_any_node_starts(launch: Launch, tmp_path: Path, name: str) -> None:
    process = launch(name, p=2)
    output = finish(process)
    assert process.returncode == 1
    assert "p:=2 is refused; allowed: a number >= 0 and <= 1" in output
    assert "process started" not in output and "Traceback" not in output
    assert not (tmp_path / "runs").exists()


def test_a_run_is_completed_with_what_the_parameter_file_says(launch: Launch, tmp_path: Path) -> None:
    (tmp_path / "rig.yaml").write_text("/**: {ros__parameters: {p: 0.25, guard_enabled: false}}\n")
    process = launch(
        "collect",
        episodes=2,
        run="run",
        augmentation="uniform",
        parameters="rig.yaml",
        log_level="error",
        namespace="rig",
    )
    output = finish(process)
    assert process.returncode == 0, output
    assert "is up" not in output  # which is said at level info
    run = RunReader(tmp_path / "run")
    assert (len(run), run.facts["p"]) == (2, 0.25)
    assert {step.p for episode in run for step in episode.steps} == {0.25}


def test_without_autostart_the_arbiter_waits_for_a_call(launch: Launch, tmp_path: Path) -> None:
    process = launch("collect", episodes=2, run="run", p=0, autostart="false")
    read_until(process, "records into")
    time.sleep(3.0)  # time enough for an arbiter that would not wait
    process.send_signal(signal.SIGINT)
    finish(process)
    assert len(RunReader(tmp_path / "run")) == 0


def test_a_node_is_started_again_so_many_times_and_no_more(launch: Launch) -> None:
    process = launch("collect", episodes=0, run="run", p=0)
    for number in range(1, RESTARTS + 1):
        pid = int(read_until(process, r"\[logging_policy-\d+\]: process started with pid \[(\d+)\]")[1])
        os.kill(pid, signal.SIGKILL)
        read_until(process, f"logging_policy was ended by SIGKILL; restart {number} of {RESTARTS}")
    os.kill(int(read_until(process, r"\[logging_policy-\d+\]: process started with pid \[(\d+)\]")[1]), signal.SIGKILL)
    assert "logging_policy was ended by SIGKILL and has no restarts left" in finish(process)
    assert process.returncode == 1


def test_what_a_node_refuses_ends_the_launch(launch: Launch, tmp_path: Path) -> None:
    (tmp_path / "prefix" / "lib" / "lift_ros" / "recorder").write_text("#!/bin/sh\necho no; exit 2\n")
    process = launch("collect", episodes=1, run="other", p=0)
    output = finish(process)
    assert process.returncode == 1
    assert "recorder refused its input and would do so again; its log says why" in output
    assert output.count("process started") == 4


def test_simulated_time_of_a_file_around_is_refused(launch: Launch, tmp_path: Path) -> None:
    file = tmp_path / "around.launch.py"
    file.write_text(AROUND.format(collect=str(ROOT / "launch" / "collect.launch.py")))
    process = launch(file)
    output = finish(process)
    assert process.returncode == 1
    assert "use_sim_time is True; allowed: false" in output and "process started" not in output
