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
from operator import attrgetter
from typing import Any, TypeVar, get_type_hints

import numpy as np

from lift_ros.messages.definitions import constants
from lift_ros.messages.errors import MessageError
from lift_ros.messages.layout import ENCAPSULATION, Kind, Layout, MessagePart, layout, parts, stated_sizes
from lift_ros.messages.pictures import image_array, image_fields

LITTLE_ENDIAN = b"\x00\x01\x00\x00"
NANO = 1_000_000_000
_LARGEST = {"B": 2**8 - 1, "I": 2**32 - 1, "Q": 2**64 - 1}

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
    message: str,
    names: Mapping[str, str] | None = None,
    fixed: Mapping[str, Any] | None = None,
    *,
    in_pieces: bool = False,
) -> Callable[..., Any]:
    """Make the function that writes a message: one check over all vectors and one call that packs everything.

    It takes a record and, where that has none, the header's time in nanoseconds and frame. An attribute may lie deeper
    ("episode.seed"); `fixed` gives fields that the record does not have. It returns bytes, or with `in_pieces` what
    they are made of, so that whoever writes a file need not copy pictures.
    """
    names, fixed = names or {}, fixed or {}

    def explain(record: Any, reason: object) -> None:
        _explain(message, names, fixed, record, reason)

    text = _writer(message, names, fixed, in_pieces)
    return _compiled("encode", text, error=struct.error, fixed=fixed, explain=explain, image_fields=image_fields)


def _compiled(name: str, text: str, **scope: Any) -> Callable[..., Any]:
    """Return the function that a text defines; it sees this module and what else `scope` names."""
    known = {**globals(), **scope}
    exec(compile(text, f"<{name}>", "exec"), known)
    made: Callable[..., Any] = known[name]
    return made


def _writer(message: str, names: Mapping[str, str], fixed: Mapping[str, Any], in_pieces: bool) -> str:
    """Return the text of a message's writer."""
    lines: list[str] = []
    sizes: list[str] = []
    pieces: list[str] = []  # of the message: what is packed up to a picture, and the picture's pixels
    packed = ["LITTLE_ENDIAN"]
    for number, part in enumerate(parts(message)):
        name, value = f"v{number}", _origin(part.name, names, fixed)
        match part.kind:
            case Kind.NUMBER:
                lines.append(f"{name} = {value}")
                packed.append(name)
            case Kind.STAMP:
                lines.append(f"{name}s, {name}n = divmod({value}, NANO)")
                packed += (f"{name}s", f"{name}n")
            case Kind.TEXT:
                lines.append(f"{name} = _text({part.name!r}, {value}, {part.bound})")
                sizes.append(f"len({name})")
                packed += (f"len({name})", name)
            case Kind.VECTOR:
                lines.append(f"{name} = {value}.tolist()")
                sizes.append(f"len({name})")
                packed += (f"len({name})", f"*{name}")
            case Kind.PICTURE:
                lines.append(f"({name}h, {name}w, {name}e, {name}r), {name} = image_fields({part.name!r}, {value})")
                sizes += ("1", f"len({name}e)", f"len({name})")
                # A picture has the time of what it was seen with.
                packed += ("v0s", "v0n", "1", "b'\\0'", f"{name}h", f"{name}w", f"len({name}e)", f"{name}e")
                packed += ("0", f"{name}r", f"len({name})")
                pieces += (f"forms[{len(pieces) // 2}][0].pack({', '.join(packed)})", name)
                packed = []
    if packed:
        pieces.append(f"forms[{len(pieces) // 2}][0].pack({', '.join(packed)})")
    lines += _guards(message, fixed)
    lines.append(f"forms = layout({message!r}, ({''.join(f'{size}, ' for size in sizes)})).structs")
    whole = pieces[0] if len(pieces) == 1 else f"b''.join(({', '.join(pieces)}))"
    lines.append(f"return {', '.join(pieces)}," if in_pieces else f"return {whole}")
    body = "\n        ".join(lines)
    return f"""
def encode(record, time_ns=0, frame_id=''):
    try:
        {body}
    except (error, TypeError, AttributeError, OverflowError) as reason:
        explain(record, reason)
"""


