"""A study that takes a second, and what tests do with studies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

from lift_ros.studies.cell import Cell
from lift_ros.studies.processes import Outcome
from lift_ros.studies.study import Study, load_study
from lift_ros.studies.work import work

SMALL: dict[str, Any] = {
    "description": "A small study.",
    "scenarios": {"easy": {"of": "po-blend-d2", "plant": {"sigma": 0.1}, "episodes": 4, "train_after": 2}},
    "grids": [{"scenario": "easy", "l": [0.1, 0.2], "method": ["CQL", "CQL-SC"], "data": [0, 1], "training": [0, 1]}],
    "options": {"updates": 3, "hidden": "8x8", "batch_size": 16},
    "evaluation": {"contexts": 3, "steps": 5},
}


def write_study(folder: Path, name: str = "small", **changes: Any) -> Path:
    """Write the small study with other sections."""
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump({**SMALL, **changes}, sort_keys=False))
    return path


def small_study(folder: Path, **changes: Any) -> Study:
    return load_study(write_study(folder, **changes))


def here(cells: Sequence[Cell], folder: Path) -> Iterator[Outcome]:
    """Compute cells in this very process: starting others takes longer than a small cell."""
    for cell in cells:
        try:
            yield cell, work(cell, folder)
        except Exception as error:
            yield cell, error


def results_of(folder: Path) -> dict[str, str]:
    """Return what came out of each stored cell, by the name of its file."""
    import json

    return {
        path.name: json.dumps(json.loads(path.read_text())["result"], sort_keys=True)
        for path in (folder / "cells").glob("*.json")
    }
