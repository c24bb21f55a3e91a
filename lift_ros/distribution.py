"""Which ROS this is, without loading any of it."""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
from functools import lru_cache

_BY_VERSION = {"7": "jazzy", "9": "kilted"}  # by the first number of rclpy's version


@lru_cache(maxsize=1)
def rclpy_version() -> str:
    """Return the version of rclpy, whether it came from PyPI or from apt."""
    for name in ("ros-rclpy", "rclpy"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            return importlib.metadata.version(name)
    return "unknown"


def distribution() -> str:
    """Return the name of this ROS: what its environment says, or what follows from the version of rclpy."""
    return os.environ.get("ROS_DISTRO") or _BY_VERSION.get(rclpy_version().split(".")[0], "unknown")
