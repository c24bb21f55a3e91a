"""Cells on processes of this machine: one thread each, and a process that dies takes no cell with it."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import TypeAlias

from lift_ros.processes import end_with_parent, environment_with, spawned_safely
from lift_ros.studies.cell import Cell, Result
from lift_ros.studies.work import ONE_THREAD, work

MOST_DEATHS = 3  # of processes that had a cell under way, before it counts as failed
Outcome: TypeAlias = tuple[Cell, Result | Exception]


def on_processes(cells: Sequence[Cell], folder: Path, count: int) -> Iterator[Outcome]:
    """Compute cells on so many processes and yield each with its result, or with what went wrong."""
    deaths: dict[str, int] = {}
    waiting = list(cells)
    with environment_with(ONE_THREAD), spawned_safely():  # which libraries read when they are loaded
        while waiting:
            finished: set[str] = set()
            for cell, outcome in _until_a_death(waiting, folder, count):
                if isinstance(outcome, BrokenProcessPool):
                    deaths[cell.fingerprint] = deaths.get(cell.fingerprint, 0) + 1
                    if deaths[cell.fingerprint] < MOST_DEATHS:
                        continue
                finished.add(cell.fingerprint)
                yield cell, outcome
            waiting = [cell for cell in waiting if cell.fingerprint not in finished]


def _until_a_death(cells: Sequence[Cell], folder: Path, count: int) -> Iterator[Outcome]:
    """Yield outcomes until all are there or a process has died; then those under way end with BrokenProcessPool."""
    context = multiprocessing.get_context("spawn")
    upcoming = iter(cells)
    under_way: dict[Future[Result], Cell] = {}
    with ProcessPoolExecutor(count, mp_context=context, initializer=_begin) as pool:
        try:
            while True:
                while len(under_way) < count and (cell := next(upcoming, None)) is not None:
                    under_way[pool.submit(work, cell, folder)] = cell
                if not under_way:
                    return
                done, _ = wait(under_way, return_when=FIRST_COMPLETED)
                broken = False
                for future in done:
                    error = future.exception()
                    broken |= isinstance(error, BrokenProcessPool)
                    yield under_way.pop(future), error if isinstance(error, Exception) else future.result()
                if broken:
                    return
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _begin() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that hands out cells
    end_with_parent(signal.SIGKILL)
