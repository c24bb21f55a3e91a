"""Records to and from the bytes that DDS and bags carry, by the table that msg/*.msg give.

A record is any dataclass whose attributes bear the names of a message's fields, or are said to. Writing is a function
made for the message, since it is on the way of every step; reading unpacks everything at once where a message has the
sizes of one read before. Every value is checked in both directions: what was observed is finite, what somebody wishes
(a proposal, the action of a command) may hold NaN, for arbiter and plant judge it and say why they refuse it.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping
from enum import IntEnum
from functools import lru_cache
from typing import Any, TypeVar, get_type_hints

import numpy as np

from lift_ros.messages.definitions import constants
from lift_ros.messages.errors import MessageError
from lift_ros.messages.layout import ENCAPSULATION, Kind, Layout, MessagePart, layout, parts, stated_sizes
from lift_ros.messages.pictures import image_array, image_fields

LITTLE_ENDIAN = b"\x00\x01\x00\x00"
NANO = 1_000_000_000
_LARGEST = {"B": 2**8 - 1, "H": 2**16 - 1, "I": 2**32 - 1, "Q": 2**64 - 1}

# What fields may hold besides finite numbers. A number is finite or NaN, which says unknown, unless a range is given.
RANGES: Mapping[str, tuple[float, float, bool]] = {"draw": (0.0, 1.0, True), "p": (0.0, 1.0, False)}  # NaN allowed?
WISHES = {"Proposal.action", "Command.action", "Step.logging_proposal", "Step.augmentor_proposal"}
PROSE = {"reason"}  # cut to its bound instead of refused for its length

Record = TypeVar("Record")
Made = TypeVar("Made")


def make_pair(
    message: str, record: type[Record], names: Mapping[str, str] | None = None
) -> tuple[Callable[..., bytes], Callable[..., Record]]:
    """Return the functions that write and read a record; `names` are attributes that have not their field's name."""
    given = names or {}
    return make_encoder(message, given), make_decoder(message, record, get_type_hints(record), given)


# --- writing ---------------------------------------------------------------------------------------------------------


def make_encoder(
    message: str, names: Mapping[str, str] | None = None, fixed: Mapping[str, Any] | None = None
) -> Callable[..., bytes]:
    """Make the function that writes a message: one check over all vectors and one call that packs everything.

    It takes a record and, where that has none, the header's time in nanoseconds and frame. An attribute may lie deeper
    ("episode.seed"); `fixed` gives fields that the record does not have.
    """
    names, fixed = names or {}, fixed or {}
    source = _EncoderSource(message, names, fixed)
    scope: dict[str, Any] = {
        "fixed": fixed,
        "divmod": divmod,
        "error": struct.error,
        "explain": lambda record, reason: _explain(message, names, fixed, record, reason),
        "image_fields": image_fields,
        "layout": layout,
        "NANO": NANO,
        "text": _text,
        "HEAD": LITTLE_ENDIAN,
    }
    exec(compile(source.text(), f"<writer of {message}>", "exec"), scope)
    encode: Callable[..., bytes] = scope["encode"]
    return encode


