"""Dotted paths into messages of any type: checked against the type's definition, then read as numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from rosbags.interfaces import Nodetype
from rosbags.typesys.store import Typestore

from lift_ros.array_types import FloatArray
from lift_ros.bags.importing.mapping import suggest
from lift_ros.errors import UserError

_PART = re.compile(r"(?P<name>[A-Za-z_]\w*)(?:\[(?P<index>[^\]]+)\])?")
_SLICE = re.compile(r"(?P<start>\d*)(?P<colon>:)?(?P<stop>\d*)")
_LOOKUP = re.compile(r"(?P<names>[A-Za-z_]\w*)=(?P<name>.+)")
SHOWN_FIELDS = 12
DEPTH = 8  # ends listings of types that contain themselves


@dataclass(frozen=True, slots=True)
class Part:
    """One piece of a path: a field, and which of its elements if it is an array."""

    name: str
    elements: slice | None = None
    single: bool = False
    lookup: tuple[str, str] | None = None  # sibling array of names, name looked for


def parse_path(path: str) -> tuple[Part, ...]:
    """Split `a.b[0:3].c` or `position[name=elbow]` into its parts."""
    parts = []
    for text in re.split(r"\.(?![^\[]*\])", path):
        match = _PART.fullmatch(text)
        if match is None:
            raise UserError(f"field path {path!r}: cannot read {text!r}; write a.b, a[0], a[0:3] or a[name=joint]")
        index = match["index"]
        if index is None:
            parts.append(Part(match["name"]))
        elif lookup := _LOOKUP.fullmatch(index):
            parts.append(Part(match["name"], single=True, lookup=(lookup["names"], lookup["name"])))
        elif (piece := _SLICE.fullmatch(index)) and (piece["colon"] or piece["start"]):
            start = int(piece["start"]) if piece["start"] else 0
            stop = (int(piece["stop"]) if piece["stop"] else None) if piece["colon"] else start + 1
            parts.append(Part(match["name"], slice(start, stop), single=not piece["colon"]))
        else:
            raise UserError(f"field path {path!r}: cannot read the index {index!r}; write 0, 0:3 or name=joint")
    return tuple(parts)


def _element(definition: Any) -> tuple[bool, bool, Any]:
    """Return whether a field is an array, whether its elements are messages, and their type."""
    kind, detail = definition
    array = kind in (Nodetype.ARRAY, Nodetype.SEQUENCE)
    inner_kind, inner = detail[0] if array else (kind, detail)
    return array, inner_kind == Nodetype.NAME, inner


def undefined_types(typestore: Typestore, typename: str) -> list[str]:
    """Return the types that a type needs, itself included, but that are not defined."""
    seen: set[str] = set()
    waiting = [typename]
    while waiting:
        current = waiting.pop()
        if current in seen:
            continue
        seen.add(current)
        for _, definition in typestore.fielddefs.get(current, ([], []))[1]:
            _, message, inner = _element(definition)
            if message:
                waiting.append(str(inner))
    return sorted(name for name in seen if name not in typestore.fielddefs)


def fields_of(typestore: Typestore, typename: str, depth: int = DEPTH) -> Iterator[str]:
    """Yield the paths of all values in a message type; `[]` marks arrays of messages."""
    for name, definition in typestore.fielddefs[typename][1]:
        array, message, inner = _element(definition)
        if not message or depth == 0:
            yield name
        else:
            for below in fields_of(typestore, str(inner), depth - 1):
                yield f"{name}{'[]' if array else ''}.{below}"


def check_path(typestore: Typestore, topic: str, typename: str, path: str, *, numeric: bool = True) -> tuple[Part, ...]:
    """Return the path's parts if the type has such a value, else say which fields it has."""
    parts = parse_path(path)
    current = typename
    for number, part in enumerate(parts):
        definitions = dict(typestore.fielddefs[current][1])
        if part.name not in definitions or (part.lookup and part.lookup[0] not in definitions):
            raise UserError(_no_such_field(typestore, topic, typename, path))
        array, message, inner = _element(definitions[part.name])
        if (part.elements is not None or part.lookup) and not array:
            raise UserError(f"topic {topic}, field {path!r}: {part.name} is no array of {current} and takes no index")
        last = number == len(parts) - 1
        if message:
            if last:
                raise UserError(_no_such_field(typestore, topic, typename, path))
            if array and not part.single:
                raise UserError(
                    f"topic {topic}, field {path!r}: {part.name} is an array of messages; write {part.name}[0]"
                )
            current = str(inner)
        elif not last:
            raise UserError(_no_such_field(typestore, topic, typename, path))
        elif numeric and inner[0] in ("string", "wstring"):
            raise UserError(f"topic {topic}, field {path!r}: is text of {typename}; only numbers can be imported")
    return parts


def _no_such_field(typestore: Typestore, topic: str, typename: str, path: str) -> str:
    known = list(fields_of(typestore, typename))
    below = [name for name in known if name.startswith(f"{path}.")]
    hint = "; it is a message, name a value in it." if below else suggest(path, known)
    shown = below or known
    more = f" and {len(shown) - SHOWN_FIELDS} more" if len(shown) > SHOWN_FIELDS else ""
    return f"topic {topic} ({typename}) has no value {path!r}{hint} Fields: {', '.join(shown[:SHOWN_FIELDS])}{more}"


def value_at(message: Any, parts: tuple[Part, ...]) -> Any:
    """Return what a path leads to in a message; IndexError or LookupError where an array is too short."""
    current = message
    for part in parts:
        value = getattr(current, part.name)
        if part.lookup is not None:
            names = list(getattr(current, part.lookup[0]))
            if part.lookup[1] not in names:
                raise LookupError(part.lookup[1])
            value = value[names.index(part.lookup[1])]
        elif part.elements is not None:
            value = value[part.elements.start] if part.single else value[part.elements]
        current = value
    return current


def numbers_at(message: Any, paths: tuple[tuple[Part, ...], ...]) -> FloatArray:
    """Return the values of several paths as one vector; TypeError or ValueError where one is no number."""
    return np.concatenate([np.asarray(value_at(message, parts), dtype=np.float64).ravel() for parts in paths])
