"""Dotted paths into messages of any type: checked against the type's definition, then read as numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from rosbags.interfaces import Nodetype
from rosbags.typesys.store import Typestore

from lift_ros.array_types import FloatArray
from lift_ros.configuration import listed, suggest
from lift_ros.errors import UserError

# A name, and in brackets a number, a slice, or the name of a sibling array and what to look for in it.
_PART = re.compile(r"([A-Za-z_]\w*)(?:\[(?:(\d+)|(\d*):(\d*)|([A-Za-z_]\w*)=(.+))\])?")
DEPTH = 8  # ends listings of types that contain themselves


class Part(NamedTuple):
    """One piece of a path: a field, and which of its elements if it is an array.

    An element is looked for by its number or by its name in a sibling array: (sibling, name).
    """

    name: str
    at: int | slice | tuple[str, str] | None = None


Path = tuple[Part, ...]


def parse_path(path: str) -> Path:
    """Split `a.b[0:3].c` or `position[name=elbow]` into its parts."""
    parts = []
    for text in re.split(r"\.(?![^\[]*\])", path):
        match = _PART.fullmatch(text)
        if match is None:
            raise UserError(f"field path {path!r}: cannot read {text!r}; write a.b, a[0], a[0:3] or a[name=joint]")
        name, number, start, stop, names, wanted = match.groups()
        if number is not None:
            parts.append(Part(name, int(number)))
        elif start is not None:
            parts.append(Part(name, slice(int(start or 0), int(stop) if stop else None)))
        else:
            parts.append(Part(name, (names, wanted) if names else None))
    return tuple(parts)


def _element(definition: Any) -> tuple[bool, bool, Any]:
    """Return whether a field is an array, whether its elements are messages, and their type."""
    kind, detail = definition
    array = kind in (Nodetype.ARRAY, Nodetype.SEQUENCE)
    inner_kind, inner = detail[0] if array else (kind, detail)
    return array, inner_kind == Nodetype.NAME, inner


def fields_of(types: Typestore, typename: str, depth: int = DEPTH) -> Iterator[str]:
    """Yield the paths of all values in a message type; `[]` marks arrays of messages."""
    for name, definition in types.fielddefs[typename][1]:
        array, message, inner = _element(definition)
        if not message or depth == 0:
            yield name
        else:
            for below in fields_of(types, str(inner), depth - 1):
                yield f"{name}{'[]' if array else ''}.{below}"


def check_path(types: Typestore, topic: str, typename: str, path: str, *, numeric: bool = True) -> Path:
    """Return the path's parts if the type has such a value, else say which fields it has."""
    parts = parse_path(path)
    current = typename
    for number, part in enumerate(parts):
        definitions = dict(types.fielddefs[current][1])
        sibling = part.at[0] if isinstance(part.at, tuple) else part.name
        array, message, inner = _element(definitions.get(part.name, (None, None)))
        # Only the last part of a path is a value, and no message.
        if part.name not in definitions or sibling not in definitions or message == (number == len(parts) - 1):
            raise UserError(_no_such_value(types, topic, typename, path))
        if part.at is not None and not array:
            raise UserError(f"topic {topic}, field {path!r}: {part.name} is no array of {current} and takes no index")
        if message and array and not isinstance(part.at, int | tuple):
            raise UserError(f"topic {topic}, field {path!r}: {part.name} is an array of messages; write {part.name}[0]")
        if numeric and not message and inner[0] in ("string", "wstring"):
            raise UserError(f"topic {topic}, field {path!r}: is text of {typename}; only numbers can be imported")
        current = str(inner)
    return parts


def _no_such_value(types: Typestore, topic: str, typename: str, path: str) -> str:
    known = list(fields_of(types, typename))
    below = [name for name in known if name.startswith(f"{path}.")]
    hint = "; it is a message, name a value in it." if below else suggest(path, known)
    return f"topic {topic} ({typename}) has no value {path!r}{hint} Fields: {listed(below or known)}"


def value_at(message: Any, path: Path) -> Any:
    """Return what a path leads to in a message; LookupError where an array is too short or lacks the name."""
    for name, index in path:
        value = getattr(message, name)
        if isinstance(index, tuple):
            index = dict(zip(getattr(message, index[0]), range(len(value)), strict=False))[index[1]]
        message = value if index is None else value[index]
    return message


def numbers_at(message: Any, paths: tuple[Path, ...]) -> FloatArray:
    """Return the values of several paths as one vector."""
    return np.concatenate([np.asarray(value_at(message, path), dtype=np.float64).ravel() for path in paths])