class _EncoderSource:
    """The text of a message's writer."""

    def __init__(self, message: str, names: Mapping[str, str], fixed: Mapping[str, Any]) -> None:
        self._message, self._names, self._fixed = message, names, fixed
        self._lines: list[str] = []
        self._sizes: list[str] = []
        self._packs: list[list[str]] = [["HEAD"]]
        self._pixels: list[str] = []
        self._finite: list[str] = []
        self._conditions: list[str] = []
        for number, part in enumerate(parts(message)):
            self._add(part, f"v{number}")

    def text(self) -> str:
        pieces = []
        for number, arguments in enumerate(self._packs):
            if arguments:
                pieces.append(f"forms[{number}][0].pack({', '.join(arguments)})")
            if number < len(self._pixels):
                pieces.append(self._pixels[number])
        result = pieces[0] if len(pieces) == 1 else f"b''.join(({', '.join(pieces)}))"
        if self._finite:
            total = " + ".join(f"sum({name})" for name in self._finite)
            self._lines.append(f"total = {total}")
            self._conditions.append("total - total != 0.0")
        if self._conditions:
            self._lines.append(f"if {' or '.join(self._conditions)}: explain(record, None)")
        sizes = "".join(f"{size}, " for size in self._sizes)
        self._lines += [f"forms = layout({self._message!r}, ({sizes})).structs", f"return {result}"]
        body = "\n".join(f"        {line}" for line in self._lines)
        return (
            "def encode(record, time_ns=0, frame_id=''):\n    try:\n"
            f"{body}\n"
            "    except (error, TypeError, AttributeError, OverflowError) as reason:\n        explain(record, reason)\n"
        )

    def _add(self, part: MessagePart, name: str) -> None:
        value = self._value(part)
        match part.kind:
            case Kind.NUMBER:
                self._add_number(part, name, value)
            case Kind.STAMP:
                self._lines.append(f"{name}s, {name}n = divmod({value}, NANO)")
                self._packs[-1] += (f"{name}s", f"{name}n")
                self._conditions.append(f"{name}s < 0")
            case Kind.TEXT:
                self._lines.append(f"{name} = text({part.name!r}, {value}, {part.bound})")
                self._sizes.append(f"len({name})")
                self._packs[-1] += (f"len({name})", name)
            case Kind.VECTOR:
                self._lines.append(f"{name} = {value}.tolist()")
                self._sizes.append(f"len({name})")
                self._packs[-1] += (f"len({name})", f"*{name}")
                if f"{self._message}.{part.name}" not in WISHES and part.code in "df":
                    self._finite.append(name)
                if part.bound:
                    self._conditions.append(f"len({name}) > {part.bound}")
            case Kind.PICTURE:
                self._lines.append(
                    f"({name}h, {name}w, {name}e, {name}r), {name} = image_fields({part.name!r}, {value})"
                )
                self._sizes += ("1", f"len({name}e)", f"len({name})")
                # A picture has the time of what it was seen with.
                self._packs[-1] += ("v0s", "v0n", "1", "b'\\0'", f"{name}h", f"{name}w", f"len({name}e)", f"{name}e")
                self._packs[-1] += ("0", f"{name}r", f"len({name})")
                self._pixels.append(name)
                self._packs.append([])

    def _add_number(self, part: MessagePart, name: str, value: str) -> None:
        if part.name in self._fixed:
            self._packs[-1].append(value)
            return
        self._lines.append(f"{name} = {value}")
        self._packs[-1].append(name)
        if known := constants(self._message).get(part.name):
            self._conditions.append(f"{name} not in {set(known)}")
        elif part.name in RANGES:
            low, high, unknown = RANGES[part.name]
            self._conditions.append(f"not ({low} <= {name} <= {high}{f' or {name} != {name}' if unknown else ''})")
        elif part.code in "df":
            self._conditions.append(f"({name} == {name} and {name} - {name} != 0.0)")

    def _value(self, part: MessagePart) -> str:
        if part.name in self._fixed:
            return f"fixed[{part.name!r}]"
        if part.name == "header.frame_id":
            return "frame_id"
        if part.name == "header" and "header" not in self._names:
            return "time_ns"
        return f"record.{self._names.get(part.name, part.name)}"


@lru_cache(maxsize=1024)
def _text(name: str, value: str, bound: int) -> bytes:
    data = value.encode("utf-8", "replace" if name in PROSE else "strict")
    if name in PROSE:
        data = data.replace(b"\0", b" ")
        if len(data) > bound:
            data = data[: bound - 3].decode("utf-8", "ignore").encode() + "…".encode()
    if bound and len(data) > bound:
        raise MessageError(name, f"{len(data)} bytes long", f"at most {bound}")
    if b"\0" in data:
        raise MessageError(name, repr(value), "text without NUL")
    return data + b"\0"


