"""`lift scenarios`: the scenarios that come along, or a folder's own, with their sizes."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

from lift_ros.console import fold, print_error
from lift_ros.errors import UserError
from lift_ros.scenario import Scenario, config_folder, load_scenario, scenario_files

_NAME_WIDTH, _SIZES_WIDTH = 22, 16


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `lift scenarios`."""
    parser.add_argument("folders", type=Path, nargs="*", metavar="FOLDER", help="also list the scenario files in these")
    parser.add_argument("--names", action="store_true", help="print names and files only, one per line")
    parser.add_argument("--json", action="store_true", help="print everything for programs")


def run(arguments: argparse.Namespace) -> int:
    """List scenarios; 2 where a file that wants to be one is wrong, after all others are listed."""
    shipped = config_folder()
    files = [*scenario_files(shipped), *(path for folder in arguments.folders for path in _own_files(folder))]
    found: dict[str, Scenario] = {}
    status = 0
    for path in files:
        try:
            found[path.stem if path.parent == shipped else str(path)] = load_scenario(path)
        except UserError as error:
            print_error("scenarios", error)
            status = error.exit_status
    if arguments.json:
        print(json.dumps({name: _facts(scenario) for name, scenario in found.items()}))
    elif arguments.names:
        print("\n".join(found))
    else:
        for name, scenario in found.items():
            print(_line(name, scenario))
        print("\nN → M: entries of an observation and of an action; λ: the longest action")
    return status


def _own_files(folder: Path) -> Iterator[Path]:
    if not folder.is_dir():
        raise UserError(f"{folder} is no folder; name one with scenario files, as docs/your-own-rig.md describes them")
    yield from scenario_files(folder)


def _line(name: str, scenario: Scenario) -> str:
    sizes = f"{scenario.observation_size} → {scenario.action_size}, λ {scenario.action_radius:g}"
    indent = " " * (_NAME_WIDTH + _SIZES_WIDTH)
    return fold(f"{name:<{_NAME_WIDTH - 1}} {sizes:<{_SIZES_WIDTH - 1}} {scenario.description}", indent)


def _facts(scenario: Scenario) -> dict[str, str | int | float]:
    return {
        "plant": scenario.plant.kind,
        "observation_size": scenario.observation_size,
        "action_size": scenario.action_size,
        "action_radius": scenario.action_radius,
        "description": scenario.description,
    }
