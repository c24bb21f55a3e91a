"""The descriptions of this package agree with each other: package.xml, setup.py, CMakeLists.txt, Makefile."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from catkin_pkg.package import parse_package

import lift_ros
from lift_ros.graph.roles import COLLECTING, LIBRARIES

ROOT = Path(__file__).parents[2]
MANIFEST = ElementTree.parse(ROOT / "package.xml").getroot()


def depends() -> set[str]:
    return {element.text or "" for element in MANIFEST if element.tag.endswith("depend")}


def test_version_is_the_same_everywhere() -> None:
    assert MANIFEST.findtext("version") == lift_ros.__version__
    assert f"## {lift_ros.__version__}" in (ROOT / "CHANGELOG.md").read_text()


def test_manifest_names_all_ros_packages_that_nodes_import() -> None:
    known = {"rclpy", "std_msgs", "std_srvs", "sensor_msgs", "geometry_msgs", "diagnostic_msgs", "visualization_msgs"}
    known |= {"builtin_interfaces", "rcl_interfaces", "launch", "launch_ros", "tf2_ros", "ament_index_python"}
    text = "\n".join(path.read_text() for folder in ("lift_ros", "launch") for path in (ROOT / folder).rglob("*.py"))
    used = set(re.findall(r"^\s*(?:from|import) (\w+)", text, re.MULTILINE)) & known
    packages = {"tf2_ros": "tf2_ros_py"}  # where a module has another name than its package
    assert {packages.get(module, module) for module in used} <= depends()


def test_a_release_has_what_it_needs() -> None:
    package = parse_package(str(ROOT))
    warnings: list[str] = []
    package.validate(warnings=warnings)
    assert warnings == []
    assert package.urls
    assert package.authors


@pytest.mark.parametrize("allowed", [False, True])
def test_manifest_asks_pip_for_what_collecting_needs_where_that_is_allowed(allowed: bool) -> None:
    """Released packages and a system that refuses pip must see no key that leads to pip."""
    package = parse_package(str(ROOT))
    package.evaluate_conditions({"PIP_BREAK_SYSTEM_PACKAGES": "1"} if allowed else {})
    keys = {dependency.name for dependency in package.exec_depends if dependency.evaluated_condition}
    for name, library in LIBRARIES.items():
        key = library.rosdep or library.brought_by
        if name in COLLECTING.libraries:
            assert (key in keys) is (allowed or not is_from_pip(key)), name
        else:
            assert key not in keys or not is_from_pip(key), name


def is_from_pip(key: str) -> bool:
    return key.endswith("-pip") or key == "mcap-ros2-support"


def nodes() -> set[str]:
    """Return the executables of nodes: every node that can be run."""
    files = (ROOT / "lift_ros" / "nodes").glob("*_node.py")
    runs = re.compile(r"^(def main\(|main = )", re.MULTILINE)
    return {path.name.removesuffix("_node.py") for path in files if runs.search(path.read_text())}


def test_setup_lists_every_node() -> None:
    (listed,) = re.findall(r"^NODES = \(\n(.*?)^\)", (ROOT / "setup.py").read_text(), re.MULTILINE | re.DOTALL)
    names = re.findall(r'"(\w+)"', listed)
    assert (set(names), len(names)) == (nodes(), len(nodes()))


def test_cmake_lists_the_same_nodes() -> None:
    text = (ROOT / "CMakeLists.txt").read_text()
    (listed,) = re.findall(r"^set\(\n  nodes\n(.*?)^\)", text, re.MULTILINE | re.DOTALL)
    assert (set(listed.split()), len(listed.split())) == (nodes(), len(nodes()))


def test_every_executable_can_be_imported_where_installations_look_for_it() -> None:
    from lift_ros.nodes import starting

    for name in nodes():
        assert callable(getattr(starting, name))
    with pytest.raises(AttributeError, match="no attribute 'arbitre'"):
        starting.arbitre  # noqa: B018


def test_cmake_knows_nothing_of_the_wheels() -> None:
    text = (ROOT / "CMakeLists.txt").read_text().lower()
    assert not [word for word in ("pypi", "wheel", "venv", "imported_targets") if word in text]


def test_make_help_lists_every_target() -> None:
    shown = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True).stdout
    for target in ("setup", "test", "demo", "lint", "format", "benchmark", "docs", "lock", "clean", "help"):
        assert f"make {target} " in shown


def test_continuous_integration_runs_make_test() -> None:
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert script.read_text().rstrip().endswith("exec make test")


def test_command_is_found_in_the_environment(tmp_path: Path) -> None:
    lift = Path(sys.executable).parent / "lift"
    done = subprocess.run([lift, "--help"], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0
    assert "doctor" in done.stdout


def test_every_kind_of_file_of_the_package_is_installed_by_pip_and_by_colcon() -> None:
    kinds = {path.suffix for path in (ROOT / "lift_ros").rglob("*.*") if "__pycache__" not in path.parts}
    assert {".css", ".js"} <= kinds
    pip, colcon = ((ROOT / name).read_text() for name in ("setup.py", "CMakeLists.txt"))
    for kind in kinds - {".py", ".typed", ".so"}:
        assert f'"*{kind}"' in pip, kind
        assert f"lift_ros/*{kind} " in colcon or f"lift_ros/*{kind}\n" in colcon, kind
