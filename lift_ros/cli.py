"""The command `lift`: a table of subcommands, each a module of `lift_ros.commands`, imported only when used."""

from __future__ import annotations

import argparse
import importlib
import sys
from typing import Protocol, cast

from lift_ros.errors import UserError

COMMANDS = {
    "doctor": "check this machine and say what is missing",
    "demo": "the whole story in one command",
    "collect": "record episodes of a scenario in process, without ROS",
    "run": "bring up the ROS 2 graph as supervised processes",
    "inspect": "tables, scores and plots of recorded runs",
    "train": "train a policy offline from runs",
    "evaluate": "compare a model with the logging policy and the yardsticks",
    "replay": "publish a run's topics again",
    "import": "turn an existing bag into a run",
    "export": "write a run as Minari dataset or a model as ONNX",
    "report": "write the HTML report of a run",
}


class Command(Protocol):
    """What a module of `lift_ros.commands` offers."""

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Add this command's arguments."""

    def run(self, arguments: argparse.Namespace) -> int:
        """Do the work and return the exit status."""


def _load(name: str) -> Command:
    module = importlib.import_module(f"lift_ros.commands.{name}_command")
    return cast(Command, module)


def build_parser(selected: str | None = None) -> argparse.ArgumentParser:
    """Return the parser; only the selected command's module is imported, so that `lift --help` is quick."""
    parser = argparse.ArgumentParser(prog="lift", description="LIFT: better controllers from the logs you have.")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, summary in COMMANDS.items():
        subparser = subparsers.add_parser(name, help=summary, description=summary)
        if name == selected:
            _load(name).configure(subparser)
    return parser


def _print_error(command: str, sentence: object) -> None:
    from lift_ros.console import print_error  # only now, so that `lift --help` is quick

    print_error(command, sentence)


def main(argv: list[str] | None = None) -> int:
    """Run `lift` and return its exit status."""
    words = sys.argv[1:] if argv is None else argv
    selected = next((word for word in words if not word.startswith("-")), None)
    arguments = build_parser(selected).parse_args(words)
    try:
        return _load(arguments.command).run(arguments)
    except UserError as error:
        _print_error(arguments.command, error)
        return error.exit_status
    except KeyboardInterrupt:
        _print_error(arguments.command, "interrupted")
        return 130


if __name__ == "__main__":
    sys.exit(main())
