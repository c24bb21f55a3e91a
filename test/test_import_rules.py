"""Holds the design's import rules: arrows between folders go one way, and each library stays where it belongs.

Imports inside functions and modules named in text count like any other.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "lift_ros"
# From the ground up: a file may import from its own layer and from those before it.
LAYERS = (
    {
        "errors",
        "own_code",
        "seeds",
        "array_types",
        "configuration",
        "progress",
        "console",
        "resources",
        "lazy",
        "processes",
        "untrusted",
        "distribution",
    },
    {"positioning"},
    {"drivers"},
    {"policies"},
    {"shortcuts"},
    {"scenario"},
    {"collection"},
    {"messages"},
    {"bags"},
    {"training"},
    {"evaluation"},
    {"studies"},
    {"graph"},
    {"page"},
    {"nodes"},
    {"commands"},
    {"cli", "rig"},
)
# Who may import what beside numpy and the standard library, as beginnings of paths. Each permission is needed.
LIBRARIES: dict[str, tuple[str, ...]] = {
    "rclpy": (
        "nodes/",
        "graph/qos.py",
        "drivers/ros_link.py",
        "drivers/tf_pose.py",
        "drivers/trajectory_action.py",
    ),
    "lift_ros.msg": ("nodes/",),
    "diagnostic_msgs": ("nodes/",),
    "geometry_msgs": (
        "nodes/",
        "drivers/cartesian_topics.py",
        "drivers/pose_topics.py",
        "drivers/tf_pose.py",
        "drivers/twist_topics.py",
    ),
    "rcl_interfaces": ("nodes/",),
    "sensor_msgs": ("nodes/", "drivers/topic_joints.py", "drivers/topic_camera.py"),
    "std_msgs": ("nodes/",),
    "std_srvs": ("nodes/",),
    "builtin_interfaces": ("drivers/topic_joints.py", "drivers/twist_topics.py"),
    "trajectory_msgs": ("drivers/topic_joints.py", "nodes/arm_simulator_node.py"),
    "control_msgs": ("drivers/trajectory_action.py",),
    "tf2_ros": ("drivers/tf_pose.py",),
    "visualization_msgs": ("nodes/",),
    "launch": ("graph/launch_description.py",),
    "launch_ros": ("graph/launch_description.py",),
    "torch": ("training/", "studies/"),
    "d3rlpy": ("training/", "shortcuts/picker.py"),
    "onnx": ("training/onnx_export.py",),
    "ray": ("studies/cluster.py",),
    "safetensors": ("policies/model_file.py",),
    "gymnasium": ("positioning/", "bags/exporting/"),
    "mujoco": ("positioning/",),
    "pinocchio": ("positioning/robot_arm.py",),
    "cv2": (
        "bags/exporting/lerobot.py",
        "bags/importing/",
        "commands/rig_command.py",
        "drivers/opencv.py",
        "drivers/readings.py",
        "drivers/topic_camera.py",
        "page/",
        "policies/preprocessing.py",
        "positioning/lens.py",
    ),
    "relign": ("positioning/relign_lens.py",),
    "causalchamber": ("positioning/light_tunnel.py",),
    "pymmcore": ("drivers/micromanager_core.py",),
    "mm_test_adapters": ("drivers/micromanager_core.py",),
    "epics": ("drivers/epics.py",),
    "serial": ("drivers/grbl.py",),
    "harvesters": ("drivers/genicam.py",),
    "genicam": ("drivers/genicam.py",),
    "rosbags": ("bags/importing/", "messages/", "nodes/further_topics.py"),
    "minari": ("bags/exporting/",),
    "pyarrow": ("bags/exporting/lerobot.py",),
    "rerun": ("bags/exporting/rerun.py",),
    "mcap": ("bags/",),
    "zstandard": ("bags/mcap_records.py", "bags/packing.py"),
    "nicegui": ("page/",),
    "fastapi": ("page/",),
    "uvicorn": ("page/serving.py",),
    "matplotlib": ("evaluation/",),
    "rich": ("console.py", "progress.py", "graph/live_view.py"),
    "yaml": ("untrusted.py",),
}

# What a file starts as a process of its own, and so must name without importing it.
PROGRAMS = {("graph/run.py", "lift_ros.nodes")}


@cache
def modules() -> dict[str, str]:
    """Return the package's modules and their files; the compiled messages are not ours."""
    files = sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py"))
    return {_name(file): file for file in files if not file.startswith("msg/")}


