"""The package that docs/your-own-rig.md prints builds outside the repository and does what the page says."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lift_ros.bags.reader import read_run
from lift_ros.collection.records import Outcome

PAGE = Path(__file__).parents[2] / "docs" / "your-own-rig.md"
WAIT_S = 380


def write_package(source: Path) -> None:
    """Write every file that the page prints."""
    for name, content in re.findall(r"`(lens_rig/[^`]+)`\n```\w+\n(.*?)```", PAGE.read_text(), re.DOTALL):
        path = source / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    for name in ("lens_rig/resource/lens_rig", "lens_rig/lens_rig/__init__.py"):
        (source / name).parent.mkdir(exist_ok=True)
        (source / name).touch()


def test_the_page_needs_nothing_of_the_package_but_its_rig_module() -> None:
    assert set(re.findall(r"(?:from|import) (lift_ros[\w.]*)", PAGE.read_text())) == {"lift_ros.rig"}


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("workspace")
    write_package(folder / "src")
    colcon = [sys.executable, "-m", "colcon", "build", "--event-handlers", "console_direct+"]
    built = subprocess.run(colcon, cwd=folder, capture_output=True, text=True, timeout=WAIT_S)
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


def sourced(workspace: Path, *words: object) -> list[str]:
    """Return a command that runs in the built workspace, as a user's shell would."""
    command = shlex.join(str(word) for word in words)
    return ["bash", "-c", f". install/setup.bash && exec {command}"]


def test_the_rig_is_recorded_trained_and_evaluated(workspace: Path) -> None:
    lift = [sys.executable, "-m", "lift_ros.cli"]
    rig = ["--plant", "hardware", "--scenario", "src/lens_rig/config/lens-rig.yaml"]
    root = str(PAGE.parents[1])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))}
    patient = ["--set", "arbiter.logging_policy_deadline=60.0", "--set", "arbiter.plant_deadline=60.0"]

    def call(*words: object) -> str:
        done = subprocess.run(
            sourced(workspace, *lift, *words),
            cwd=workspace,
            env=environment,
            capture_output=True,
            text=True,
            timeout=WAIT_S,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    stage = subprocess.Popen(
        sourced(workspace, "install/lens_rig/lib/lens_rig/stage", "--ros-args", "-r", "__ns:=/lift"),
        cwd=workspace,
        env=environment,
    )
    try:
        call("run", *rig, *patient, "--out", "runs/lens", "--episodes", 30, "--p", 0)
        call("train", "runs/lens", "--out", "lens.safetensors", "--json")
        call(
            "run", *rig, *patient, "--out", "runs/check", "--mode", "evaluate", "--model", "lens.safetensors",
            "--episodes", 3, "--set", "arbiter.augmentor_deadline=60.0",
        )  # fmt: skip
    finally:
        stage.send_signal(signal.SIGINT)
        stage.wait(60)
    collected, evaluated = read_run(workspace / "runs/lens"), read_run(workspace / "runs/check")
    assert {episode.outcome for episode in [*collected, *evaluated]} == {Outcome.REACHED}
    routine_steps = sum(len(episode.steps) for episode in collected) / len(collected)
    learned_steps = sum(len(episode.steps) for episode in evaluated) / len(evaluated)
    assert learned_steps < routine_steps
    assert stage.returncode == 0
