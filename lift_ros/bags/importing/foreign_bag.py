"""Any rosbag of ROS 1 or ROS 2 as decoded messages, with the definitions that it holds, and dotted paths into them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from rosbags.interfaces import Connection, MessageDefinitionFormat, Nodetype
from rosbags.rosbag1 import Reader as Reader1
from rosbags.rosbag2 import Reader as Reader2
from rosbags.typesys import Stores, get_types_from_idl, get_types_from_msg, get_typestore
from rosbags.typesys.store import Typestore

from lift_ros.configuration import listed, suggest
from lift_ros.errors import UserError

LAST_TIME = 2**62  # [ns], in the year 2116; leaves room to add and subtract
_IDL_SEPARATOR = "=" * 80 + "\n"
# A name, and in brackets a number, a slice, or the name of a sibling array and what to look for in it.
_PART = re.compile(r"([A-Za-z_]\w*)(?:\[(?:(\d+)|(\d*):(\d*)|([A-Za-z_]\w*)=(.+))\])?")
DEPTH = 8  # ends listings of types that contain themselves


class ForeignBag:
    """An open bag whose topics are decoded on demand.

    rosbags' AnyReader would parse all definitions at once. Here only those of topics that are asked for are parsed,
    so that a topic nobody needs cannot make a bag unreadable: definitions of service events are often incomplete.
    """

    def __init__(self, path: Path, reader: Reader1 | Reader2) -> None:
        self.path = path
        self.dropped: Counter[str] = Counter()
        self.types = cache(self._types_of)
        self._reader: Any = reader
        self._connections = {topic: info.connections for topic, info in sorted(reader.topics.items())}

    @property
    def topics(self) -> dict[str, str]:
        """Topic names and their message types."""
        return {topic: str(connections[0].msgtype) for topic, connections in self._connections.items()}

    def connections(self, topic: str) -> list[Connection]:
        """Return the connections of a topic, or say which topics there are."""
        if topic not in self._connections:
            there = listed([f"{name} ({typename})" for name, typename in self.topics.items()])
            raise UserError(f"bag {self.path} has no topic {topic}{suggest(topic, self.topics)} Topics: {there}")
        return self._connections[topic]

    def typename(self, topic: str) -> str:
        """Return the type of a topic's messages."""
        return str(self.connections(topic)[0].msgtype)

    def _types_of(self, topic: str) -> Typestore:
        """Return the types needed to decode a topic: from the bag, or the common ones for bags without definitions."""
        connection = self.connections(topic)[0]
        definition, typename = connection.msgdef, connection.msgtype
        what = f"bag {self.path}: the definition of {typename} (topic {topic})"
        if definition.format == MessageDefinitionFormat.NONE:
            store = get_typestore(Stores.LATEST)
            if typename not in store.fielddefs:
                remedy = "convert the bag to MCAP where that package is installed: ros2 bag convert"
                raise UserError(f"{what} is missing, and it is none of the common types; {remedy}")
            return store
        store = get_typestore(Stores.EMPTY)
        try:
            if definition.format == MessageDefinitionFormat.MSG:
                store.register(get_types_from_msg(definition.data, typename))
            else:
                parts = definition.data.split(f"{_IDL_SEPARATOR}IDL: ")
                # Where there are several, each begins with the name of its type on a line of its own.
                for text in [part.split("\n", 1)[1] for part in parts[1:]] or parts:
                    store.register(get_types_from_idl(text))
            store.generate_msgdef(typename, ros_version=2)  # fails where a type is used but not defined
        except Exception as error:  # the parsers raise whatever a damaged definition provokes
            raise UserError(f"{what} cannot be used: {error}") from error
        return store

    def messages(self, topic: str, start: int | None = None, stop: int | None = None) -> Iterator[tuple[int, bytes]]:
        """Yield the received times and raw messages of one topic."""
        connections = self.connections(topic)
        try:
            for _, time, data in self._reader.messages(connections, start, stop):
                if 0 <= time <= LAST_TIME:
                    yield time, data
                else:
                    self.dropped[f"{topic}: received at a time that does not exist"] += 1
        except Exception as error:  # readers raise struct, zstd, sqlite and assertion errors on damaged files
            raise UserError(f"bag {self.path} is damaged at topic {topic}: {error!r}; try `mcap recover`") from error

    def decoded(self, topic: str, start: int | None = None, stop: int | None = None) -> Iterator[tuple[int, Any]]:
        """Yield the received times and decoded messages of one topic; what cannot be decoded is counted."""
        decode = self.decoder(topic)
        for time, data in self.messages(topic, start, stop):
            try:
                message = decode(data)
            except Exception:  # generated decoders raise struct, index, unicode and assertion errors alike
                self.dropped[f"{topic}: message cannot be decoded"] += 1
                continue
            yield time, message

    def decoder(self, topic: str) -> Callable[[bytes], Any]:
        """Return what decodes the messages of a topic."""
        store, typename = self.types(topic), self.typename(topic)
        decode = store.deserialize_ros1 if isinstance(self._reader, Reader1) else store.deserialize_cdr
        return lambda data: decode(data, typename)

    def overview(self) -> dict[str, tuple[list[int], bytes]]:
        """Return when the messages of each topic were received, and the first of them, in one pass through the bag."""
        times: dict[str, list[int]] = {topic: [] for topic in self._connections}
        first: dict[str, bytes] = {}
        try:
            for connection, time, data in self._reader.messages():
                times[connection.topic].append(time)
                first.setdefault(connection.topic, data)
        except Exception as error:  # as in `messages`
            raise UserError(f"bag {self.path} is damaged: {error!r}; try `mcap recover`") from error
        return {topic: (received, first.get(topic, b"")) for topic, received in times.items()}


