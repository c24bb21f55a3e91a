"""Holds the design's import rules: the core runs without ROS and without torch, statically and in fact."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "lift_ros"
ROS = {
    *("rclpy", "ament_index_python", "builtin_interfaces", "diagnostic_msgs", "geometry_msgs", "launch", "launch_ros"),
    *("lifecycle_msgs", "rcl_interfaces", "sensor_msgs", "std_msgs", "std_srvs", "tf2_ros", "visualization_msgs"),
    *("rosidl_runtime_py", "rosidl_parser", "rosidl_generator_py"),
}
TORCH = {"torch", "d3rlpy", "safetensors"}
CORE = {"positioning", "policies", "collection", "shortcuts"}
# Beside numpy and the standard library.
CORE_MAY = {
    "gymnasium": ("positioning/",),
    "mujoco": ("positioning/fetch", "positioning/offscreen"),
    "gymnasium_robotics": ("positioning/fetch",),
    "cv2": ("positioning/",),
    "yaml": ("positioning/",),
}


def modules() -> list[str]:
    return sorted(
        path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py") if "msg" not in path.parts[-2:]
    )


def imported(module: str) -> Iterator[str]:
    """Yield every module that a file imports anywhere in its text, lazily or not."""
    for node in ast.walk(ast.parse((PACKAGE / module).read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def may_import(module: str, name: str) -> bool:
    """Whether the rules let a file of the package import a module."""
    top = name.split(".")[0]
    if top in ROS or name.startswith("lift_ros.msg"):
        return module.startswith(("nodes/", "graph/"))
    if top in TORCH:
        lazily = top == "d3rlpy" and module == "shortcuts/picker.py"
        return module.startswith(("training/", "policies/model_file.py", "policies/learned.py")) or lazily
    if module.split("/")[0] in CORE and top not in {*sys.stdlib_module_names, "numpy", "lift_ros", "d3rlpy"}:
        return module.startswith(CORE_MAY.get(top, ("nowhere",)))
    return True


@pytest.mark.parametrize("module", modules())
def test_file_imports_only_what_the_design_allows(module: str) -> None:
    assert [name for name in imported(module) if not may_import(module, name)] == []


@pytest.mark.parametrize(
    ("module", "name", "allowed"),
    [
        ("collection/arbiter.py", "rclpy.node", False),
        ("cli.py", "lift_ros.msg", False),
        ("bags/writer.py", "std_msgs.msg", False),
        ("nodes/convert.py", "lift_ros.msg.Step", True),
        ("policies/learned.py", "torch", True),
        ("policies/direct.py", "torch.nn", False),
        ("evaluation/scores.py", "d3rlpy", False),
        ("shortcuts/picker.py", "d3rlpy.dataset", True),
        ("shortcuts/sampler.py", "d3rlpy.dataset", False),
        ("positioning/fetch.py", "mujoco", True),
        ("positioning/simulated.py", "mujoco", False),
        ("collection/loop.py", "rich", False),
    ],
)
def test_rules_tell_good_from_bad(module: str, name: str, allowed: bool) -> None:
    assert may_import(module, name) is allowed


def test_core_and_command_load_neither_ros_nor_torch() -> None:
    packages = ", ".join(f"lift_ros.{name}" for name in (*sorted(CORE), "cli", "seeds", "bags"))
    heavy = sorted({*ROS, *TORCH, "mujoco"} - {"ament_index_python"})
    program = f"import sys, {packages}; print([name for name in {heavy!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert (done.stdout.strip(), done.returncode) == ("[]", 0), done.stderr
