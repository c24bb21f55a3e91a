"""What a worker does: compute one cell from its settings, store it and hand it back."""

from __future__ import annotations

import importlib
import os
import platform
import time
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

import lift_ros
from lift_ros.studies.cell import Cell, Result
from lift_ros.studies.store import Store

# Set before the libraries are loaded: with more threads sums are added up in another order.
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
MEASURES: Mapping[str, tuple[str, str]] = {
    "policies": ("lift_ros.studies.policy_cells", "measure_policy"),
    "data": ("lift_ros.studies.policy_cells", "measure_data"),
    "walk": ("lift_ros.studies.walk_cells", "measure_walk"),
    "C": ("lift_ros.studies.walk_cells", "measure_constants"),
    "values": ("lift_ros.studies.walk_cells", "measure_values"),
    "paths": ("lift_ros.studies.walk_cells", "measure_paths"),
}


def work(cell: Cell, folder: str | Path) -> Result:
    """Compute a cell, store it in the folder and return it; one that is there is returned as it is."""
    store = Store(folder)
    found = store.find(cell)
    if found is not None:
        return found
    started, busy = time.time(), time.process_time()
    module, name = MEASURES[cell.settings["measure"]]
    measured: dict[str, Any] = getattr(importlib.import_module(module), name)(cell.settings, cell.places, store)
    made = {
        "seconds": round(time.time() - started, 2),
        "cpu_seconds": round(time.process_time() - busy, 2),
        "cores": os.cpu_count(),
        "machine": platform.machine(),
        "versions": {
            "lift_ros": lift_ros.__version__,
            "python": platform.python_version(),
            "numpy": np.__version__,
            "torch": version("torch"),
        },
    }
    result = Result(cell.settings, measured, made)
    store.keep(cell, result)
    return result
