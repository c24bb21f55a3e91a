"""`lift replay`: publish a run's topics again, where `ros2 bag play` is not installed."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from lift_ros.errors import UserError


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `lift replay`."""
    parser.add_argument("run", type=Path, help="directory of a run, or one .mcap file")
    parser.add_argument("--rate", type=float, default=1.0, metavar="X", help="times the original speed (default 1)")
    parser.add_argument("--topics", nargs="+", metavar="TOPIC", help="only these (default: all)")
    parser.add_argument("--loop", action="store_true", help="begin again at the end, until Ctrl-C")
    parser.add_argument("--prefix", default="", help="put before every topic, to stay out of a running graph's way")
    parser.add_argument(
        "--wait", type=float, default=1.0, metavar="S", help="wait so long for listeners (default 1 second)"
    )
    parser.add_argument("--longest-pause", type=float, metavar="S", help="shorten longer pauses to this many seconds")


def run(arguments: argparse.Namespace) -> int:
    """Replay a run and say what was published."""
    try:
        from lift_ros.nodes.replay_node import replay
    except ImportError as error:
        raise UserError(f"replaying needs ROS 2, which cannot be imported ({error}); run `lift doctor`") from error
    names = ("rate", "topics", "loop", "prefix", "wait", "longest_pause")
    report = replay(arguments.run, **{name: getattr(arguments, name) for name in names})
    for topic, count in report.published.items():
        print(f"{arguments.prefix}{topic}: {count} messages")
    for topic, reason in report.skipped.items():
        print(f"skipped {topic}: {reason}", file=sys.stderr)
    return 0
