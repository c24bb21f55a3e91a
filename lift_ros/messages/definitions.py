"""What travels, read from msg/*.msg: the fields of each message, and how a bag announces its type."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from rosbags.typesys import Stores, TypesysError, get_types_from_msg, get_typestore
from rosbags.typesys.store import Typestore

from lift_ros.resources import resource_folder

PACKAGE = "lift_ros"
_SEPARATOR = "=" * 80 + "\n"

# The definitions of ROS itself that ours are made of; they ride in every bag behind ours.
_ROS = {
    "std_msgs/Header": "builtin_interfaces/Time stamp\nstring frame_id\n",
    "builtin_interfaces/Time": "int32 sec\nuint32 nanosec\n",
    "sensor_msgs/Image": (
        "std_msgs/Header header\nuint32 height\nuint32 width\nstring encoding\n"
        "uint8 is_bigendian\nuint32 step\nuint8[] data\n"
    ),
}


@dataclass(frozen=True)
class Field:
    """One field of a message as its definition declares it."""

    name: str
    type_name: str  # of a number or text as ROS calls it, of a nested message with its package
    bound: int = 0  # most entries of a sequence or bytes of a text; 0 for no bound
    is_sequence: bool = False


def type_name(name: str) -> str:
    """Return a message's full name."""
    return f"{PACKAGE}/msg/{name}"


@lru_cache
def definition(name: str) -> str:
    """Return a message's own definition without comments, which would ride twice in every file of a bag."""
    text = (resource_folder("msg", "*.msg") / f"{name}.msg").read_text(encoding="utf-8")
    lines = (" ".join(line.split("#", 1)[0].split()) for line in text.splitlines())
    return "".join(f"{line}\n" for line in lines if line)


def full_definition(name: str) -> str:
    """Return a definition with those it needs, as MCAP files carry it."""
    return _SEPARATOR.join([definition(name), *(f"MSG: {other}\n{text}" for other, text in _ROS.items())])


@lru_cache
def type_hash(name: str) -> str:
    """Return the REP 2011 hash of a message type."""
    return str(_store(name).hash_rihs01(type_name(name)))


@lru_cache
def fields(name: str) -> tuple[Field, ...]:
    """Return the fields of a message in their order."""
    _, declared = _store(name).fielddefs[type_name(name)]
    return tuple(_field(field, *kind) for field, kind in declared)


@lru_cache
def constants(name: str) -> dict[str, dict[int, str]]:
    """Return what fields of a message may hold that have constants: by field, the name of each value.

    The constants of a field bear its name in capitals: SOURCE_AUGMENTOR belongs to `source`.
    """
    declared, _ = _store(name).fielddefs[type_name(name)]
    found: dict[str, dict[int, str]] = {}
    for field in fields(name):
        prefix = f"{field.name.upper()}_"
        values = {int(value): key.removeprefix(prefix) for key, _, value in declared if key.startswith(prefix)}
        if values:
            found[field.name] = values
    return found


@lru_cache(maxsize=64)
def fields_by_type(text: str, name: str) -> dict[str, Any] | None:
    """Return what a definition from a bag declares, per type and without constants; None where it cannot be parsed."""
    try:
        return {other: declared for other, (_, declared) in get_types_from_msg(text, name).items()}
    except TypesysError:
        return None


def _field(name: str, node: Any, content: Any) -> Field:
    """Return a field from what rosbags has parsed: the kind of a node and its content."""
    match node.name:
        case "BASE":
            base, bound = content
            return Field(name, base, bound)
        case "NAME":
            return Field(name, content)
        case "SEQUENCE":
            (_, (base, _)), bound = content
            return Field(name, base, bound, is_sequence=True)
    raise NotImplementedError(f"field {name} is an array of fixed size; declare a bounded sequence")


@lru_cache
def _store(name: str) -> Typestore:
    store = get_typestore(Stores.EMPTY)
    texts = {other.replace("/", "/msg/"): text for other, text in _ROS.items()}
    known = {}
    for other, text in {**texts, type_name(name): definition(name)}.items():
        known.update(get_types_from_msg(text, other))
    store.register(known)
    return store