def _guards(message: str, fixed: Mapping[str, Any]) -> list[str]:
    """Return the statements that ask for an explanation where a value may be wrong; one sum covers all vectors."""
    conditions, sums = [], []
    for number, part in enumerate(parts(message)):
        name = f"v{number}"
        if part.kind is Kind.STAMP:
            conditions.append(f"{name}s < 0")
        elif part.kind is Kind.VECTOR:
            conditions += [f"len({name}) > {part.bound}"] if part.bound else []
            if f"{message}.{part.name}" not in WISHES:
                sums.append(f"sum({name})")
        elif part.kind is Kind.NUMBER and part.name not in fixed:
            conditions += _number_conditions(message, part, name)
    conditions.append("total - total != 0.0")
    return [f"total = {' + '.join(sums) or 0.0}", f"if {' or '.join(conditions)}: explain(record, None)"]


def _number_conditions(message: str, part: MessagePart, name: str) -> list[str]:
    if known := constants(message).get(part.name):
        return [f"{name} not in {set(known)}"]
    if part.name in RANGES:
        low, high, unknown = RANGES[part.name]
        return [f"not ({low} <= {name} <= {high}{f' or {name} != {name}' if unknown else ''})"]
    return [f"({name} == {name} and {name} - {name} != 0.0)"] if part.code == "d" else []


def _origin(field: str, names: Mapping[str, str], fixed: Mapping[str, Any]) -> str:
    """Return the expression that gives a field's value."""
    if field in fixed:
        return f"fixed[{field!r}]"
    given = {"header": "time_ns", "header.frame_id": "frame_id"}
    return given[field] if field in given.keys() - names.keys() else f"record.{names.get(field, field)}"


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
        path = names.get(part.name, part.name)
        if part.name not in fixed and path not in ("header", "header.frame_id"):
            _check(message, part, attrgetter(path)(record))
    if reason is not None:  # else the sum over finite entries was too large for a number, which is no fault
        raise MessageError("a field", reason, f"what {message} can hold")


def _check(message: str, part: MessagePart, value: Any) -> None:
    if part.kind is Kind.VECTOR:
        if not isinstance(value, np.ndarray) or value.ndim != 1:
            found = f"an array of shape {value.shape}" if isinstance(value, np.ndarray) else repr(value)
            raise MessageError(part.name, found, "a vector")
        check_vector(message, part, value.tolist())
    elif part.kind is Kind.NUMBER:
        if part.code == "d":
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
    if not (unknown and math.isnan(value)) and not (math.isfinite(value) and low <= value <= high):
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
    places = ", ".join(f"(a{number}, b{number})" for number in range(len(every)))
    lines = ["place, flat = _unpacked(message, data)", f"{places}, = place.places"]
    results = []
    for number, part in enumerate(every):
        attribute = names.get(part.name, part.name)
        if attribute in hints:
            picture = sum(before.kind is Kind.PICTURE for before in every[:number])
            lines += _read_lines(part, number, attribute, hints[attribute], picture)
            results.append(f"{attribute}=v{number}")
    body = "\n".join(f"    {line}" for line in [*lines, f"return make({', '.join(results)})"])
    text = f"def decode(data, time_ns=None):\n{body}\n"
    return _compiled("decode", text, array=np.array, every=every, kinds=hints, make=make, message=message)


def _read_lines(part: MessagePart, number: int, attribute: str, hint: Any, picture: int) -> list[str]:
    """Return the statements that read and check one part."""
    value, first, last, name = f"v{number}", f"a{number}", f"b{number}", repr(part.name)
    match part.kind:
        case Kind.VECTOR:
            return [
                f"{value} = flat[{first} + 1:{last}]",
                f"total = sum({value})",
                f"if total - total != 0.0: check_vector(message, every[{number}], list({value}))",
                f"{value} = array({value})",
            ]
        case Kind.STAMP:
            stamp = f"flat[{first}] * NANO + flat[{first} + 1]"
            return [f"{value} = {stamp}" + (" if time_ns is None else time_ns" if part.name == "header" else "")]
        case Kind.TEXT:
            return [f"{value} = _read_text({name}, flat[{first} + 1:{last}])"]
        case Kind.PICTURE:
            return [f"{value} = _read_picture({name}, flat[{first}:{last}], data, place.pixels[{picture}])"]
        case Kind.NUMBER:
            lines = [f"{value} = flat[{first}]"]
            if part.code == "d":
                condition = "" if part.name in RANGES else f"if {value} - {value} != 0.0: "
                lines.append(f"{condition}check_number({name}, {value})")
            elif isinstance(hint, type) and issubclass(hint, IntEnum):
                lines.append(f"{value} = _member(message, {name}, {value}, kinds[{attribute!r}])")
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
    *_, big_endian, row, size = numbers
    pixels = memoryview(data)[start : start + size]
    return image_array(name, numbers[3], numbers[4], encoding, row, pixels, big_endian=bool(big_endian))