def _explain(message: str, names: Mapping[str, str], fixed: Mapping[str, Any], record: Any, reason: object) -> None:
    """Find the value that does not fit and raise the error that names it."""
    for part in parts(message):
        if part.name in fixed or part.name.endswith(".frame_id"):
            continue
        path = names.get(part.name, "" if part.name == "header" else part.name)
        value = record
        for name in path.split(".") if path else ():
            value = getattr(value, name)
        if path:
            _check(message, part, value)
    if reason is not None:  # else the sum over finite entries was too large for a number, which is no fault
        raise MessageError("a field", reason, f"what {message} can hold")


def _check(message: str, part: MessagePart, value: Any) -> None:
    if part.kind is Kind.VECTOR:
        if not isinstance(value, np.ndarray) or value.ndim != 1:
            shape = getattr(value, "shape", None)
            raise MessageError(
                part.name, f"an array of shape {shape}" if shape is not None else repr(value), "a vector"
            )
        check_vector(message, part, value.tolist())
    elif part.kind is Kind.NUMBER:
        if part.code in "df":
            check_number(part.name, float(value))
        elif part.code in _LARGEST and not 0 <= value <= _LARGEST[part.code]:
            raise MessageError(part.name, value, f"between 0 and {_LARGEST[part.code]}")
        check_constant(message, part.name, value)
    elif part.kind is Kind.STAMP and not 0 <= value < 2**31 * NANO:
        raise MessageError(part.name, value, f"nanoseconds between 0 and {2**31 * NANO - 1}")


def check_constant(message: str, name: str, value: int) -> None:
    """Refuse a value that is none of its field's constants."""
    known = constants(message).get(name)
    if known and value not in known:
        raise MessageError(name, value, "one of " + ", ".join(f"{key} ({word})" for key, word in known.items()))


def check_vector(message: str, part: MessagePart, values: list[float]) -> None:
    """Refuse a vector that is too long, or not finite where it must be."""
    if part.bound and len(values) > part.bound:
        raise MessageError(part.name, f"{len(values)} entries long", f"at most {part.bound}")
    if f"{message}.{part.name}" not in WISHES and not all(map(math.isfinite, values)):
        raise MessageError(part.name, values, "finite entries")


def check_number(name: str, value: float) -> None:
    """Refuse a number outside its range; NaN says unknown where that is allowed."""
    low, high, unknown = RANGES.get(name, (-math.inf, math.inf, True))
    if value != value:
        if not unknown:
            raise MessageError(name, value, f"between {low} and {high}")
    elif math.isinf(value) or not low <= value <= high:
        raise MessageError(name, value, f"finite and between {low} and {high}")


# --- reading ---------------------------------------------------------------------------------------------------------

_recent: dict[tuple[str, str, int], Layout] = {}  # by message, byte order and length


def _unpacked(message: str, data: bytes | memoryview) -> tuple[Layout, tuple[Any, ...]]:
    if len(data) < ENCAPSULATION or data[0] != 0 or data[1] not in (0, 1):
        raise MessageError("the message", f"{bytes(data[:4])!r}…", "plain CDR")
    order = "<" if data[1] else ">"
    key = (message, order, len(data))
    known = _recent.get(key)
    if known is not None:
        values = known.unpack(data)
        if known.agrees(values):
            return known, values
    found = layout(message, stated_sizes(message, data, order), order)
    if len(_recent) > 256:
        _recent.clear()
    _recent[key] = found
    return found, found.unpack(data)


