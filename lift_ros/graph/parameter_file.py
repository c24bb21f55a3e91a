"""What a ROS 2 parameter file says to the nodes of a graph, read as ROS reads it: so it can be checked beforehand."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lift_ros.configuration import read_yaml
from lift_ros.errors import UserError
from lift_ros.graph.parameters import CLOCK, PARAMETERS, Value, check_clock, find

_VALUES = "ros__parameters"
_OF_ROS = ("qos_overrides.", "start_type_description_service")  # parameters that ROS gives to every node
_WILDCARDS = {"*": r"/\w+", "**": r"(?:/\w+)*"}


def read_parameter_file(path: Path, namespace: str) -> dict[str, dict[str, Value]]:
    """Return the parameters for each executable in a namespace; refuse those that a node named in the file lacks.

    Where several sections speak to a node the later one counts. What `/**` says to nodes that do not have such a
    parameter is ignored, as nodes do.
    """
    sections = list(_sections(read_yaml(path), "", path))
    found: dict[str, dict[str, Value]] = {}
    for executable in PARAMETERS:
        matching = [each for each in sections if _matches(each[0], f"/{namespace.strip('/')}/{executable}")]
        values: dict[str, Value] = {}
        for pattern, given in matching:
            values |= _known(given, executable, named=_names(pattern, executable), path=path)
        if values and (_is_always_there(executable) or any(_names(pattern, executable) for pattern, _ in matching)):
            found[executable] = values
    return found


def _is_always_there(executable: str) -> bool:
    """Whether what is said to all nodes can concern this one; it is no wish for a node that nobody needs."""
    return executable not in ("augmentor", "trainer")


def _names(pattern: str, executable: str) -> bool:
    return pattern.endswith(f"/{executable}")


def _sections(content: Any, prefix: str, path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the patterns of node names, with what each says; namespaces may be written as a name or by nesting."""
    if not isinstance(content, dict):
        raise UserError(f"{path}: {prefix or 'it'} is {content!r}; allowed: node names with {_VALUES} below each")
    for key, below in content.items():
        if key == _VALUES:
            if not isinstance(below, dict):
                raise UserError(f"{path}: {_VALUES} of {prefix} is {below!r}; allowed: a mapping of parameters")
            yield prefix, dict(_flat(below, ""))
        else:
            yield from _sections(below, f"{prefix}/{str(key).strip('/')}", path)


def _flat(values: dict[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _matches(pattern: str, name: str) -> bool:
    expression = "".join(_WILDCARDS.get(part, f"/{re.escape(part)}") for part in pattern.split("/")[1:])
    return re.fullmatch(expression, name) is not None


def _known(values: dict[str, Any], executable: str, *, named: bool, path: Path) -> dict[str, Value]:
    known: dict[str, Value] = {}
    for name, value in values.items():
        parameter = find(PARAMETERS[executable], name)
        if parameter is not None:
            known[name] = value
        elif name == CLOCK:
            check_clock(value)
        elif named and not name.startswith(_OF_ROS):
            raise UserError(f"{path}: {executable} has no parameter {name}; see lift_{executable} --help")
    return known
