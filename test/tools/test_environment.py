"""The environment is made once, refreshed when its sources change, and refuses in one sentence what cannot work."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tools import environment
from tools.environment import Environment, SetupFailed, check_compiler, check_python, digest, explain_pip

ROOT = Path(__file__).parents[2]


def run_setup(*words: str, path: str | None = None) -> subprocess.CompletedProcess[str]:
    settings = dict(os.environ)
    if path is not None:
        settings["PATH"] = path
        settings.pop("CXX", None)
    command = [sys.executable, str(ROOT / "tools" / "environment.py"), *words]
    return subprocess.run(command, env=settings, capture_output=True, text=True, timeout=120)


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small checkout with everything that the environment depends on."""
    root = tmp_path / "checkout"
    for name in ("cmake", "msg", "requirements"):
        shutil.copytree(ROOT / name, root / name)
    for name in ("CMakeLists.txt", "package.xml", "setup.py"):
        shutil.copy2(ROOT / name, root / name)
    (root / "tools").mkdir()
    shutil.copy2(ROOT / "tools" / "messages.py", root / "tools")
    (root / "lift_ros" / "nodes").mkdir(parents=True)
    (root / "lift_ros" / "nodes" / "plant_node.py").write_text("\ndef main(): ...\n")
    monkeypatch.setattr(environment, "ROOT", root)
    return root


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Replace the three slow steps by notes of what was done."""
    notes: list[str] = []

    def note(step: str) -> Any:
        def action(self: Environment) -> None:
            """Do the step."""
            self.python.parent.mkdir(parents=True, exist_ok=True)
            self.python.touch()
            notes.append(step)

        return action

    for step in ("packages", "messages", "commands"):
        monkeypatch.setattr(Environment, step, note(step))
    return notes


def refresh(checkout: Path) -> None:
    Environment("kilted", checkout / ".venv").refresh()


def test_first_run_does_everything_and_the_second_nothing(checkout: Path, done: list[str]) -> None:
    refresh(checkout)
    assert done == ["packages", "messages", "commands"]
    refresh(checkout)
    assert done == ["packages", "messages", "commands"]


@pytest.mark.parametrize(
    ("changed", "redone"),
    [
        ("msg/Step.msg", ["messages"]),
        ("msg/New.msg", ["messages"]),
        ("CMakeLists.txt", ["messages"]),
        ("cmake/pypi_wheels.cmake", ["messages"]),
        ("setup.py", ["commands"]),
        ("requirements/runtime.txt", ["commands"]),
        ("requirements/kilted.lock", ["packages", "messages", "commands"]),
        ("requirements/jazzy.lock", []),
        ("lift_ros/nodes/new_node.py", []),
    ],
)
def test_change_is_noticed_and_only_what_depends_on_it_is_redone(
    changed: str, redone: list[str], checkout: Path, done: list[str]
) -> None:
    refresh(checkout)
    done.clear()
    with (checkout / changed).open("a") as stream:
        stream.write("# changed\ndef main(): ...\n")
    refresh(checkout)
    assert done == redone


def test_content_counts_and_not_the_time_of_change(checkout: Path, done: list[str]) -> None:
    refresh(checkout)
    done.clear()
    os.utime(checkout / "msg" / "Step.msg", (1, 1))
    refresh(checkout)
    assert done == []


def test_step_that_failed_is_tried_again(checkout: Path, done: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Environment) -> None:
        """Fail."""
        raise SetupFailed("no")

    with monkeypatch.context() as patched:
        patched.setattr(Environment, "messages", fail)
        with pytest.raises(SetupFailed):
            refresh(checkout)
    assert done == ["packages"]
    refresh(checkout)
    assert done == ["packages", "messages", "commands"]


def test_environment_that_was_deleted_is_made_again(checkout: Path, done: list[str]) -> None:
    refresh(checkout)
    done.clear()
    shutil.rmtree(checkout / ".venv")
    refresh(checkout)
    assert done == ["packages", "messages", "commands"]


def test_digest_tells_names_and_contents_apart(checkout: Path) -> None:
    first, second = checkout / "a", checkout / "b"
    first.write_text("x")
    second.write_text("x")
    assert digest([first]) != digest([second])
    assert digest([first]) != digest([first], "word")
    assert digest([first, second]) == digest([second, first])


@pytest.mark.parametrize("version", [(3, 6, 15), (3, 8, 18), (3, 10, 1), (3, 13, 0), (4, 0, 0)])
def test_unsupported_python_gets_one_sentence_with_the_remedy(version: tuple[int, ...]) -> None:
    with pytest.raises(SetupFailed) as caught:
        check_python(version)
    assert f"Python {version[0]}.{version[1]} is not supported" in str(caught.value)
    assert "make PYTHON=python3.12" in str(caught.value)


@pytest.mark.parametrize("version", [(3, 11, 7), (3, 12, 1)])
def test_supported_python_passes(version: tuple[int, ...]) -> None:
    check_python(version)


def test_missing_compiler_gets_one_sentence_with_the_remedy_before_anything_is_made(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    done = run_setup("kilted", str(tmp_path / "venv"), path=str(tmp_path / "bin"))
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "No C++ compiler found" in done.stderr
    assert "apt install g++" in done.stderr
    assert not (tmp_path / "venv").exists()


def test_compiler_named_in_the_environment_counts(tmp_path: Path) -> None:
    compiler = tmp_path / "my-compiler"
    compiler.write_text("#!/bin/sh\n")
    compiler.chmod(0o755)
    check_compiler({"PATH": str(tmp_path), "CXX": "my-compiler -m64"})
    with pytest.raises(SetupFailed, match="other-compiler"):
        check_compiler({"PATH": str(tmp_path), "CXX": "other-compiler"})


def test_unknown_distribution_gets_one_sentence(tmp_path: Path) -> None:
    done = run_setup("humble", str(tmp_path / "venv"))
    assert done.returncode == 1
    assert done.stderr == "setup: ROS_DISTRO=humble is not supported: use kilted or jazzy.\n"


def test_missing_network_gets_one_sentence_with_the_remedy(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Let pip itself try an index that nobody serves, on a port of this machine that nobody listens on."""
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    for name in [name for name in os.environ if name.startswith("PIP_") and name != "PIP_CONFIG_FILE"]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:1/simple")
    monkeypatch.setenv("PIP_RETRIES", "1")
    made = Environment("kilted", checkout / ".venv")
    monkeypatch.setattr(made, "python", Path(sys.executable))
    with pytest.raises(SetupFailed, match="No network: pip cannot reach its package index. Connect") as caught:
        made._pip("a-package-that-is-not-installed==1.0")
    assert "\n" not in str(caught.value)


def test_other_complaints_of_pip_are_passed_on() -> None:
    assert "disk is full" in explain_pip("OSError: [Errno 28] No space left on device")
    told = explain_pip("lots\nof\nERROR: No matching distribution found for x==1\n")
    assert "No matching distribution found for x==1" in told
    assert "\n" not in told


def test_tool_can_be_read_by_an_old_python() -> None:
    """An unsupported Python must get as far as the sentence that says so."""
    import ast

    ast.parse((ROOT / "tools" / "environment.py").read_text(), feature_version=(3, 7))
