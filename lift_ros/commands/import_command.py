"""`lift import`: turn an existing bag into a run."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from lift_ros.bags.importing import import_bag, load_mapping, open_bag
from lift_ros.console import print_warning
from lift_ros.errors import UserError


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `lift import`."""
    parser.add_argument("bag", type=Path, help="rosbag2 directory, .mcap, .db3 or ROS 1 .bag")
    parser.add_argument("--mapping", type=Path, help="YAML file that says which topic and field is what")
    parser.add_argument("--out", type=Path, help="directory of the run to write")
    parser.add_argument("--topics", action="store_true", help="only list the bag's topics, to write a mapping for them")
    parser.add_argument("--json", action="store_true", help="print the report for programs")


def run(arguments: argparse.Namespace) -> int:
    """Import a bag and say what was kept and what was dropped."""
    if arguments.topics:
        with open_bag(arguments.bag) as bag:
            for topic, typename in bag.topics.items():
                print(f"{topic}  {typename}")
        return 0
    if arguments.mapping is None or arguments.out is None:
        raise UserError("--mapping FILE and --out RUN are needed; --topics lists what the bag has")
    report = import_bag(arguments.bag, load_mapping(arguments.mapping), arguments.out)
    if arguments.json:
        print(json.dumps(vars(report)))
        return 0
    outcomes = ", ".join(f"{count} {outcome.replace('_', ' ')}" for outcome, count in report.outcomes.items())
    print(f"{arguments.out}: {report.episodes} episodes ({outcomes}), {report.steps} steps")
    for reason, count in report.dropped.most_common():
        print(f"dropped {count}x {reason}")
    for doubt in report.doubts:
        print_warning("import", doubt)
    return 0
