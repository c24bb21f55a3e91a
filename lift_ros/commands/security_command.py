"""`lift security`: print the SROS 2 policy of a graph, from which `ros2 security` makes keys and permissions."""

from __future__ import annotations

import argparse

from lift_ros.graph.table import check_namespace


def configure(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument("--namespace", default="lift", help="namespace of the graph (default: lift)")
    parser.add_argument(
        "--plant",
        nargs="+",
        default=["positioning_simulator", "fetch_simulator"],
        metavar="NODE",
        help="names of your plant nodes (default: the simulators)",
    )
    parser.add_argument(
        "--topics", nargs="+", default=[], metavar="TOPIC", help="further topics to record along, for example /force"
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the policy."""
    from lift_ros.nodes.sourced import require_ros

    require_ros()
    check_namespace(arguments.namespace)
    from lift_ros.graph.security import make_policy

    print(make_policy(arguments.namespace, arguments.plant, arguments.topics), end="")
    return 0
