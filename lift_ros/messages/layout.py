"""Where the fields of a message lie in its bytes (plain CDR), for given sizes of its texts, vectors and pictures."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from itertools import pairwise
from operator import itemgetter
from typing import Any

import numpy as np

from lift_ros.messages.definitions import fields
from lift_ros.messages.errors import MessageError

ENCAPSULATION = 4  # bytes before the first field; alignment counts from behind them
LENGTH, TEXT, PIXELS = "L", "s", "p"  # codes of the module struct, as which these lie in bytes
_TYPES = "bool ?,byte B,char B,uint8 B,int8 b,uint16 H,int16 h,uint32 I,int32 i,uint64 Q,int64 q,float32 f,float64 d"
_CODES = dict(pair.split() for pair in _TYPES.split(","))  # of the module struct


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


def _walk(
    message: str, size_of: Callable[[MessagePart, str, int], int]
) -> Iterator[tuple[MessagePart, str, int, int, int]]:
    """Yield all that lies in a message, lengths included: its part, its code, how many, and where it begins and ends.

    `size_of` tells how many entries of a code follow the length at an offset; offsets count behind the encapsulation.
    """
    end = 0
    for part in parts(message):
        for item in part.kind.value:
            code, count = item[0].replace("?", part.code), 1
            if item.endswith("*"):
                begin = end + -end % 4
                end = begin + 4
                yield part, LENGTH, 1, begin, end
                count = size_of(part, code, begin)
            size = struct.calcsize(f"<{code}")
            begin = end + (-end % size if count else 0)
            end = begin + size * count
            yield part, code, count, begin, end


class Layout:
    """The places of all parts for given sizes; one `struct` reads or writes everything between two pictures.

    Sizes are, in the order of the parts: the length of each text with its NUL, of each vector, and three of each
    picture (frame, encoding, pixels).
    """

    def __init__(self, message: str, sizes: tuple[int, ...], order: str) -> None:
        self.sizes = sizes
        self.structs: list[tuple[struct.Struct, int]] = []  # with where they begin
        self.pixels: list[int] = []  # where each picture's begin
        remaining = iter(sizes)
        form, start, last = f"{order}{ENCAPSULATION}s", 0, 0
        count, stated, ends = 1, [], {}  # of unpacked values: how many, which are lengths, and behind each part
        for part, code, amount, begin, end in _walk(message, lambda *_: next(remaining)):
            if code == PIXELS:
                self.structs.append((struct.Struct(form), start))
                self.pixels.append(ENCAPSULATION + begin)
                form, start = order, ENCAPSULATION + end
            elif amount:
                form += f"{begin - last}x{amount}{code}"
                if code == LENGTH:
                    stated.append(count)
                count += 1 if code == TEXT else amount
            last = end
            ends[part.name] = count
        if form != order:
            self.structs.append((struct.Struct(form), start))
        self.size = ENCAPSULATION + last
        self.places = list(pairwise([1, *ends.values()]))  # of each part among all values: first, and behind last
        self._states = itemgetter(*stated) if len(stated) > 1 else None

    def unpack(self, data: bytes | memoryview) -> tuple[Any, ...]:
        """Return all values."""
        if len(self.structs) == 1:
            return self.structs[0][0].unpack_from(data)
        return tuple(value for form, start in self.structs for value in form.unpack_from(data, start))

    def agrees(self, values: tuple[Any, ...]) -> bool:
        """Whether the sizes that a message states are those of this layout; only then it lies as assumed."""
        return self._states is not None and self._states(values) == self.sizes


@lru_cache(maxsize=1024)
def layout(message: str, sizes: tuple[int, ...], order: str = "<") -> Layout:
    """Return the layout of a message with these sizes."""
    return Layout(message, sizes, order)


def stated_sizes(message: str, data: bytes | memoryview, order: str) -> tuple[int, ...]:
    """Return the sizes that a message states, after checking that it is whole and keeps its definition's bounds."""
    sizes: list[int] = []

    def read(part: MessagePart, code: str, offset: int) -> int:
        (count,) = struct.unpack_from(f"{order}I", data, ENCAPSULATION + offset)
        nul = code == TEXT
        if part.bound and count > part.bound + nul:
            unit = "bytes" if nul else "entries"
            raise MessageError(part.name, f"{count - nul} {unit} long", f"at most {part.bound}")
        sizes.append(count)
        return int(count)

    for part, *_, end in _walk(message, read):
        if ENCAPSULATION + end > len(data):
            raise MessageError(part.name, f"cut off after {len(data)} bytes", "a whole message")
    return tuple(sizes)


def prefix_dtype(message: str, sizes: Mapping[str, int], upto: str) -> np.dtype[Any]:
    """Return the first fields of a message, up to and with `upto`, as a structured dtype for numpy.

    `sizes` names the lengths of vectors and of texts with their NUL; frames are empty. A vector or text `x` is preceded
    by the length that it states, `x_size`.
    """
    names, formats, offsets, size = ["encapsulation"], ["<u4"], [0], ENCAPSULATION
    for part, code, count, begin, end in _walk(message, lambda part, code, _: sizes.get(part.name, int(code == TEXT))):
        if upto in names and part.name != upto:
            break
        if part.kind is Kind.PICTURE:
            raise ValueError(f"{message}.{part.name} is a picture, which ends what has a fixed place")
        size = ENCAPSULATION + end
        if part.name in names:  # the nanoseconds of a stamp, whose seconds have made room for them
            continue
        shape = {Kind.STAMP: "2", Kind.NUMBER: ""}.get(part.kind, f"({count},)" if code != LENGTH else "")
        names.append(f"{part.name}_size" if code == LENGTH else part.name)
        formats.append(f"{shape}<{'u1' if code == TEXT else 'u4' if code in 'iL' else code}")
        offsets.append(ENCAPSULATION + begin)
    return np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": size})
