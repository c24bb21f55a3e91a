"""Reading what somebody else may have made: regular files of bounded size, YAML and JSON that take little memory."""

from __future__ import annotations

import errno
import json
import os
import reprlib
import stat
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml

from lift_ros.errors import UserError

LARGEST_TEXT = 2**18  # [bytes] of a scenario or a mapping; those that come along have a hundredth of it
LARGEST_MODEL = 2**26  # [bytes] of a model file: two critics and an actor of two layers of 2000 units each
_MOST_NODES = 200_000  # of a YAML document with all aliases written out
_DEEPEST = 50  # levels of lists and maps within each other
_MOST_ENTRIES = 1_500_000  # of all lists and maps of a JSON document; metadata.yaml of 100 000 files has 1 000 000
_LONGEST_NAME, _LONGEST_PATH = 255, 4095  # [bytes], of Linux
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_regular(path: str | Path, limit: int) -> bytes:
    """Return what a regular file of at most `limit` bytes holds.

    All else is an OSError that says why: a pipe would keep its reader waiting, and a device has no end.
    """
    _check_regular(check_path(path).stat(), limit)
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # a pipe may have come in between
    with open(descriptor, "rb") as file:
        _check_regular(os.fstat(descriptor), limit)
        data = file.read(limit + 1)
    if len(data) > limit:
        raise OSError(errno.EFBIG, f"it grows beyond the limit of {limit} bytes")
    return data


def check_path(path: str | Path) -> Path:
    """Return the path; OSError where no file can have such a name."""
    name = os.fsencode(path)
    if b"\0" in name:
        raise OSError(errno.EINVAL, "its name holds a NUL character")
    longest = max(map(len, name.split(b"/")))
    if longest > _LONGEST_NAME or len(name) > _LONGEST_PATH:
        sizes = f"{_LONGEST_NAME} bytes, and {_LONGEST_PATH} with all folders"
        raise OSError(errno.ENAMETOOLONG, f"its name has {longest} bytes; a name has at most {sizes}")
    return Path(path)


def _check_regular(status: os.stat_result, limit: int) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, "it is a folder")
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "it is no regular file, but a pipe, a socket or a device")
    if status.st_size > limit:
        raise OSError(errno.EFBIG, f"it has {status.st_size} bytes, more than the limit of {limit}")


class _UniqueKeyLoader(_LOADER):  # type: ignore[misc]
    """Refuses a key given twice, of which YAML would silently keep the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if key in seen:
                raise UserError(f"line {key_node.start_mark.line + 1}: key {brief(key)} is given twice; keep one")
            seen.add(key)
        found: dict[Hashable, Any] = super().construct_mapping(node, deep)
        return found


def parse_yaml(text: str | bytes, *, unique_keys: bool = False) -> Any:
    """Return what a YAML document holds; ValueError says in one line why it cannot be had."""
    try:
        _check_events(text)
        return yaml.load(text, _UniqueKeyLoader if unique_keys else _LOADER)
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split()) or "it cannot be parsed") from error
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    except (ArithmeticError, AttributeError, LookupError, TypeError) as error:  # of what a tag promises and is not
        raise ValueError(f"a value cannot be read ({error})") from error


def _check_events(text: str | bytes) -> None:
    """Refuse what is nested too deeply or would be too large with all aliases written out, before anything is built."""
    depth = nodes = 0
    begun: list[tuple[str | None, int]] = []  # of each open list or map its anchor and the nodes before it
    sizes: dict[str, int] = {}  # of what has an anchor
    for event in yaml.parse(text, _LOADER):
        if isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
            anchor, before = begun.pop()
            if anchor is not None:
                sizes[anchor] = nodes - before
            continue
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in sizes:
                raise ValueError(f"the alias *{brief(event.anchor)[1:-1]} stands for nothing, or for itself")
            nodes += sizes[event.anchor]
        elif isinstance(event, yaml.CollectionStartEvent):
            begun.append((event.anchor, nodes))
            nodes, depth = nodes + 1, depth + 1
        elif isinstance(event, yaml.ScalarEvent):
            nodes += 1
            if event.anchor is not None:
                sizes[event.anchor] = 1
        if depth > _DEEPEST:
            raise ValueError(f"it is nested more than {_DEEPEST} levels deep")
        if nodes > _MOST_NODES:
            raise ValueError(f"it holds more than {_MOST_NODES} values, with all aliases written out")


def parse_json(text: str | bytes) -> Any:
    """Return what a JSON document holds; ValueError says in one line why it cannot be had."""
    signs = (b",", b"[", b"{") if isinstance(text, bytes) else (",", "[", "{")
    if len(text) > _MOST_ENTRIES and sum(map(text.count, signs)) > _MOST_ENTRIES:  # type: ignore[arg-type]
        raise ValueError(f"it holds more than {_MOST_ENTRIES} values")
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def brief(value: object) -> str:
    """Return what Python would show of a value, cut short where it is long: it goes into a sentence."""
    return _BRIEF.repr(value)


class _Brief(reprlib.Repr):
    """What Python shows of a value within a line."""

    def __init__(self) -> None:
        super().__init__()
        self.maxstring = self.maxother = self.maxlong = 80
        self.maxlevel, self.maxlist, self.maxtuple, self.maxdict = 3, 8, 8, 8

    def repr_int(self, x: int, level: int) -> str:
        """Return a whole number; Python itself refuses to show very long ones."""
        digits = x.bit_length() * 0.30103
        return super().repr_int(x, level) if digits < 1000 else f"a number of {digits:.0f} digits"

    def repr_dict(self, x: dict[Any, Any], level: int) -> str:
        """Return a map in its own order, as Python does."""
        if level <= 0 and x:
            return "{...}"
        pairs = [f"{self.repr1(key, level - 1)}: {self.repr1(x[key], level - 1)}" for key in list(x)[: self.maxdict]]
        return "{" + ", ".join(pairs + ["..."] * (len(x) > self.maxdict)) + "}"


_BRIEF = _Brief()
