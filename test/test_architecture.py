"""The page on architecture names places that exist, and every folder."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "lift_ros"
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| .* \| `([\w/]+\.py)` \| (.*) \|$", PAGE, flags=re.MULTILINE)
PLACES = [(file, name) for file, names in ROWS for name in re.findall(r"`([\w.]+)`", names)]


def names_in(path: Path) -> set[str]:
    """Return functions, classes with their methods, and what is assigned, of a module."""
    found: set[str] = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{item.name}" for item in node.body if isinstance(item, ast.FunctionDef)}
        if isinstance(node, ast.Assign):
            found |= {item.id for target in node.targets for item in ast.walk(target) if isinstance(item, ast.Name)}
    return found


def test_the_walk_is_there() -> None:
    assert len(PLACES) > 20


@pytest.mark.parametrize(("file", "name"), PLACES)
def test_place_exists(file: str, name: str) -> None:
    assert name in names_in(PACKAGE / file)


def test_every_folder_is_named() -> None:
    folders = {path.parent.name for path in PACKAGE.glob("*/__init__.py")} - {"msg"}
    assert folders == set(re.findall(r"^\| `(\w+)` \|", PAGE, flags=re.MULTILINE))
