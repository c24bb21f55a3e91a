"""`lift doctor`: a table of what this machine has, the remedy for what it lacks, and whether collecting can start."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from lift_ros.commands.doctor_checks import BAD, Finding, examine
from lift_ros.console import fold

INDENT = " " * 24


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("--json", action="store_true", help="for programs: one JSON object instead of the table")
    parser.add_argument(
        "--bags", type=Path, default=Path("."), help="folder for bags, to look for free disk (default: .)"
    )


def as_line(finding: Finding) -> str:
    """Return one line of the table, and a second one for the remedy; each folded below its column."""
    line = fold(f"{finding.status:<5} {finding.name:<17} {finding.found}", INDENT)
    return line + ("\n" + fold(f"{INDENT}→ {finding.remedy}", f"{INDENT}  ") if finding.remedy else "")


def run(arguments: argparse.Namespace) -> int:
    """Print what was found; 0 where collecting can start, else 1."""
    findings = []
    for finding in examine(arguments.bags):
        findings.append(finding)
        if not arguments.json:
            print(as_line(finding), flush=True)
    ready = all(finding.status != BAD for finding in findings)
    if arguments.json:
        print(json.dumps({"can_collect": ready, "checks": [asdict(finding) for finding in findings]}, indent=2))
    else:
        print("Collecting can start." if ready else "Collecting cannot start: see the lines marked `bad`.")
    return 0 if ready else 1
