"""Files that commands write: whether they can, before anything takes minutes."""

from __future__ import annotations

import tempfile
from pathlib import Path

from lift_ros.errors import UserError


def check_writable(path: Path) -> None:
    """Refuse a file that cannot be written; it is tried, since neither modes nor owners tell of a read-only disk."""
    try:
        if path.is_dir():
            raise UserError(f"cannot write {path}: it is a folder; name a file in it")
        if path.exists():
            path.open("r+b").close()
        there = next(folder for folder in path.absolute().parents if folder.exists())  # the others can be made in it
        tempfile.TemporaryFile(dir=there).close()
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}; choose a place you may write to") from error
