"""Where the files lie that come with the package but are no modules: scenarios and message definitions."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

from lift_ros.errors import UserError


@lru_cache
def resource_folder(name: str, pattern: str) -> Path:
    """Return the folder `name` of the checkout or of the installed share that holds files of this pattern."""
    package = Path(__file__).resolve().parent
    prefixes = [*package.parents, *map(Path, filter(None, os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)))]
    folders = [package.parent / name, *(prefix / "share" / "lift_ros" / name for prefix in prefixes)]
    for folder in folders:
        if any(folder.glob(pattern)):
            return folder
    raise UserError(f"no {pattern} found in {folders[0]} or in share/lift_ros/{name}: install lift_ros again")
