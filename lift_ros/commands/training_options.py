"""The options that `lift train` and `lift config` share: how a policy is trained."""

from __future__ import annotations

import argparse
from typing import Any

from lift_ros.errors import UserError
from lift_ros.scenario import Scenario
from lift_ros.shortcuts.rule import PLAIN
from lift_ros.training.options import OPTION_KEYS, PRESETS, TrainingOptions, convert_option, preset


def add_training_options(parser: argparse._ActionsContainer) -> None:
    """Add the shared arguments."""
    parser.add_argument("--preset", choices=tuple(PRESETS), default="fast", help="paper: the paper's hyperparameters")
    parser.add_argument("--algorithm", help="CQL (default), clone (no critic), or any Q-learning algorithm of d3rlpy")
    parser.add_argument("--no-shortcuts", action="store_true", help="train on plain transitions")
    parser.add_argument("--updates", type=int, help="number of updates")
    parser.add_argument("--seed", type=int, help="seed of weights, draws and noise (default: 0)")
    parser.add_argument(
        "--reward",
        choices=OPTION_KEYS["reward"].choices,
        help="of episodes without measured rewards: refuse them (recorded), or label them by the distance to the goal, "
        "once it is known (hindsight, the default unless a scenario says otherwise); measured rewards stay",
    )
    parser.add_argument(
        "--option",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="any other option of docs/options.md; may be given again",
    )


def given_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return what the command line says of training."""
    given = {name: getattr(arguments, name) for name in ("algorithm", "updates", "seed", "reward")}
    changes = {name: value for name, value in given.items() if value is not None}
    if arguments.no_shortcuts:
        changes["strategy"] = PLAIN
    for text in arguments.option:
        name, equals, value = text.partition("=")
        if not equals or not name or not value:
            raise UserError(f"--option {text} is not of the form NAME=VALUE")
        changes[name] = convert_option(name, value)
    return changes


def make_options(arguments: argparse.Namespace, scenario: Scenario | None) -> TrainingOptions:
    """Return preset, scenario and command line merged, in this order."""
    return preset(arguments.preset, scenario, **given_options(arguments))
