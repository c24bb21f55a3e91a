"""A study under way: what is stored is skipped, the rest is computed in the study's order and stored as it comes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lift_ros.errors import UserError
from lift_ros.progress import Progress
from lift_ros.studies.cell import Cell, Result
from lift_ros.studies.metrics import Row
from lift_ros.studies.processes import Outcome, on_processes
from lift_ros.studies.store import Store
from lift_ros.studies.study import Study

Executor = Callable[[Sequence[Cell], Path], Iterator[Outcome]]


@dataclass(frozen=True)
class Ran:
    """What came of running a study."""

    stored: int  # cells that were there already
    computed: int
    failed: Mapping[str, str] = field(default_factory=dict)  # by the cell's name, why

    @property
    def total(self) -> int:
        """Number of different cells."""
        return self.stored + self.computed + len(self.failed)


def processes(count: int) -> Executor:
    """Return the executor of so many processes of this machine."""
    if count < 1:
        raise UserError(f"the number of processes is {count}, but must be at least 1")
    return lambda cells, folder: on_processes(cells, folder, count)


def ray(address: str, count: int) -> Executor:
    """Return the executor of a Ray cluster; `count` workers where it is a local one."""
    from lift_ros.studies.cluster import on_ray

    return lambda cells, folder: on_ray(cells, folder, address, count)


def run_study(study: Study, store: Store, execute: Executor | None = None, *, progress: bool = True) -> Ran:
    """Compute the cells of a study that are not stored; one that fails is told and does not stop the others."""
    cells = study.unique
    missing = [cell for cell in cells if store.find(cell) is None]
    failed: dict[str, str] = {}
    computed = 0
    if missing:
        with Progress(len(missing), study.name, "cells", enabled=progress) as bar:
            for cell, outcome in (execute or processes(1))(missing, store.folder):
                if isinstance(outcome, Exception):
                    failed[cell.name] = _reason(outcome)
                else:
                    if not store.path(cell).exists():  # computed on a machine with another folder
                        store.keep(cell, outcome)
                    computed += 1
                bar.advance(1, note=cell.name)
    return Ran(len(cells) - len(missing), computed, failed)


def results(study: Study, store: Store) -> list[tuple[Cell, Result]]:
    """Return the cells of a study that are stored; cells that are the same share their result."""
    known = {cell.fingerprint: store.find(cell) for cell in study.unique}
    found = [(cell, known[cell.fingerprint]) for cell in study.cells]
    return [(cell, result) for cell, result in found if result is not None]


def labelled(found: Sequence[tuple[Cell, Result]]) -> list[Row]:
    """Return labels and results, as tables and claims take them."""
    return [(cell.labels, result.result) for cell, result in found]


def _reason(error: Exception) -> str:
    text = str(error).strip()
    return text if isinstance(error, UserError) else f"{type(error).__name__}: {text.splitlines()[-1] if text else ''}"