def _name(file: str) -> str:
    words = file.removesuffix(".py").removesuffix("__init__").split("/")
    return ".".join(["lift_ros", *filter(None, words)])


@cache
def imported(file: str) -> frozenset[str]:
    """Return every module that a file imports anywhere in its text, or names in it."""
    return frozenset(_imports(ast.parse((PACKAGE / file).read_text())))


def _imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (name if name in modules() else node.module for name in names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from {node.value.partition(":")[0]} & modules().keys()


def layer_of(module: str) -> int:
    """Return how high a module stands; the package itself, which holds the version, lies below everything."""
    room = module.split(".")[1] if "." in module else None
    return next((height for height, rooms in enumerate(LAYERS) if room in rooms), -1)


def may_import(file: str, name: str) -> bool:
    """Whether the rules let a file of the package import a module."""
    library = "lift_ros.msg" if name.startswith("lift_ros.msg") else name.split(".")[0]
    if library == "lift_ros":
        if (file, name) in PROGRAMS:
            return True
        return layer_of(name) <= layer_of(_name(file))
    return library in {*sys.stdlib_module_names, "numpy"} or file.startswith(LIBRARIES.get(library, ("nowhere",)))


@pytest.mark.parametrize("file", modules().values())
def test_file_imports_only_what_the_design_allows(file: str) -> None:
    assert sorted(name for name in imported(file) if not may_import(file, name)) == []


def test_every_room_has_its_layer() -> None:
    rooms = {name.split(".")[1] for name in modules() if "." in name}
    assert rooms == set().union(*LAYERS)


@pytest.mark.parametrize(
    ("library", "place"), [(name, place) for name, places in LIBRARIES.items() for place in places]
)
def test_no_permission_is_stale(library: str, place: str) -> None:
    there = [file for file in modules().values() if file.startswith(place)]
    assert [file for file in there if any(f"{name}.".startswith(f"{library}.") for name in imported(file))]


def test_no_two_files_need_each_other() -> None:
    # A file may name itself, to be started as a program.
    needs = {name: (imported(file) & modules().keys()) - {name} for name, file in modules().items()}
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        pytest.fail(" → ".join(error.args[1]))


@pytest.mark.parametrize(
    ("file", "name", "allowed"),
    [
        ("collection/arbiter.py", "rclpy.node", False),
        ("cli.py", "lift_ros.msg", False),
        ("bags/writer.py", "std_msgs.msg", False),
        ("nodes/convert.py", "lift_ros.msg.Step", True),
        ("policies/learned.py", "torch", False),
        ("policies/model_file.py", "safetensors.numpy", True),
        ("policies/displacement.py", "torch.nn", False),
        ("evaluation/scores.py", "d3rlpy", False),
        ("shortcuts/picker.py", "d3rlpy.dataset", True),
        ("shortcuts/sampler.py", "d3rlpy.dataset", False),
        ("positioning/fetch.py", "mujoco", True),
        ("collection/loop.py", "rich", False),
        ("collection/loop.py", "lift_ros.scenario", True),
        ("scenario.py", "lift_ros.collection.loop", False),
        ("policies/learned.py", "lift_ros.training.data", False),
        ("positioning/plants.py", "lift_ros.policies.protocol", False),
        ("graph/table.py", "lift_ros.nodes.base", False),
        ("training/trainer.py", "lift_ros", True),
        ("errors.py", "lift_ros.cli", False),
    ],
)
def test_rules_tell_good_from_bad(file: str, name: str, allowed: bool) -> None:
    assert may_import(file, name) is allowed


def test_imports_in_functions_and_in_text_are_found() -> None:
    text = 'def f():\n    from lift_ros import scenario\n    return {"x": "lift_ros.policies.learned", "y": "a.b:c"}\n'
    assert set(_imports(ast.parse(text))) == {"lift_ros.scenario", "lift_ros.policies.learned"}


def test_every_folder_says_what_it_is_for() -> None:
    for name, file in modules().items():
        if file.endswith("__init__.py"):
            assert len(ast.get_docstring(ast.parse((PACKAGE / file).read_text())) or "") > 40, name


def test_folders_and_command_load_neither_ros_nor_torch() -> None:
    packages = ", ".join(name for name, file in modules().items() if file.endswith("__init__.py"))
    heavy = ["rclpy", "torch", "d3rlpy", "mujoco", "matplotlib", "safetensors", "rich"]
    program = f"import sys, lift_ros.cli, lift_ros.rig, {packages}; print([x for x in {heavy!r} if x in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert (done.stdout.strip(), done.returncode) == ("[]", 0), done.stderr
