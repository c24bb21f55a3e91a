"""`lift run`: the graph of the launch files as supervised processes, where `ros2 launch` is not installed."""

from __future__ import annotations

import argparse
from dataclasses import fields
from pathlib import Path

from lift_ros.bags.reader import RunReader
from lift_ros.collection.records import Outcome
from lift_ros.commands.collection_options import add_collection_options, check_collection_options, full_run
from lift_ros.commands.page_options import add_page_options
from lift_ros.console import print_error
from lift_ros.errors import UserError
from lift_ros.evaluation.guard_summary import Change, guard_changes
from lift_ros.graph.parameters import Value
from lift_ros.graph.run import run_graph
from lift_ros.graph.table import HARDWARE, SIMULATOR, GraphOptions
from lift_ros.nodes.sourced import require_ros
from lift_ros.untrusted import brief, parse_yaml

GRAPH_OPTIONS = {entry.name for entry in fields(GraphOptions)}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    add_collection_options(parser)
    parser.add_argument(
        "--out", dest="run", type=Path, required=True, metavar="RUN", help="folder of the run, created or continued"
    )
    parser.add_argument(
        "--no-wait", dest="wait_for_model", action="store_false", help="collect on while the first model is trained"
    )
    parser.add_argument(
        "--topics", nargs="+", default=[], metavar="TOPIC", help="further topics to record along, for example /force"
    )
    parser.add_argument(
        "--plant", choices=(SIMULATOR, HARDWARE), default=SIMULATOR, help="hardware: your own plant node is running"
    )
    parser.add_argument("--namespace", default="lift", help="namespace of the graph (default: lift)")
    add_page_options(parser)
    parser.add_argument(
        "--isolated", action="store_true", help="give the graph a network of its own, which nobody else can join"
    )
    example = "set a node's parameter, for example augmentor.delay=0.1; may be repeated"
    parser.add_argument("--set", action="append", default=[], metavar="NODE.NAME=VALUE", help=example)


def run(arguments: argparse.Namespace) -> int:
    """Run the graph; 0 when complete with goals reached, 1 when a node gave up or episodes or goals are missing."""
    require_ros()
    check_collection_options(arguments)
    given = {name: value for name, value in vars(arguments).items() if name in GRAPH_OPTIONS}
    options = GraphOptions(**given | {"parameters": node_parameters(arguments)})
    result = run_graph(options, isolated=arguments.isolated, show_logs=not arguments.quiet)
    if result.full:
        print(full_run(arguments.run, result.recorded, result.wanted))
        return 0
    recorded = sum(result.outcomes.values())
    words = ", ".join(f"{count} {outcome.name.lower().replace('_', ' ')}" for outcome, count in result.outcomes.items())
    print(f"{recorded} episodes recorded in {arguments.run}" + (f": {words}" if words else ""))
    for change in _guard_changes(arguments.run)[-1:]:
        print(change)
    if result.short:
        print_error("run", f"{result.short} of {result.wanted} episodes are missing, for the arbiter ended before")
        return 1
    if result.completed and recorded and not result.outcomes.get(Outcome.REACHED):
        print_error("run", "no episode reached its goal; lift inspect shows why they ended")
        return 1
    return 0


def _guard_changes(run: Path) -> list[Change]:
    reader = RunReader(run) if run.exists() else None
    return [] if reader is None or not reader.facts.get("guard") else guard_changes(reader.facts, reader)


def node_parameters(arguments: argparse.Namespace) -> dict[str, dict[str, Value]]:
    """Return what the command line says of single nodes by node; --set says it of any parameter and counts."""
    settings = parse_settings(arguments.set)
    if arguments.compression is not None:
        settings.setdefault("recorder", {}).setdefault("compression", arguments.compression)
    return settings


def parse_settings(words: list[str]) -> dict[str, dict[str, Value]]:
    """Turn `node.name=value` words into parameters by node; values are read as YAML."""
    settings: dict[str, dict[str, Value]] = {}
    for word in words:
        target, equals, text = word.partition("=")
        node, dot, name = target.partition(".")
        if not (equals and dot and node and name):
            raise UserError(f"--set {brief(word)} is not of the form NODE.NAME=VALUE, for example augmentor.delay=0.1")
        try:
            settings.setdefault(node, {})[name] = parse_yaml(text)
        except ValueError as error:
            raise UserError(f"--set {brief(word)} has a value that is not valid YAML: {error}") from error
    return settings
