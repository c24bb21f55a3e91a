"""A real bash completes commands, options, their values, scenario names and files."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from lift_ros.cli import COMMANDS, build_parser
from lift_ros.commands.completion_command import completion_script
from lift_ros.scenario import scenario_names

SCRIPT = completion_script("bash", build_parser)


def completed(folder: Path, line: str) -> set[str]:
    """Return what bash offers for the last word of a line, which may be empty."""
    words = line.split(" ")
    program = (
        f"{SCRIPT}\nCOMP_WORDS=({shlex.join(words)}); COMP_CWORD={len(words) - 1}; _lift\n"
        'for word in "${COMPREPLY[@]}"; do echo "$word"; done'
    )
    command = ["bash", "--norc", "-c", program]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr == ""
    return set(done.stdout.splitlines())


def test_commands(tmp_path: Path) -> None:
    assert completed(tmp_path, "lift ") == {*COMMANDS, "--help", "--version"}
    assert completed(tmp_path, "lift co") == {"collect", "config", "completion"}


def test_options_and_their_values(tmp_path: Path) -> None:
    assert completed(tmp_path, "lift run --ep") == {"--episodes"}
    assert completed(tmp_path, "lift run --mode ") == {"collect", "shadow", "evaluate", "assist"}
    assert completed(tmp_path, "lift run --episodes ") == set()
    assert completed(tmp_path, "lift train run --pre") == {"--preset"}
    assert completed(tmp_path, "lift completion ") == {"bash", "zsh"}


def test_scenarios_and_files(tmp_path: Path) -> None:
    (tmp_path / "my rig.yaml").touch()
    (tmp_path / "walk").mkdir()
    assert completed(tmp_path, "lift collect --scenario po-b") == {"po-blend-d2", "po-blend-d5"}
    assert completed(tmp_path, "lift config ") == {*scenario_names(), "my rig.yaml", "walk"}
    assert completed(tmp_path, "lift inspect w") == {"walk"}


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
def test_zsh_takes_the_script(tmp_path: Path) -> None:
    program = f"{completion_script('zsh', build_parser)}\nprint ${{+functions[_lift]}} ${{_comps[lift]}}"
    done = subprocess.run(
        ["zsh", "-f", "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.startswith("1 ")
    assert "_lift" in done.stdout
