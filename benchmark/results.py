"""Results of the method: all methods with both draws and the yardsticks beside them, on all scenarios and many seeds.

`python -m benchmark.results [--processes 2] [--scenarios …] [--methods …] [--seeds …]` computes cell after cell and
stores each in docs/results-data.json. Cells that are stored with the present settings are skipped, so that it can be
interrupted and started again, and only what a changed preset or scenario concerns is computed anew.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from benchmark.cells import (
    DATA_SEEDS,
    METHODS,
    SCENARIOS,
    YARDSTICKS,
    Cell,
    Effort,
    all_cells,
    compute,
    fingerprint,
)
from benchmark.results_page import draw, report
from benchmark.timing import RESULTS, replace_section
from lift_ros.progress import Progress

DATA = RESULTS.parent / "results-data.json"
PLOT = RESULTS.parent / "images" / "results.png"
SECTION = "results"
QUICK = Effort(contexts=20, updates=100, episodes=20)
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")

Content = dict[str, Any]


def stored(path: Path) -> dict[str, Content]:
    """Return all cells on disk by name."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def store(path: Path, contents: Mapping[str, Content]) -> None:
    """Add cells to those on disk: sorted, a line each, and at every moment either without or with them."""
    cells = {**stored(path), **contents}
    lines = [
        f"{json.dumps(key, ensure_ascii=False)}: {json.dumps(cells[key], ensure_ascii=False)}" for key in sorted(cells)
    ]
    partial = path.with_suffix(".partial")
    partial.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    partial.replace(path)


def missing(cells: Iterable[Cell], found: Mapping[str, Content]) -> list[Cell]:
    """Return the cells that were not computed yet, or with other settings than today's."""
    return [cell for cell in cells if found.get(cell.name, {}).get("settings") != fingerprint(cell)]


def current(cells: Iterable[Cell], found: Mapping[str, Content]) -> list[Content]:
    """Return what is stored of these cells and made with today's settings."""
    known = list(cells)
    outdated = {cell.name for cell in missing(known, found)}
    return [found[cell.name] for cell in known if cell.name not in outdated]


def batches(cells: Sequence[Cell]) -> list[list[Cell]]:
    """Return the cells in portions that one process computes: neighbours that share recorded episodes."""
    portions: dict[tuple[bool, tuple[str, int]], list[Cell]] = {}
    for cell in cells:
        portions.setdefault((cell.is_main, cell.data), []).append(cell)
    return list(portions.values())


def fill(cells: Sequence[Cell], path: Path, processes: int, effort: Effort) -> None:
    """Compute the cells on so many processes with one thread each, and store them as they come."""
    os.environ.update(ONE_THREAD)  # inherited by the processes, whose libraries read it when they are loaded
    context = multiprocessing.get_context("spawn")
    with (
        tempfile.TemporaryDirectory() as folder,
        ProcessPoolExecutor(processes, mp_context=context) as pool,
        Progress(len(cells), "results", "cells") as progress,
    ):
        jobs = [pool.submit(compute_all, batch, Path(folder), effort) for batch in batches(cells)]
        try:
            for job in as_completed(jobs):
                contents = job.result()
                store(path, contents)
                name, last = list(contents.items())[-1]
                progress.advance(len(contents), f"{name}: success {last['success']:.2f}")
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def compute_all(cells: Sequence[Cell], folder: Path, effort: Effort) -> dict[str, Content]:
    """Compute cells one after the other and return them by name."""
    return {cell.name: compute(cell, folder, effort) for cell in cells}


def publish(path: Path) -> None:
    """Write plot and section from what is stored."""
    contents = current(all_cells(), stored(path))
    if contents:
        draw(contents, PLOT)
        replace_section(RESULTS, SECTION, report(contents))


def is_chosen(cell: Cell, filters: Mapping[str, Sequence[Any] | None]) -> bool:
    """Whether the filters let a cell pass; yardsticks have no seed, so that those of all seeds pass."""
    return all(
        not allowed or getattr(cell, name) in allowed or (name == "seed" and cell.method in YARDSTICKS)
        for name, allowed in filters.items()
    )


def main(arguments: argparse.Namespace) -> int:
    """Fill all cells and publish them; `--quick` tries one scenario in a folder that is thrown away."""
    processes = getattr(arguments, "processes", 2)
    if arguments.quick:
        cells = [cell for cell in all_cells() if cell.scenario == "po-blend-d2" and cell.seed in (0, DATA_SEEDS[0])]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / DATA.name
            fill(cells, path, processes, QUICK)
            print(report(current(cells, stored(path))))
        return 0
    filters = {name: getattr(arguments, f"{name}s", None) for name in ("scenario", "method", "seed")}
    chosen = [cell for cell in all_cells() if is_chosen(cell, filters)]
    wanted = chosen if getattr(arguments, "again", False) else missing(chosen, stored(DATA))
    print(f"{len(chosen)} cells, {len(chosen) - len(wanted)} of them stored", flush=True)
    try:
        if wanted:
            fill(wanted, DATA, processes, Effort())
    finally:
        publish(DATA)
    return 0


def _make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmark.results", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one scenario, few updates; nothing is stored")
    parser.add_argument("--processes", type=int, default=2, help="how many cells at a time, a thread each (default: 2)")
    parser.add_argument("--scenarios", nargs="+", choices=SCENARIOS, metavar="NAME", help="only these scenarios")
    parser.add_argument(
        "--methods",
        nargs="+",
        choices=(*METHODS, *YARDSTICKS),
        metavar="NAME",
        help="only these methods and yardsticks",
    )
    first, last = DATA_SEEDS[0], DATA_SEEDS[-1]
    parser.add_argument(
        "--seeds", nargs="+", type=int, choices=DATA_SEEDS, metavar="SEED", help=f"only these of {first} to {last}"
    )
    parser.add_argument("--again", action="store_true", help="compute the chosen cells even where they are stored")
    return parser


if __name__ == "__main__":
    sys.exit(main(_make_parser().parse_args()))
