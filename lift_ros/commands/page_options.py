"""The options of commands that serve the operator's page."""

from __future__ import annotations

import argparse

from lift_ros.graph.page_address import DEFAULT_ADDRESS


def add_page_options(parser: argparse.ArgumentParser) -> None:
    """Add --page and where it listens."""
    parser.add_argument("--page", action="store_true", help="serve a web page to watch the run and to stop it")
    parser.add_argument(
        "--page-address",
        default=DEFAULT_ADDRESS,
        metavar="HOST:PORT",
        help=f"where; beyond this machine the page asks for a token (default: {DEFAULT_ADDRESS})",
    )
