"""Arms and stages that listen to ROS topics: what a scenario may say of them, and the axes of each interface."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lift_ros.configuration import Key
from lift_ros.drivers.pose_topics import PoseAxes
from lift_ros.drivers.protocol import Axes, Axis
from lift_ros.drivers.topic_joints import TrajectoryAxes
from lift_ros.drivers.trajectory_action import ActionAxes
from lift_ros.drivers.twist_topics import TwistAxes
from lift_ros.errors import UserError

INTERFACES = {
    "joint_trajectory": "joint",
    "follow_joint_trajectory": "joint",
    "twist": "direction",
    "pose": "direction",
}
_COMMANDS = {
    "joint_trajectory": "joint_trajectory",
    "follow_joint_trajectory": "follow_joint_trajectory",
    "twist": "delta_twist_cmds",
    "pose": "target_pose",
}
_STATES = {"joint": "joint_states", "direction": "tool_pose"}
AXES_KEYS = {
    "interface": Key(str, choices=tuple(INTERFACES), meaning="what the controller takes"),
    "command": Key(str, None, optional=True, meaning="topic or action of commands; null: the usual name"),
    "state": Key(str, None, optional=True, meaning="topic of joint states or poses; null: joint_states or tool_pose"),
    "tf": Key(
        list,
        None,
        optional=True,
        entries=str,
        length=2,
        meaning="frames [base, tool] whose transform is read instead of a topic of poses (twist and pose)",
    ),
    "held": Key(list, [], entries=str, meaning="further joints of the controller, which stay where they are"),
    "stale_seconds": Key(float, 1.0, above=0, high=60, meaning="a state older than this is a fault"),
    "minimum_seconds": Key(float, 0.1, above=0, high=60, meaning="shortest time that a controller is given for a move"),
    "grace_seconds": Key(float, 1.0, low=0, high=600, meaning="time beyond the planned that a controller may take"),
    "rate": Key(float, 50.0, low=30, high=1000, meaning="twists per second (interface: twist)"),
    "gain": Key(float, 3.0, above=0, high=100, meaning="velocity per distance left, in 1/s (interface: twist)"),
}
AXIS_KEYS = {
    "joint": Key(str, None, optional=True, meaning="name of the joint (joint interfaces)"),
    "direction": Key(str, None, optional=True, choices=("x", "y", "z"), meaning="of the pose (twist and pose)"),
}


def make_topic_axes(layout: tuple[Axis, ...], axes: Sequence[Mapping[str, Any]], settings: Mapping[str, Any]) -> Axes:
    """Return the axes of an interface, once each names its own joint or direction and how fast it may go."""
    interface = settings["interface"]
    key = INTERFACES[interface]
    named = [axis[key] for axis in axes] + (list(settings["held"]) if key == "joint" else [])
    if None in named or len(set(named)) != len(named):
        raise UserError(f"axes name {key} {named}; allowed: one of its own for each (interface: {interface})")
    if settings["tf"] is not None and key == "joint":
        raise UserError(f"tf is {settings['tf']}; allowed: nothing, as interface {interface} reads joint states")
    if any(axis["velocity"] is None for axis in axes):
        raise UserError(
            f"axes lack velocity; allowed: a number for each, from which interface {interface} plans a move"
        )
    chosen = {
        **settings,
        "command": settings["command"] or _COMMANDS[interface],
        "state": settings["state"] or _STATES[key],
    }
    kinds: dict[str, Any] = {
        "joint_trajectory": TrajectoryAxes,
        "follow_joint_trajectory": ActionAxes,
        "twist": TwistAxes,
        "pose": PoseAxes,
    }
    made: Axes = kinds[interface](layout, axes, chosen)
    return made
