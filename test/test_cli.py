"""The command itself: its version, its suggestions, and an end without noise where nobody reads on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from sample_run import drive, write_run

import lift_ros
from lift_ros.cli import COMMANDS, build_parser, main
from lift_ros.commands.run_command import node_parameters, parse_settings
from lift_ros.errors import UserError

WAIT_S = 120


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert (ended.value.code, capsys.readouterr().out) == (0, f"lift_ros {lift_ros.__version__}\n")


def test_an_unknown_command_suggests_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspct", "run"]) == 2
    assert capsys.readouterr().err == "lift: unknown command 'inspct'; did you mean 'inspect'?\n"


def test_an_unknown_option_suggests_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["collect", "--scenario", "po-none-d2", "--out", "run", "--episods=3"])
    assert ended.value.code == 2
    assert "--episods=3; did you mean '--episodes'?" in capsys.readouterr().err


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command: str) -> None:
    parser = build_parser(command)
    assert command in parser.format_help()


@pytest.mark.parametrize(
    "words", [["--help"], ["run", "--help"], ["scenarios"], ["inspect", "RUN", "--all"], ["config"]]
)
def test_a_reader_that_goes_away_ends_it_without_noise(tmp_path: Path, words: list[str]) -> None:
    run = write_run(tmp_path / "run", [drive(index, 3) for index in range(5)])
    command = [sys.executable, "-m", "lift_ros.cli", *(str(run) if word == "RUN" else word for word in words)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    with process.stderr as errors:
        said = errors.read()
    assert said == ""
    # Where output is not buffered, argparse itself ignores that its help cannot be written.
    assert process.wait(WAIT_S) in ({0, 141} if "--help" in words else {141})


def test_run_and_collect_mean_the_same_by_episodes() -> None:
    helps = []
    for command in ("run", "collect"):
        table = next(action for action in build_parser(command)._actions if action.dest == "command")
        parser = table.choices[command]  # type: ignore[index,call-overload]
        helps.append(next(action.help for action in parser._actions if action.dest == "episodes"))
    assert helps[0] == helps[1]
    assert "those that are there already included" in str(helps[0])


@pytest.mark.parametrize("path", ["a\0b", "x" * 300, "d/" * 3000])
def test_paths_that_no_file_can_have_are_refused(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["collect", "--scenario", "po-none-d2", "--out", path]) == 2
    assert "cannot be used: its name" in " ".join(capsys.readouterr().err.split())


def test_a_value_that_is_no_yaml_is_refused() -> None:
    with pytest.raises(UserError, match=r"--set 'arbiter.p=\[1' has a value that is not valid YAML"):
        parse_settings(["arbiter.p=[1"])


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], {}),
        (["--compression", "zstd"], {"recorder": {"compression": "zstd"}}),
        (["--compression", "zstd", "--set", "recorder.compression=none"], {"recorder": {"compression": "none"}}),
    ],
)
def test_lift_run_tells_the_recorder_how_to_compress(words: list[str], expected: dict[str, dict[str, str]]) -> None:
    arguments = build_parser("run").parse_args(["run", "--scenario", "po-none-d2", "--out", "run", *words])
    assert node_parameters(arguments) == expected
