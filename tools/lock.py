"""Writes requirements/<distribution>.lock: every package of an environment with its version, as pip resolves them."""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import tomllib

ROOT = Path(__file__).resolve().parent.parent
REQUIREMENTS = ROOT / "requirements"


def build_requirements() -> list[str]:
    """Return what building the messages takes, as pyproject.toml says."""
    with (ROOT / "pyproject.toml").open("rb") as stream:
        requires: list[str] = tomllib.load(stream)["build-system"]["requires"]
    return requires


def locked_lines(report: dict[str, list[dict[str, dict[str, str]]]]) -> list[str]:
    """Return `name==version` of every package in pip's report, without the index's own suffixes such as +cpu."""
    pins = {}
    for entry in report["install"]:
        name = re.sub(r"[-_.]+", "-", entry["metadata"]["name"]).lower()
        pins[name] = entry["metadata"]["version"].split("+")[0]
    return [f"{name}=={version}" for name, version in sorted(pins.items())]


def resolve(distribution: str) -> list[str]:
    """Return the complete list of pins for a distribution."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--no-input", "--quiet"]
        command += ["--report", str(report), "-r", str(REQUIREMENTS / f"{distribution}.txt"), *build_requirements()]
        subprocess.run(command, check=True)
        return locked_lines(json.loads(report.read_text()))


def main() -> int:
    """Write the lock of one distribution."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("distribution", choices=sorted(path.stem for path in REQUIREMENTS.glob("*.lock")))
    distribution = parser.parse_args().distribution
    target = REQUIREMENTS / f"{distribution}.lock"
    head = (
        f"# Written by `make lock ROS_DISTRO={distribution}` from {distribution}.txt and pyproject.toml; do not edit."
    )
    target.write_text("\n".join([head, *resolve(distribution)]) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
