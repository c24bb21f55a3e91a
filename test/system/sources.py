"""A copy of the sources, as git would check them out, for builds that must not touch this checkout."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

ROOT = Path(__file__).parents[2]
# A child with another environment's Python must not inherit what ROS set for ours.
INHERITED = {
    "_ROS_WHEELS_BOOTSTRAP_COMPLETE",
    "LD_LIBRARY_PATH",
    "PYTHONPATH",
    "AMENT_PREFIX_PATH",
    "CMAKE_PREFIX_PATH",
}


def clean_environment() -> dict[str, str]:
    """Return this process's environment without what belongs to one installation of ROS."""
    return {name: value for name, value in os.environ.items() if name not in INHERITED}


def node_names() -> set[str]:
    """Return the names of the executables that nodes should give."""
    files = (ROOT / "lift_ros" / "nodes").glob("*_node.py")
    runs = re.compile(r"^(def main\(|main = )", re.MULTILINE)
    return {path.name.removesuffix("_node.py") for path in files if runs.search(path.read_text())}


def copy_sources(target: Path, messages: tuple[str, ...] | None = None) -> None:
    """Copy the sources with all messages or the given ones, and with what an earlier build may have left behind."""
    ignored = shutil.ignore_patterns("__pycache__")
    target.mkdir(parents=True)
    for name in ("cmake", "config", "launch", "lift_ros", "msg", "requirements", "test", "tools"):
        shutil.copytree(ROOT / name, target / name, ignore=ignored)
    for name in ("CMakeLists.txt", "LICENSE", "README.md", "package.xml", "pyproject.toml", "setup.py"):
        shutil.copy2(ROOT / name, target / name)
    for path in (target / "msg").glob("*.msg"):
        if messages is not None and path.name not in messages:
            path.unlink()
    stale = target / "lift_ros" / "msg"
    shutil.rmtree(stale, ignore_errors=True)
    stale.mkdir()
    (stale / "__init__.py").write_text("raise ImportError('a leftover of an earlier build')\n")
