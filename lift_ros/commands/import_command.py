"""`lift import`: turn an existing bag into a run."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

from lift_ros.bags.importing import import_bag, load_mapping, open_bag, propose_mapping, summarise_topics
from lift_ros.console import fold, for_programs, print_warning
from lift_ros.errors import UserError

PROPOSAL = Path("mapping.yaml")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `lift import`."""
    parser.add_argument("bag", type=Path, help="rosbag2 directory, .mcap, .db3 or ROS 1 .bag")
    parser.add_argument("--mapping", type=Path, help="YAML file that says which topic and field is what")
    parser.add_argument("--out", type=Path, help="directory of the run to write")
    parser.add_argument(
        "--topics",
        action="store_true",
        help=f"show what the bag holds and write a mapping to edit (--mapping, default: {PROPOSAL})",
    )
    parser.add_argument("--json", action="store_true", help="print the report for programs")


def run(arguments: argparse.Namespace) -> int:
    """Import a bag and say what was kept and what was dropped."""
    if arguments.topics:
        return _show_topics(arguments)
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


def _show_topics(arguments: argparse.Namespace) -> int:
    """Print what the bag holds and write a first mapping, but never over a file that is there."""
    path = arguments.mapping or PROPOSAL
    with open_bag(arguments.bag) as bag:
        topics = summarise_topics(bag)
        if arguments.json:
            print(json.dumps(for_programs([asdict(topic) for topic in topics])))
        else:
            for topic in topics:
                print(fold(f"{topic.topic}  {topic.about()}", "    "))
                print(fold(f"    {topic.content()}", "    "))
        if path.exists():
            print(f"{path} exists and was left as it is; --mapping FILE writes a new one", file=sys.stderr)
            return 0
        mapping = propose_mapping(bag, topics)
    try:
        path.write_text(mapping, encoding="utf-8")
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}; name another file with --mapping") from error
    following = f"lift import {arguments.bag} --mapping {path} --out RUN"
    print(f"{path} written: check every line of it, then {following}", file=sys.stderr)
    return 0
