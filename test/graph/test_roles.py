"""The table of roles against what modules really import: everything that a role does not list is kept from it."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path

import pytest

from lift_ros.errors import UserError
from lift_ros.graph import roles
from lift_ros.graph.roles import LIBRARIES, ROLES, Role, require_libraries, role_of

ROOT = Path(__file__).parents[2]
# Imports modules in a Python that lacks some; those it lacks are given by the names that one imports.
WITHOUT = """
import importlib, sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in absent:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

absent = set(sys.argv[1].split(","))
sys.meta_path.insert(0, Absent())
"""
# What a role does beyond importing its nodes, where libraries are loaded at the first use.
USES = {
    "plant and routine": "import lift_ros.rig; from lift_ros.rig import PlantNode",
    "collecting": "import lift_ros.graph.table, lift_ros.graph.run",
    "command lift": (
        "from lift_ros.cli import COMMANDS\n"
        "for name in COMMANDS.keys() - {'train', 'evaluate', 'demo', 'import', 'export'}:\n"
        "    importlib.import_module(f'lift_ros.commands.{name}_command').configure\n"
        "from lift_ros.console import print_error; print_error('x', 'y')"
    ),
    "augmenting": "from lift_ros.policies.model_file import pack; pack({}, {})",
    "training": "import lift_ros.training.trainer, lift_ros.commands.train_command",
    "d3rlpy": "import lift_ros.training.stock, lift_ros.shortcuts.picker",
    "Fetch": "from lift_ros.positioning.fetch_arm import FetchArm; FetchArm('reach.xml')",
    "arm": "from lift_ros.positioning.robot_arm import RobotArm; RobotArm('ur5')",
    "lens": "from lift_ros.positioning.lens import FastLens; FastLens(16)",
    "plots": "import lift_ros.evaluation.report; from lift_ros.evaluation.plots import make_figure; make_figure(1, 1)",
    "page": (
        "import lift_ros.page.operator_page, lift_ros.page.serving, numpy\n"
        "from lift_ros.page.pictures import data_url; data_url(numpy.zeros((2, 2), numpy.uint8))"
    ),
    "importing": "import lift_ros.bags.importing, lift_ros.commands.import_command",
    "gymnasium": "import lift_ros.positioning.environment",
}


def plain(name: str) -> str:
    return re.split(r"[\[<>=!~; (]", name)[0].lower().replace("_", "-").replace(".", "-")


def with_requirements(distributions: Iterable[str]) -> set[str]:
    """Return distributions with all that they require, as far as it is installed."""
    known: set[str] = set()
    pending = [plain(name) for name in distributions]
    while pending:
        name = pending.pop()
        if name in known:
            continue
        known.add(name)
        try:
            rows = requires(name) or []
        except PackageNotFoundError:
            continue
        pending += [plain(row) for row in rows if "extra ==" not in row]
    return known


def absent_for(role: Role) -> set[str]:
    """Return every importable name of the environment that comes neither with ROS nor with the role's libraries."""
    owners = {name: {plain(owner) for owner in found} for name, found in packages_distributions().items()}
    owners["pinocchio"] = {"pin"}  # its wheel has a prefix of its own, where metadata do not look
    everything = set().union(*owners.values())
    ros = {name for name in everything if name.startswith("ros-") or f"ros-{name}" in everything}
    kept = with_requirements(LIBRARIES[name].pip for name in role.libraries) | ros
    kept |= {"lift-ros", *map(plain, sys.stdlib_module_names)}
    return {name for name, found in owners.items() if not found & kept and name not in sys.stdlib_module_names}


def run_without(absent: set[str], program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", WITHOUT + program, ",".join(sorted(absent))],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
    )


def program_of(role: Role) -> str:
    nodes = "".join(f"import lift_ros.nodes.{name}_node\n" for name in role.executables)
    return nodes + USES[role.name] + "\n"


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)
def test_role_works_with_what_it_lists_and_nothing_else(role: Role) -> None:
    if role.name == "arm":
        pytest.importorskip("pinocchio", reason="pip install 'lift_ros[arm]'")
    absent = absent_for(role)
    assert not absent & set(role.libraries)
    assert absent >= LIBRARIES.keys() - {*role.libraries, *USED_ALONG.get(role.name, ())}
    done = run_without(absent, program_of(role))
    assert done.returncode == 0, done.stderr


# Libraries that others bring along: what d3rlpy and gymnasium-robotics require.
USED_ALONG = {"d3rlpy": ("gymnasium",), "Fetch": ("gymnasium", "mujoco")}


def first_needs() -> list[tuple[Role, str]]:
    """Return each library with the first role that lists it: every start of a Python costs time."""
    first = {name: role for role in reversed(ROLES) for name in role.libraries}
    return [(role, name) for name, role in first.items()]


@pytest.mark.parametrize(("role", "library"), first_needs(), ids=lambda value: getattr(value, "name", value))
def test_role_needs_what_it_lists(role: Role, library: str) -> None:
    done = run_without({library}, program_of(role))
    assert done.returncode != 0
    assert f"No module named '{library}" in done.stderr


def test_every_node_has_its_role_and_every_role_its_use() -> None:
    nodes = {path.name.removesuffix("_node.py") for path in (ROOT / "lift_ros" / "nodes").glob("*_node.py")}
    listed = [name for role in ROLES for name in role.executables]
    assert sorted(listed) == sorted(nodes - {"replay"})  # which the command lift runs in its own process
    assert USES.keys() == {role.name for role in ROLES}
    assert set().union(*(role.libraries for role in ROLES)) == LIBRARIES.keys()


def test_versions_are_those_of_the_requirements() -> None:
    rows = (ROOT / "requirements" / "runtime.txt").read_text().splitlines()
    locked = (ROOT / "requirements" / "kilted.lock").read_text().splitlines()
    extra = (ROOT / "requirements" / "arm.txt").read_text().splitlines()
    for library in LIBRARIES.values():
        for name in library.pip.split():
            assert name in ([*locked, *extra] if "==" in name else rows)


def test_all_that_is_missing_is_told_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        roles.importlib.util, "find_spec", lambda name: None if name in ("mcap", "rosbags") else object()
    )
    require_libraries([])
    with pytest.raises(UserError) as caught:
        require_libraries(["recorder"])
    told = str(caught.value)
    assert told.startswith("recorder needs rosbags, mcap, which this Python (")
    assert "pip install rosbags mcap" in told
    assert role_of("recorder").name == "collecting"


@pytest.mark.parametrize("executable", ["arbiter", "trainer"])
def test_node_that_lacks_a_library_ends_with_one_sentence(executable: str) -> None:
    program = f"from lift_ros.nodes.starting import {executable}\nsys.exit({executable}())"
    done = run_without({"mcap"}, ABSENT_IS_NONE + program)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert done.stderr.startswith(f"{executable}: {executable} needs mcap, which this Python")


# `find_spec` says None of what is not installed; the blocker raises instead.
ABSENT_IS_NONE = """
import importlib.util
find_spec = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name in absent else find_spec(name, package)
"""


@pytest.mark.parametrize("words", [["inspect", "runs"], ["doctor", "--help"], ["run", "--help"]])
def test_command_that_lacks_a_library_ends_with_one_sentence(words: list[str]) -> None:
    program = f"from lift_ros.cli import main\nsys.exit(main({words!r}))"
    done = run_without({"rosbags"}, program)
    if words[0] == "doctor":
        assert done.returncode == 0, done.stderr
        return
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert "needs rosbags" in done.stderr
    assert "pip install rosbags" in done.stderr
