"""The descriptions of this package agree with each other: package.xml, setup.py, CMakeLists.txt, Makefile."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import lift_ros

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
    assert used <= depends()


def modules_with_main() -> set[str]:
    nodes = (ROOT / "lift_ros" / "nodes").glob("*_node.py")
    return {
        f"lift_ros.nodes.{path.stem}"
        for path in nodes
        if re.search(r"^(def main\(|main = )", path.read_text(), re.MULTILINE)
    } | {"lift_ros.cli"}


def test_setup_lists_lift_and_every_node() -> None:
    listed = re.findall(r'^    "(\w+) = ([\w.]+):main",$', (ROOT / "setup.py").read_text(), re.MULTILINE)
    assert {module for _, module in listed} == modules_with_main()
    assert len(listed) == len(modules_with_main())
    for command, module in listed:
        name = module.rpartition(".")[2].removesuffix("_node")
        assert command == ("lift" if module == "lift_ros.cli" else f"lift_{name}")


def test_cmake_lists_the_same_executables() -> None:
    listed = re.findall(r"^install_executable\((\w+) ([\w.]+)\)$", (ROOT / "CMakeLists.txt").read_text(), re.MULTILINE)
    assert {module for _, module in listed} == modules_with_main()
    assert len(listed) == len(modules_with_main())
    for name, module in listed:
        assert name == ("lift" if module == "lift_ros.cli" else module.rpartition(".")[2].removesuffix("_node"))


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
