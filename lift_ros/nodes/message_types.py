"""Message types by the names that bags and the graph give them: found among those that ROS has installed."""

from __future__ import annotations

import importlib
import os
import re
import sys
from pathlib import Path
from typing import Any

from lift_ros.untrusted import brief

_NAME = re.compile(r"([a-z][a-z0-9_]*)/msg/([A-Za-z][A-Za-z0-9_]*)")


def definition_file(type_name: str) -> Path:
    """Return the installed definition of `package/msg/Name`; ImportError where there is none."""
    match = _NAME.fullmatch(type_name)
    if match is None:
        raise ImportError(f"{brief(type_name)} is no message type of the form package/msg/Name")
    package, name = match.groups()
    prefixes = [*filter(None, os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)), sys.prefix]
    for prefix in prefixes:
        path = Path(prefix) / "share" / package / "msg" / f"{name}.msg"
        if path.is_file():
            return path
    raise ImportError(f"{type_name} has no definition below {', '.join(prefixes)}; source the workspace that has it")


def message_class(type_name: str) -> Any:
    """Return the class of an installed message type; ImportError where it is none.

    Names come from bags: no module is imported of which ROS does not say that it holds messages.
    """
    definition_file(type_name)
    package, _, name = type_name.split("/")
    try:
        return getattr(importlib.import_module(f"{package}.msg"), name)
    except AttributeError as error:
        raise ImportError(f"package {package} has no message {name}") from error
