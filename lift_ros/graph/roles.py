"""What each part of the product imports beside ROS, in one table: `lift doctor` and every start of a node read it."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from lift_ros.configuration import listed
from lift_ros.errors import UserError


@dataclass(frozen=True)
class Library:
    """A library and where it comes from: what pip calls it, and its rosdep key where there is one."""

    pip: str
    rosdep: str = ""
    brought_by: str = ""  # the rosdep key of a package that brings it along


# By the name that is imported.
LIBRARIES: Mapping[str, Library] = {
    "numpy": Library("numpy", "python3-numpy"),
    "yaml": Library("pyyaml", "python3-yaml"),
    "rosbags": Library("rosbags", "python3-rosbags-pip"),
    "mcap": Library("mcap", brought_by="mcap-ros2-support"),
    "rich": Library("rich", "python3-rich"),
    "matplotlib": Library("matplotlib", "python3-matplotlib"),
    "cv2": Library("opencv-python-headless", "python3-opencv"),
    "safetensors": Library("safetensors"),
    "torch": Library("torch==2.13.0", "python3-torch"),
    "d3rlpy": Library("d3rlpy==2.8.1"),
    "gymnasium": Library("gymnasium==1.0.0", "python3-gymnasium-pip"),
    "mujoco": Library("mujoco==3.1.6", "python3-mujoco-pip"),
    "gymnasium_robotics": Library("gymnasium-robotics==1.3.1", "python3-gymnasium-robotics-pip"),
    "nicegui": Library("nicegui==3.18.0"),
    "pinocchio": Library("pin==4.1.0 example-robot-data==6.0.0", "pinocchio"),
}


@dataclass(frozen=True)
class Role:
    """Something that a user may want of an installation, the libraries it takes and the nodes that only it needs."""

    name: str
    purpose: str
    libraries: tuple[str, ...]
    executables: tuple[str, ...] = ()


_SPEAKING = ("numpy", "yaml", "rosbags")  # what every node takes to read scenarios and messages
_RECORDING = (*_SPEAKING, "mcap")
PLANT = Role(
    "plant and routine",
    "a plant or a routine in the graph",
    _SPEAKING,
    ("logging_policy", "loopback_hardware", "monitor", "positioning_simulator", "rig"),
)
COLLECTING = Role("collecting", "recording episodes", _RECORDING, ("arbiter", "recorder"))
ROLES = (
    PLANT,
    COLLECTING,
    Role("command lift", "tables and the live view", (*_RECORDING, "rich")),
    Role("augmenting", "driving with a model", (*_RECORDING, "safetensors"), ("augmentor",)),
    Role("training", "training", (*_RECORDING, "safetensors", "torch"), ("trainer",)),
    Role("d3rlpy", "the algorithms of d3rlpy", (*_RECORDING, "safetensors", "torch", "d3rlpy")),
    Role("Fetch", "the Fetch scenarios", (*_SPEAKING, "mujoco", "gymnasium_robotics"), ("fetch_simulator",)),
    Role("arm", "the simulated arm", (*_SPEAKING, "mujoco", "pinocchio"), ("arm_simulator",)),
    Role("lens", "the lens scenario", (*_SPEAKING, "cv2")),
    Role("plots", "plots and reports", (*_RECORDING, "rich", "matplotlib")),
    Role("page", "the operator's page and lift view", (*_RECORDING, "safetensors", "cv2", "nicegui"), ("page",)),
    Role("importing", "bags of other recorders", (*_RECORDING, "cv2")),
    Role("gymnasium", "the gymnasium environment", ("numpy", "gymnasium")),
)


def role_of(executable: str) -> Role:
    """Return the role that an executable belongs to."""
    return next(role for role in ROLES if executable in role.executables)


def missing_of(libraries: Iterable[str]) -> list[str]:
    """Return the libraries that this Python does not have, without importing any."""
    return [name for name in libraries if importlib.util.find_spec(name) is None]


def remedy_for(libraries: Iterable[str]) -> str:
    """Return what installs these libraries."""
    return f"pip install {' '.join(LIBRARIES[name].pip for name in libraries)}"


def explain_missing(who: str, libraries: Iterable[str]) -> UserError:
    """Return the sentence that says which libraries somebody lacks, where, and what installs them."""
    names = list(libraries)
    return UserError(
        f"{who} needs {listed(names)}, which this Python ({sys.executable}) does not have: {remedy_for(names)}, in the "
        "environment of your workspace where you have one; lift doctor tells more"
    )


def require_libraries(executables: Iterable[str]) -> None:
    """Refuse to start nodes that lack a library, before the first of them imports anything."""
    for executable in executables:
        if missing := missing_of(role_of(executable).libraries):
            raise explain_missing(executable, missing)
