"""Where cells and recordings lie: a file or a run each, whole or not at all, shared by all studies of a folder."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from lift_ros.errors import UserError
from lift_ros.studies.cell import Cell, Result


class Store:
    """A folder of results and of the recordings they were made from."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.cells = self.folder / "cells"
        self.recordings = self.folder / "recordings"
        for place in (self.cells, self.recordings):
            place.mkdir(parents=True, exist_ok=True)

    def path(self, cell: Cell) -> Path:
        """Return the file of a cell."""
        return self.cells / f"{cell.fingerprint}.json"

    def find(self, cell: Cell) -> Result | None:
        """Return what is stored of a cell; None where it was not computed yet."""
        path = self.path(cell)
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            return Result(content["settings"], content["result"], content["made"])
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError) as error:
            raise UserError(
                f"{path} is no result of a study ({error}); remove it, to have it computed again"
            ) from error

    def keep(self, cell: Cell, result: Result) -> None:
        """Store a result; whoever reads meanwhile finds it whole or not at all."""
        write_whole(self.path(cell), result.as_text())

    def recording(self, name: str, make: Callable[[Path], None]) -> Path:
        """Return the place of a recording; where it is missing it is made, by one process only.

        Others who want the same wait meanwhile. A process that is killed leaves nothing that would be taken for it.
        """
        final = self.recordings / name
        with open(self.recordings / f"{name}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # let go of by the kernel, however the process ends
            if not final.exists():
                partial = self.recordings / f"{name}.partial"
                shutil.rmtree(partial, ignore_errors=True)
                make(partial / name)  # its files bear the name of their folder
                (partial / name).rename(final)
                partial.rmdir()
        return final


def write_whole(path: Path, text: str) -> None:
    """Write a file that is never seen half written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, partial = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with open(descriptor, "w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(partial, 0o644)
        os.replace(partial, path)
    except BaseException:
        os.unlink(partial)
        raise
