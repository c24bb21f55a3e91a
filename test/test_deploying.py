"""The service that docs/deploying.md prints starts what the page's other commands start."""

from __future__ import annotations

import configparser
import shlex

from page import DOCS, blocks

from lift_ros.cli import build_parser


def test_the_service_runs_a_command_that_lift_understands() -> None:
    (block,) = (block for block in blocks(DOCS / "deploying.md", "## 1. One command") if block.language == "ini")
    unit = configparser.ConfigParser(interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string(block.text)
    shell, flag, script = shlex.split(unit["Service"]["ExecStart"])
    assert (shell, flag) == ("/bin/bash", "-c")
    *setup, command = script.split(" && ")
    assert setup == ["source venv/bin/activate", "source install/setup.bash"]
    words = shlex.split(command)
    assert words[:2] == ["exec", "lift"]
    given = build_parser("run").parse_args(words[2:])
    assert (given.mode, given.plant, given.episodes, given.quiet) == ("assist", "hardware", 0, True)
    assert unit["Service"]["KillMode"] == "mixed"
