"""Where the fields of a message lie in its bytes (plain CDR), for given sizes of its texts, vectors and pictures."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from operator import itemgetter
from typing import Any

import numpy as np

from lift_ros.messages.definitions import fields
from lift_ros.messages.errors import MessageError

ENCAPSULATION = 4  # bytes before the first field; alignment counts from behind them
_CODES = {
    "bool": "?",
    "byte": "B",
    "char": "B",
    "uint8": "B",
    "int8": "b",
    "uint16": "H",
    "int16": "h",
    "uint32": "I",
    "int32": "i",
    "uint64": "Q",
    "int64": "q",
    "float32": "f",
    "float64": "d",
}


class Kind(Enum):
    """How a part of a message is laid out: its numbers, as codes of the module struct, and what states its length."""

    NUMBER = ("?",)  # "?" stands for the part's own code
    STAMP = ("i", "I")
    TEXT = ("s*",)  # "*": a length comes first
    VECTOR = ("?*",)
    PICTURE = ("i", "I", "s*", "I", "I", "s*", "B", "I", "p*")  # a sensor_msgs/Image; "p": pixels


@dataclass(frozen=True)
class MessagePart:
    """A field, or a part of the header."""

    name: str
    kind: Kind
    code: str = ""  # of the module struct, of a number or of a vector's entries
    bound: int = 0

    @property
    def items(self) -> Iterator[tuple[str, bool]]:
        """The codes of what it is made of, and whether a length comes before each."""
        for item in self.kind.value:
            yield item[0].replace("?", self.code), item.endswith("*")


@lru_cache
def parts(message: str) -> tuple[MessagePart, ...]:
    """Return the parts of a message in their order."""
    found: list[MessagePart] = []
    for field in fields(message):
        if field.type_name == "std_msgs/msg/Header":
            found += (MessagePart(field.name, Kind.STAMP), MessagePart(f"{field.name}.frame_id", Kind.TEXT))
        elif field.type_name == "builtin_interfaces/msg/Time":
            found.append(MessagePart(field.name, Kind.STAMP))
        elif field.type_name == "sensor_msgs/msg/Image":
            found.append(MessagePart(field.name, Kind.PICTURE))
        elif field.type_name == "string" and not field.is_sequence:
            found.append(MessagePart(field.name, Kind.TEXT, bound=field.bound))
        elif field.type_name in _CODES:
            kind = Kind.VECTOR if field.is_sequence else Kind.NUMBER
            found.append(MessagePart(field.name, kind, _CODES[field.type_name], field.bound))
        else:
            raise NotImplementedError(f"{message}.{field.name} is a {field.type_name}, which no codec here knows")
    return tuple(found)


class Layout:
    """The places of all parts for given sizes; one `struct` reads or writes everything between two pictures.

    Sizes are, in the order of the parts: the length of each text with its NUL, of each vector, and three of each
    picture (frame, encoding, pixels).
    """

    def __init__(self, message: str, sizes: tuple[int, ...], order: str) -> None:
        self.sizes = sizes
        self.structs: list[tuple[struct.Struct, int]] = []  # with where they begin
        self.places: list[tuple[int, int]] = []  # of each part among all unpacked values: first, and behind last
        self.pixels: list[int] = []  # where each picture's begin
        self._remaining = list(sizes)
        self._formats = [order, f"{ENCAPSULATION}s"]
        self._begin = self._offset = 0
        self._count = 1
        self._stated: list[int] = []
        for part in parts(message):
            first = self._count
            self._add_part(part)
            self.places.append((first, self._count))
        self._end_struct()
        self.size = ENCAPSULATION + self._offset
        self._states = itemgetter(*self._stated) if len(self._stated) > 1 else None

    def unpack(self, data: bytes | memoryview) -> tuple[Any, ...]:
        """Return all values."""
        if len(self.structs) == 1:
            return self.structs[0][0].unpack_from(data)
        return tuple(value for form, start in self.structs for value in form.unpack_from(data, start))

    def agrees(self, values: tuple[Any, ...]) -> bool:
        """Whether the sizes that a message states are those of this layout; only then it lies as assumed."""
        return self._states is not None and self._states(values) == self.sizes

    def _add_part(self, part: MessagePart) -> None:
        for code, sized in part.items:
            if sized:
                self._stated.append(self._count)
                self._add("I")
            size = self._remaining.pop(0) if sized else 1
            if code == "p":
                self._end_struct()
                self.pixels.append(ENCAPSULATION + self._offset)
                self._offset += size
                self._begin = self._offset
            elif size:
                self._add(code, size)

    def _add(self, code: str, count: int = 1) -> None:
        size = struct.calcsize(f"<{code}")
        padding = -self._offset % size
        self._formats.append(f"{padding}x{count}{code}" if padding else f"{count}{code}")
        self._offset += padding + size * count
        self._count += 1 if code == "s" else count

    def _end_struct(self) -> None:
        if self._formats[1:]:
            start = 0 if not self.structs else ENCAPSULATION + self._begin
            self.structs.append((struct.Struct("".join(self._formats)), start))
        self._formats = self._formats[:1]


@lru_cache(maxsize=1024)
def layout(message: str, sizes: tuple[int, ...], order: str = "<") -> Layout:
    """Return the layout of a message with these sizes."""
    return Layout(message, sizes, order)


def stated_sizes(message: str, data: bytes | memoryview, order: str) -> tuple[int, ...]:
    """Return the sizes that a message states, after checking that it is whole and keeps its definition's bounds."""
    body = memoryview(data)[ENCAPSULATION:]
    length = struct.Struct(f"{order}I").unpack_from
    sizes: list[int] = []
    offset = 0
    for part in parts(message):
        for code, sized in part.items:
            count = 1
            if sized:
                offset += -offset % 4 + 4
                if offset > len(body):
                    raise MessageError(part.name, f"cut off after {len(data)} bytes", "a whole message")
                (count,) = length(body, offset - 4)
                sizes.append(count)
            nul = code == "s"
            if sized and part.bound and count > part.bound + nul:
                unit = "bytes" if nul else "entries"
                raise MessageError(part.name, f"{count - nul} {unit} long", f"at most {part.bound}")
            if count:
                size = struct.calcsize(f"<{code}")
                offset += -offset % size + size * count
            if offset > len(body):
                raise MessageError(part.name, f"cut off after {len(data)} bytes", "a whole message")
    return tuple(sizes)


