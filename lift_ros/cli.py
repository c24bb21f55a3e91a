"""The command `lift`: a table of subcommands, each a module of `lift_ros.commands`, imported only when used."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import NoReturn

from lift_ros import __version__
from lift_ros.errors import UserError
from lift_ros.processes import heed_interrupts

COMMANDS = {
    "doctor": "check this machine and say what is missing",
    "demo": "the whole story in one command",
    "rig": "check a rig of your own, or move it by hand",
    "scenarios": "list the scenarios that come along, or those of a folder",
    "config": "show which settings are in force and where they come from",
    "collect": "record episodes of a scenario in process, without ROS",
    "run": "bring up the ROS 2 graph as supervised processes",
    "inspect": "tables, scores and plots of recorded runs; what a model file says",
    "train": "train a policy offline from runs",
    "evaluate": "compare a model with the logging policy and the yardsticks",
    "replay": "publish a run's topics again",
    "import": "turn an existing bag into a run",
    "export": "write runs for Minari, LeRobot or Rerun, or a model as ONNX",
    "study": "compute a grid of experiments, on processes or a Ray cluster",
    "report": "write the HTML report of a run",
    "view": "look back at runs in a browser, step by step",
    "security": "print the SROS 2 policy of a graph, for DDS security",
    "completion": "print what makes bash or zsh complete commands, options and scenarios",
}
_UNKNOWN_OPTION = "unrecognized arguments: "  # how argparse begins what it says of it
_READER_GONE = 128 + 13  # what a shell reports of a program that SIGPIPE ended


class Parser(argparse.ArgumentParser):
    """A parser whose errors suggest the nearest command or option."""

    def error(self, message: str) -> NoReturn:
        """End with the message, and with what was probably meant."""
        from lift_ros.configuration import nearest  # only now, so that `lift --help` is quick

        if message.startswith(f"{_UNKNOWN_OPTION}--"):
            word = message.removeprefix(_UNKNOWN_OPTION).split()[0].partition("=")[0]
            message += f"; {nearest(word, self._long_options())}"
        super().error(message)

    def _long_options(self) -> set[str]:
        """Return the options of this parser and of its command's."""
        parsers: list[argparse.ArgumentParser] = [self]
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):
                parsers += action.choices.values()
        words = {word for parser in parsers for action in parser._actions for word in action.option_strings}
        return {word for word in words if word.startswith("--")}


def _load(name: str) -> ModuleType:
    """Return the module of a command: `configure` adds its arguments, `run` does the work and returns the status."""
    return importlib.import_module(f"lift_ros.commands.{name}_command")


def build_parser(selected: str | None = None) -> argparse.ArgumentParser:
    """Return the parser; only the selected command's module is imported, so that `lift --help` is quick."""
    parser = Parser(prog="lift", description="LIFT: better controllers from the logs you have.")
    parser.set_defaults(build_parser=build_parser)  # for `lift completion`, which describes all commands
    parser.add_argument("--version", action="version", version=f"lift_ros {__version__}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, summary in COMMANDS.items():
        subparser = subparsers.add_parser(name, help=summary, description=summary)
        if name == selected:
            _load(name).configure(subparser)
    return parser


def main(argv: list[str] | None = None) -> int:
    """Run `lift` and return its exit status; where nobody reads its output any more, as with `| head`, it just ends."""
    heed_interrupts()
    try:
        try:
            return _run(sys.argv[1:] if argv is None else argv)
        finally:
            sys.stdout.flush()  # what cannot be written is to be noticed here, not when Python ends
    except BrokenPipeError:
        _forget_unwritten()
        return _READER_GONE


def _run(words: list[str]) -> int:
    selected = next((word for word in words if not word.startswith("-")), None)
    try:
        if selected is not None and selected not in COMMANDS:
            from lift_ros.configuration import nearest

            raise UserError(f"unknown command {selected!r}; {nearest(selected, COMMANDS)}")
        arguments = build_parser(selected).parse_args(words)
        _check_paths(arguments)
        return int(_load(arguments.command).run(arguments))
    except (UserError, KeyboardInterrupt) as error:
        sentence, status = (str(error), error.exit_status) if isinstance(error, UserError) else ("interrupted", 130)
        return _say(selected, sentence, status)
    except BrokenPipeError:
        raise
    except OSError as error:  # what the system refuses is no fault of ours: a full disk, a folder of somebody else
        place = f" {error.filename}" if error.filename is not None else ""
        return _say(selected, f"the system refuses{place}: {error.strerror or error}", UserError.exit_status)

    except ModuleNotFoundError as error:
        return _tell_missing(selected, error)


def _tell_missing(command: str | None, error: ModuleNotFoundError) -> int:
    """Say which library a command lacks, without any library; what is no library of the table is a fault of ours."""
    from lift_ros.graph.roles import LIBRARIES, explain_missing

    library = (error.name or "").partition(".")[0]
    if library not in LIBRARIES:
        raise error
    told = explain_missing("it", [library])
    print(f"lift {command}: {told}", file=sys.stderr)
    return told.exit_status


def _say(selected: str | None, sentence: str, status: int) -> int:
    """Print why a command ends and return its status."""
    from lift_ros.console import print_error  # only now, so that `lift --help` is quick

    print_error(selected if selected in COMMANDS else "", sentence)
    return status


def _check_paths(arguments: argparse.Namespace) -> None:
    """Refuse paths that no file can have, in the words of the command line."""
    from lift_ros.untrusted import brief, check_path  # only now, so that `lift --help` is quick

    for name, value in vars(arguments).items():
        for path in value if isinstance(value, list) else [value]:
            try:
                if isinstance(path, Path):
                    check_path(path)
            except OSError as error:
                raise UserError(f"{name} {brief(str(path))} cannot be used: {error.strerror}") from error


def _forget_unwritten() -> None:
    """Let what is still buffered vanish instead of failing once more when Python ends."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            with contextlib.suppress(OSError), open(os.devnull, "w") as nowhere:
                os.dup2(nowhere.fileno(), stream.fileno())


if __name__ == "__main__":
    sys.exit(main())