def make_decoder(
    message: str, make: Callable[..., Made], hints: Mapping[str, Any], names: Mapping[str, str]
) -> Callable[..., Made]:
    """Make the function that reads a message: it calls `make` with the attributes that `hints` name, by name.

    It takes bytes and a time in nanoseconds to put instead of the header's, where one is given.
    """
    every = parts(message)
    scope: dict[str, Any] = {
        "array": np.array,
        "check_number": check_number,
        "check_vector": check_vector,
        "member": _member,
        "NANO": NANO,
        "read_picture": _read_picture,
        "read_text": _read_text,
        "unpacked": _unpacked,
        "kinds": hints,
        "make": make,
        "message": message,
        "parts": every,
    }
    places = ", ".join(f"(a{number}, b{number})" for number in range(len(every)))
    lines = ["place, flat = unpacked(message, data)", f"{places}, = place.places"]
    results = []
    for number, part in enumerate(every):
        attribute = names.get(part.name, part.name)
        if attribute in hints:
            picture = sum(before.kind is Kind.PICTURE for before in every[:number])
            lines += _read_lines(part, number, attribute, hints[attribute], picture)
            results.append(f"{attribute}=v{number}")
    body = "\n".join(f"    {line}" for line in [*lines, f"return make({', '.join(results)})"])
    exec(compile(f"def decode(data, time_ns=None):\n{body}\n", f"<reader of {message}>", "exec"), scope)
    decode: Callable[..., Made] = scope["decode"]
    return decode


def _read_lines(part: MessagePart, number: int, attribute: str, hint: Any, picture: int) -> list[str]:
    """Return the statements that read and check one part."""
    value, first, last, name = f"v{number}", f"a{number}", f"b{number}", repr(part.name)
    match part.kind:
        case Kind.VECTOR:
            return [
                f"{value} = flat[{first} + 1:{last}]",
                f"total = sum({value})",
                f"if total - total != 0.0: check_vector(message, parts[{number}], list({value}))",
                f"{value} = array({value})",
            ]
        case Kind.STAMP:
            stamp = f"flat[{first}] * NANO + flat[{first} + 1]"
            return [f"{value} = {stamp}" + (" if time_ns is None else time_ns" if part.name == "header" else "")]
        case Kind.TEXT:
            return [f"{value} = read_text({name}, flat[{first} + 1:{last}])"]
        case Kind.PICTURE:
            return [f"{value} = read_picture({name}, flat[{first}:{last}], data, place.pixels[{picture}])"]
        case Kind.NUMBER:
            lines = [f"{value} = flat[{first}]"]
            if part.code in "df":
                condition = "" if part.name in RANGES else f"if {value} - {value} != 0.0: "
                lines.append(f"{condition}check_number({name}, {value})")
            elif isinstance(hint, type) and issubclass(hint, IntEnum):
                lines.append(f"{value} = member(message, {name}, {value}, kinds[{attribute!r}])")
            return lines


def _member(message: str, name: str, value: int, kind: type[IntEnum]) -> IntEnum:
    try:
        return kind(value)
    except ValueError:
        check_constant(message, name, value)
        raise


def _read_text(name: str, values: tuple[bytes, ...]) -> str:
    return _decoded_text(name, values[0]) if values and values[0] != b"\0" else ""


@lru_cache(maxsize=1024)
def _decoded_text(name: str, data: bytes) -> str:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise MessageError(name, "not UTF-8", "text") from None
    if text.find("\0") != len(text) - 1:
        raise MessageError(name, repr(text), "text that ends with its only NUL")
    return text[:-1]


def _read_picture(name: str, values: tuple[Any, ...], data: bytes | memoryview, start: int) -> Any:
    texts = [value for value in values if isinstance(value, bytes)]
    numbers = [value for value in values if not isinstance(value, bytes)]  # stamp, frame, height, width, …
    encoding = _read_text(f"{name}.encoding", (texts[-1],)) if texts and numbers[5] else ""
    *_, row, size = numbers
    return image_array(name, numbers[3], numbers[4], encoding, row, memoryview(data)[start : start + size])


def whole_bytes(message: str, data: bytes) -> bytes:
    """Return a message without what a middleware has added behind it."""
    size = _unpacked(message, data)[0].size
    return data if len(data) == size else data[:size]
