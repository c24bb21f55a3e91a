"""`lift run`: the graph of the launch files as supervised processes, where `ros2 launch` is not installed."""

from __future__ import annotations

import argparse
from dataclasses import fields
from pathlib import Path

import yaml

from lift_ros.collection.records import Outcome
from lift_ros.console import print_error
from lift_ros.errors import UserError
from lift_ros.graph.parameters import Value
from lift_ros.graph.run import run_graph
from lift_ros.graph.table import HARDWARE, SIMULATOR, GraphOptions
from lift_ros.policies.augmentations import AUGMENTATION_NAMES

GRAPH_OPTIONS = {entry.name for entry in fields(GraphOptions)}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument("--scenario", required=True, help="name of a scenario, or path of a YAML file")
    parser.add_argument(
        "--out", dest="run", type=Path, required=True, metavar="RUN", help="folder of the run, created or continued"
    )
    parser.add_argument("--mode", choices=("collect", "shadow", "evaluate"), default="collect", help="default: collect")
    parser.add_argument("--episodes", type=int, help="episodes in the run (default: the scenario's; 0 for no end)")
    parser.add_argument("--p", type=float, help="probability of an augmented step (default: the scenario's)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the run (default: 0)")
    parser.add_argument("--model", type=Path, help="model that the augmentor serves; then none is trained")
    parser.add_argument("--augmentation", choices=AUGMENTATION_NAMES, help="who augments (default: the scenario's)")
    parser.add_argument(
        "--data",
        type=Path,
        nargs="+",
        default=[],
        metavar="RUN",
        help="runs that the uncertainty model has seen",
    )
    parser.add_argument(
        "--train-after",
        type=int,
        metavar="N",
        help="train on the first N episodes and go on with the model (default: the scenario's; 0 trains none)",
    )
    parser.add_argument(
        "--no-wait",
        dest="wait_for_model",
        action="store_false",
        help="go on collecting while the first model is trained",
    )
    parser.add_argument(
        "--topics", nargs="+", default=[], metavar="TOPIC", help="further topics to record along, for example /force"
    )
    parser.add_argument(
        "--plant", choices=(SIMULATOR, HARDWARE), default=SIMULATOR, help="hardware: your own plant node is running"
    )
    parser.add_argument("--namespace", default="lift", help="namespace of the graph (default: lift)")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NODE.NAME=VALUE",
        help="set a node's parameter, for example augmentor.delay=0.1; may be repeated",
    )
    parser.add_argument("--quiet", action="store_true", help="do not show the nodes' logs")


def run(arguments: argparse.Namespace) -> int:
    """Run the graph; 0 when complete with goals reached, 1 when a node gave up or no episode reached its goal."""
    given = {name: value for name, value in vars(arguments).items() if name in GRAPH_OPTIONS}
    options = GraphOptions(**given | {"parameters": parse_settings(arguments.set)})
    result = run_graph(options, show_logs=not arguments.quiet)
    recorded = sum(result.outcomes.values())
    words = ", ".join(f"{count} {outcome.name.lower().replace('_', ' ')}" for outcome, count in result.outcomes.items())
    print(f"{recorded} episodes recorded in {arguments.run}" + (f": {words}" if words else ""))
    if result.completed and recorded and not result.outcomes.get(Outcome.REACHED):
        print_error("run", "no episode reached its goal; lift inspect shows why they ended")
        return 1
    return 0


def parse_settings(words: list[str]) -> dict[str, dict[str, Value]]:
    """Turn `node.name=value` words into parameters by node; values are read as YAML."""
    settings: dict[str, dict[str, Value]] = {}
    for word in words:
        target, equals, text = word.partition("=")
        node, dot, name = target.partition(".")
        if not (equals and dot and node and name):
            raise UserError(f"--set {word!r} is not of the form NODE.NAME=VALUE, for example augmentor.delay=0.1")
        settings.setdefault(node, {})[name] = yaml.safe_load(text)
    return settings
