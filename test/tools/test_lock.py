"""The locks are complete, pinned, and hold what the design asks for."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools.environment import DISTRIBUTIONS
from tools.lock import build_requirements, locked_lines

ROOT = Path(__file__).parents[2]
LOCKS = sorted((ROOT / "requirements").glob("*.lock"))


def pins(lock: Path) -> dict[str, str]:
    rows = [row for row in lock.read_text().splitlines() if not row.startswith("#")]
    return dict(row.split("==") for row in rows)


def plain_name(requirement: str) -> str:
    return re.split(r"[\[<>=!~; ]", requirement)[0].lower()


def requirements(name: str) -> list[str]:
    rows: list[str] = []
    for row in (ROOT / "requirements" / name).read_text().splitlines():
        if row.startswith("-r "):
            rows += requirements(row.removeprefix("-r "))
        elif row and not row.startswith("#"):
            rows.append(row)
    return rows


def test_every_distribution_has_a_lock() -> None:
    assert {lock.stem for lock in LOCKS} == set(DISTRIBUTIONS)


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.stem)
def test_lock_holds_all_that_is_required_and_nothing_twice(lock: Path) -> None:
    wanted = {plain_name(row) for row in [*requirements(f"{lock.stem}.txt"), *build_requirements()]}
    assert wanted <= pins(lock).keys()
    # The wheels carry metadata of the ROS packages inside them, which pip freeze lists but no index has.
    assert not {f"ros-{name}" for name in pins(lock)} & pins(lock).keys()


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.stem)
def test_lock_agrees_with_the_versions_asked_for(lock: Path) -> None:
    asked = [row for row in requirements(f"{lock.stem}.txt") if "==" in row]
    assert all(pins(lock)[plain_name(row)] == row.split("==")[1] for row in asked)
    assert pins(lock)["torch"] == "2.13.0"


def test_jazzy_has_the_numpy_of_its_ubuntu() -> None:
    assert pins(ROOT / "requirements" / "jazzy.lock")["numpy"].startswith("1.26.")


def test_names_are_written_as_indexes_do_and_local_versions_dropped() -> None:
    report = {
        "install": [
            {"metadata": {"name": "torch", "version": "2.13.0+cpu"}},
            {"metadata": {"name": "Ruamel.YAML_clib", "version": "1.0"}},
        ]
    }
    assert locked_lines(report) == ["ruamel-yaml-clib==1.0", "torch==2.13.0"]
