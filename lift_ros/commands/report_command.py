"""`lift report`: the HTML page of recorded runs."""

from __future__ import annotations

import argparse
from pathlib import Path

from lift_ros.commands.output_files import check_writable
from lift_ros.evaluation.report import collect_content, text_table, write_report


def configure(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="runs of one scenario, in the order made")
    parser.add_argument(
        "--model", nargs="+", type=Path, default=[], help="models of which the runs alone predict how they will do"
    )
    parser.add_argument("--out", type=Path, default=Path("report.html"), help="the page (default: report.html)")


def run(arguments: argparse.Namespace) -> int:
    """Write the page and print its table."""
    check_writable(arguments.out)
    content = collect_content(arguments.runs, models=arguments.model, out=arguments.out)
    write_report(content, arguments.out)
    print(text_table(content.episodes, content.units.length))
    print(f"report: {arguments.out}")
    return 0
