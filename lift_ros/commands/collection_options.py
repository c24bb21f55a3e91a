"""The options that `lift collect` and `lift run` share: what is collected, and who augments it."""

from __future__ import annotations

import argparse
from pathlib import Path

from lift_ros.collection.plan import MODES, OFF, ON
from lift_ros.collection.records import COMPRESSIONS
from lift_ros.configuration import MOST, Key, check_value
from lift_ros.errors import UserError
from lift_ros.policies.augmentations import AUGMENTATION_NAMES

_NUMBERS = {
    "seed": Key(int, low=0, high=2**63 - 1),
    "episodes": Key(int, low=0, high=MOST),
    "train_after": Key(int, low=0, high=MOST),
    "budget": Key(int, low=0, high=MOST),
}


def check_collection_options(arguments: argparse.Namespace) -> None:
    """Refuse numbers that cannot be meant, in the words of the command line, before anything is created or started."""
    for name, key in _NUMBERS.items():
        if getattr(arguments, name, None) is not None:
            check_value(f"--{name.replace('_', '-')}", getattr(arguments, name), key)
    if arguments.p is not None and not 0 <= arguments.p <= 1:
        percent = f"; {arguments.p:g} % is --p {arguments.p / 100:g}" if 1 < arguments.p <= 100 else ""
        raise UserError(f"--p is {arguments.p:g}; allowed: between 0 and 1, it is a probability{percent}")


def full_run(run: Path, recorded: int, wanted: int) -> str:
    """Return why nothing is added to a run, and what would."""
    return f"{run} is full: {recorded} episodes are recorded and {wanted} wanted; a higher --episodes adds to it"


def add_collection_options(parser: argparse.ArgumentParser) -> None:
    """Add the shared arguments."""
    parser.add_argument("--scenario", required=True, metavar="NAME", help="name or YAML file of the scenario")
    parser.add_argument(
        "--episodes",
        type=int,
        metavar="N",
        help="episodes in the run, those that are there already included (default: the scenario's); lift run takes 0 "
        "for no end",
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of the run (default: 0)")
    parser.add_argument("--mode", choices=MODES, default="collect", help="who acts (default: collect)")
    packing = "compress finished files without loss; worth it for pictures (default: none)"
    parser.add_argument("--compression", choices=COMPRESSIONS, help=packing)
    parser.add_argument("--quiet", action="store_true", help="show neither progress nor the logs of nodes")
    lift = parser.add_argument_group("augmented collection (LIFT)")
    lift.add_argument("--model", type=Path, metavar="FILE", help="this model is the augmentor; then none is trained")
    lift.add_argument("--augmentation", choices=AUGMENTATION_NAMES, help="or one trained on the way, or a random one")
    lift.add_argument("--p", type=float, help="probability of an augmented step (default: the scenario's)")
    lift.add_argument(
        "--train-after", type=int, metavar="N", help="train or fit it on the first N episodes (default: the scenario's)"
    )
    guarded = "lower p and budget where augmented episodes are worse than the routine's (default: the scenario's, on)"
    lift.add_argument("--guard", choices=(ON, OFF), help=guarded)
    lift.add_argument(
        "--data", type=Path, nargs="+", default=[], metavar="RUN", help="or fit the uncertainty model to these runs"
    )