def prefix_dtype(message: str, sizes: Mapping[str, int], upto: str) -> np.dtype[Any]:
    """Return the first fields of a message, up to and with `upto`, as a structured dtype for numpy.

    `sizes` names the lengths of vectors and of texts with their NUL; frames are empty. A vector or text `x` is preceded
    by the length that it states, `x_size`.
    """
    names, formats, offsets = ["encapsulation"], ["<u4"], [0]
    end = 0

    def add(name: str, code: str, count: int | None = None) -> None:
        nonlocal end
        kind = np.dtype(f"<{code}")
        end += -end % kind.itemsize if count != 0 else 0
        names.append(name)
        formats.append(kind if count is None else (kind, (count,)))  # type: ignore[arg-type]
        offsets.append(ENCAPSULATION + end)
        end += kind.itemsize * (1 if count is None else count)

    for part in parts(message):
        if part.kind is Kind.PICTURE:
            raise ValueError(f"{message}.{part.name} is a picture, which ends what has a fixed place")
        if part.kind in (Kind.TEXT, Kind.VECTOR):
            text = part.kind is Kind.TEXT
            add(f"{part.name}_size", "u4")
            add(part.name, "u1" if text else part.code, sizes.get(part.name, 1 if text else 0))
        elif part.kind is Kind.STAMP:
            add(part.name, "u4", 2)
        else:
            add(part.name, part.code)
        if part.name == upto:
            break
    size = ENCAPSULATION + end
    return np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": size})
