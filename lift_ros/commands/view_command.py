"""`lift view`: look back at runs in a browser."""

from __future__ import annotations

import argparse
from pathlib import Path

from lift_ros.errors import UserError
from lift_ros.graph.page_address import DEFAULT_ADDRESS, TOKEN_VARIABLE, Address, choose_token

MOST_RUNS = 4  # side by side


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `lift view`."""
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN", help="runs, shown side by side")
    parser.add_argument(
        "--model", type=Path, nargs="+", default=[], metavar="FILE", help="models whose proposals are shown, too"
    )
    parser.add_argument(
        "--address",
        default=DEFAULT_ADDRESS,
        metavar="HOST:PORT",
        help=f"where; beyond this machine the page asks for a token (default: {DEFAULT_ADDRESS})",
    )


def run(arguments: argparse.Namespace) -> int:
    """Serve the page until Ctrl-C."""
    import os

    from lift_ros.collection.interruption import stop_on_signals
    from lift_ros.page.recorded import RecordedRun
    from lift_ros.page.run_page import ShownModel, declare_run_page
    from lift_ros.page.serving import PageServer
    from lift_ros.policies.learned import load_model

    if len(arguments.runs) > MOST_RUNS:
        raise UserError(f"{len(arguments.runs)} runs are more than fit side by side; give at most {MOST_RUNS}")
    runs = [RecordedRun(path) for path in arguments.runs]
    models = [ShownModel(path.stem, load_model(path)) for path in arguments.model]
    address = Address.parse(arguments.address)
    token = choose_token(address, os.environ.get(TOKEN_VARIABLE, ""))
    server = PageServer(address, token, "lift view", lambda inside: declare_run_page(inside, runs, models))
    with stop_on_signals() as signalled:
        server.start()
        print(f"the page is at {server.address.url(token)} until Ctrl-C", flush=True)
        while not signalled() and not server.join(0.1):
            pass
        server.close()
    return 0
