"""Checks YAML mappings against tables of keys, with errors that name file, key, value and what is allowed."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lift_ros.errors import UserError
from lift_ros.untrusted import LARGEST_TEXT, brief, parse_yaml, read_regular

REQUIRED = object()
MOST = 1_000_000_000  # of what is counted: episodes, steps, updates
_KINDS = {
    int: "a whole number",
    float: "a number",
    str: "text",
    bool: "true or false",
    dict: "a mapping",
    list: "a list",
}
_ENTRIES = {float: "numbers", int: "whole numbers", str: "texts"}
SHOWN_NAMES = 20
_LONGEST_WORD = 100  # that is compared with names
_ALIKE = 0.5  # share of letters that a suggestion has in common with what was typed


@dataclass(frozen=True)
class Key:
    """What one key may hold; `low` and `high` belong to the range unless the range is said to be open there."""

    kind: type
    default: Any = REQUIRED
    low: float | None = None
    high: float | None = None
    above: float | None = None  # like `low`, excluded
    choices: tuple[Any, ...] = ()
    length: int | None = None
    entries: type = float  # of a list
    optional: bool = False  # null is allowed and means "not set"
    meaning: str = ""  # in one sentence, for docs/options.md

    def allowed(self) -> str:
        """Return the allowed values in words."""
        ending = ", or null" if self.optional else ""
        if self.choices:
            return self.limits() + ending
        words = _KINDS[self.kind]
        if self.kind is list:
            words += f" of {'' if self.length is None else f'{self.length} '}{_ENTRIES[self.entries]}"
        return f"{words} {self.limits()}".strip() + ending

    def limits(self) -> str:
        """Return the choices, or the range of a number, in words."""
        if self.choices:
            return "one of " + ", ".join(map(str, self.choices))
        bounds = {">": self.above, ">=": self.low, "<=": self.high}
        return " and ".join(f"{sign} {bound:g}" for sign, bound in bounds.items() if bound is not None)

    def accepts(self, value: Any) -> bool:
        """Whether the value is allowed."""
        try:
            self.convert(value)
        except (TypeError, ValueError, OverflowError):
            return False
        return True

    def convert(self, value: Any) -> Any:
        """Return the value in this key's type; ValueError where it is not allowed."""
        if value is None and self.optional:
            return None
        value = self._typed(value)
        if self.choices and value not in self.choices:
            raise ValueError
        if self.kind in (int, float) and not self._inside(value):
            raise ValueError
        if self.length is not None and len(value) != self.length:
            raise ValueError
        return value

    def _typed(self, value: Any) -> Any:
        kind: Any = self.kind
        if self.kind is float and not isinstance(value, bool) and isinstance(value, int | float | str):
            return float(value)  # also text: YAML takes 1e-3 for text, since it has no dot
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise ValueError
        if self.kind is list:
            return [Key(self.entries).convert(entry) for entry in value]
        return value

    def _inside(self, value: float) -> bool:
        return (
            (isinstance(value, int) or math.isfinite(value))
            and (self.low is None or value >= self.low)
            and (self.high is None or value <= self.high)
            and (self.above is None or value > self.above)
        )


@dataclass(frozen=True)
class Section:
    """A key whose value a function of its own reads: `read(value, where)`, which raises where it is not allowed."""

    read: Callable[[Any, str], Any]
    default: Any = REQUIRED


Keys = Mapping[str, Key | Section]


def read_yaml(path: Path) -> Any:
    """Return what a YAML file holds."""
    try:
        text = read_regular(path, LARGEST_TEXT).decode()
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: is not UTF-8 text ({error.reason} at byte {error.start})") from error
    try:
        return parse_yaml(text, unique_keys=True)
    except ValueError as error:
        raise UserError(f"{path}: is not valid YAML: {error}") from error
    except UserError as error:
        raise UserError(f"{path}: {error}") from error


def listed(names: Sequence[str]) -> str:
    """Return names as a sentence lists them: not all, where there are many."""
    more = f" and {len(names) - SHOWN_NAMES} more" if len(names) > SHOWN_NAMES else ""
    return ", ".join(names[:SHOWN_NAMES]) + more or "none"


def _close(word: str, names: Sequence[str], most: int) -> list[str]:
    """Return the names that are most alike; swapped letters are one slip, so that d2 is nearer to 2d than d5 is."""
    word, folded = _folded(word), {_folded(name): name for name in names}
    alike = difflib.get_close_matches(word, folded, max(1, len(folded)), _ALIKE)
    close = [folded[name] for name in sorted(alike, key=lambda name: _slips(word, name))]
    return (close + [name for name in names if word and word in _folded(name) and name not in close])[:most]


def _folded(name: str) -> str:
    """Return what tells names apart: not their case, nor the dashes of options."""
    return name.lower().lstrip("-")


def _slips(word: str, other: str) -> int:
    """Return how many letters must be typed, left out, replaced or swapped with their neighbour to get the other."""
    rows = [list(range(len(other) + 1))]
    for i, letter in enumerate(word, 1):
        row = [i]
        for j, wanted in enumerate(other, 1):
            row.append(min(row[-1] + 1, rows[-1][j] + 1, rows[-1][j - 1] + (letter != wanted)))
            if i > 1 and j > 1 and letter == other[j - 2] and word[i - 2] == wanted:
                row[j] = min(row[j], rows[-2][j - 2] + 1)
        rows.append(row)
    return rows[-1][-1]


def nearest(word: object, known: Iterable[str]) -> str:
    """Return a hint that names the closest known word, or all of them."""
    names = sorted(known)
    close = _close(word[:_LONGEST_WORD] if isinstance(word, str) else brief(word), names, 1)
    return f"did you mean {close[0]!r}?" if close else f"known are {listed(names)}"


def suggest(word: str, known: Iterable[str]) -> str:
    """Return the end of a sentence: the closest known words, or a full stop; for errors that list what is known."""
    close = _close(word[:_LONGEST_WORD], sorted(known), 3)
    return f"; did you mean {' or '.join(close)}?" if close else "."


def check_mapping(data: Any, keys: Keys, where: str) -> dict[str, Any]:
    """Return `data` with defaults filled in; `where` is the file and the section, as errors name it."""
    place = where.removesuffix(": ")
    if data is None:
        data = {}
    if not isinstance(data, dict):
        raise UserError(f"{place} is {brief(data)}; allowed: a mapping with keys {', '.join(keys)}")
    for name in data:
        if name not in keys:
            raise UserError(f"{place}: unknown key {brief(name)}; {nearest(name, keys)}")
    prefix = where if where.endswith(": ") else f"{where}."
    return {name: _value(data, name, key, f"{prefix}{name}") for name, key in keys.items()}


def _value(data: Mapping[str, Any], name: str, key: Key | Section, where: str) -> Any:
    if name not in data:
        if key.default is REQUIRED:
            raise UserError(f"{where} is missing{f'; allowed: {key.allowed()}' if isinstance(key, Key) else ''}")
        return dict(key.default) if isinstance(key.default, dict) else key.default
    if isinstance(key, Section):
        return key.read(data[name], where)
    return check_value(where, data[name], key)


def check_value(name: str, value: Any, key: Key) -> Any:
    """Return a value in its key's type; `name` is how an error calls it."""
    try:
        return key.convert(value)
    except (TypeError, ValueError, OverflowError):
        raise UserError(f"{name} is {brief(value)}; allowed: {key.allowed()}") from None
