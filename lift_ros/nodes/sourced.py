"""Whether this terminal has what nodes need, and the remedy where it does not; imports nothing of it."""

from __future__ import annotations

import importlib.util

from lift_ros.errors import UserError

_NEEDED = {"rclpy": "ROS 2 (rclpy)", "lift_ros.msg": "the messages of lift_ros (lift_ros.msg)"}


def require_ros() -> None:
    """Refuse to go on in a terminal that has not sourced ROS or the workspace with lift_ros."""
    for module, name in _NEEDED.items():
        if importlib.util.find_spec(module) is None:
            raise UserError(
                f"this terminal does not know {name}: source the environment and the workspace that have it (source "
                "install/setup.bash), or run `make setup` in a checkout; lift doctor tells more"
            )