@contextmanager
def open_bag(path: Path) -> Iterator[ForeignBag]:
    """Open a rosbag2 directory, a single .mcap or .db3 file, or a ROS 1 .bag."""
    if not path.exists():
        raise UserError(f"bag {path} does not exist")
    if path.is_dir() and not (path / "metadata.yaml").exists():
        files = sorted(entry.name for entry in path.iterdir() if entry.suffix in (".mcap", ".db3"))
        remedy = f"name one of its files instead: {', '.join(files)}" if files else "it is no bag"
        raise UserError(f"bag {path} has no metadata.yaml; {remedy}")
    try:
        reader = Reader1(path) if path.suffix == ".bag" else Reader2(path)
        reader.open()
    except Exception as error:  # readers raise struct, zstd, sqlite and assertion errors on files that are no bags
        expected = "expected .mcap, .db3, .bag or their directory"
        raise UserError(f"bag {path} cannot be opened: {error}; {expected}") from error
    with closing(reader):
        yield ForeignBag(path, reader)


class Part(NamedTuple):
    """One piece of a path: a field, and which of its elements if it is an array.

    An element is looked for by its number or by its name in a sibling array: (sibling, name).
    """

    name: str
    at: int | slice | tuple[str, str] | None = None


FieldPath = tuple[Part, ...]


def parse_path(path: str) -> FieldPath:
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


class Field(NamedTuple):
    """A value of a message: the path to it, its type, and how many there are (1 unless it is an array)."""

    path: str
    kind: str
    size: int


def values_of(types: Typestore, typename: str, message: Any, depth: int = DEPTH) -> Iterator[Field]:
    """Yield all values of a message with paths that `check_path` takes; of arrays of messages only the first."""
    definitions = types.fielddefs[typename][1]
    for name, definition in definitions:
        array, is_message, inner = _element(definition)
        value = getattr(message, name)
        if not is_message:
            yield from _entries(message, name, str(inner[0]), len(value) if array else 1)
        elif depth and (not array or len(value)):
            prefix, content = (f"{name}[0]", value[0]) if array else (name, value)
            for below in values_of(types, str(inner), content, depth - 1):
                yield below._replace(path=f"{prefix}.{below.path}")


def _entries(message: Any, name: str, kind: str, size: int) -> Iterator[Field]:
    """Yield one field, or one per entry where the message names its entries, as joint states do."""
    names = getattr(message, "name", None)
    if name != "name" and isinstance(names, list) and names and len(names) == size:
        yield from (Field(f"{name}[name={entry}]", kind, 1) for entry in names)
    else:
        yield Field(name, kind, size)


def check_path(bag: ForeignBag, topic: str, path: str, *, numeric: bool = True) -> FieldPath:
    """Return the path's parts if the type has such a value, else say which fields it has."""
    parts, types = parse_path(path), bag.types(topic)
    current = typename = bag.typename(topic)
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


def value_at(message: Any, path: FieldPath) -> Any:
    """Return what a path leads to in a message; LookupError where an array is too short or lacks the name."""
    for name, index in path:
        value = getattr(message, name)
        if isinstance(index, tuple):
            index = dict(zip(getattr(message, index[0]), range(len(value)), strict=False))[index[1]]
        message = value if index is None else value[index]
    return message
