"""The command `lift`: a table of subcommands, each a module of `lift_ros.commands`, imported only when used."""

from __future__ import annotations

import argparse
import importlib
import sys
from types import ModuleType

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


def _load(name: str) -> ModuleType:
    """Return the module of a command: `configure` adds its arguments, `run` does the work and returns the status."""
    return importlib.import_module(f"lift_ros.commands.{name}_command")


def build_parser(selected: str | None = None) -> argparse.ArgumentParser:
    """Return the parser; only the selected command's module is imported, so that `lift --help` is quick."""
    parser = argparse.ArgumentParser(prog="lift", description="LIFT: better controllers from the logs you have.")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, summary in COMMANDS.items():
        subparser = subparsers.add_parser(name, help=summary, description=summary)
        if name == selected:
            _load(name).configure(subparser)
    return parser


def main(argv: list[str] | None = None) -> int:
    """Run `lift` and return its exit status."""
    words = sys.argv[1:] if argv is None else argv
    selected = next((word for word in words if not word.startswith("-")), None)
    arguments = build_parser(selected).parse_args(words)
    try:
        return int(_load(arguments.command).run(arguments))
    except (UserError, KeyboardInterrupt) as error:
        from lift_ros.console import print_error  # only now, so that `lift --help` is quick

        sentence, status = (error, error.exit_status) if isinstance(error, UserError) else ("interrupted", 130)
        print_error(arguments.command, sentence)
        return status


if __name__ == "__main__":
    sys.exit(main())
