"""One cell of a study: all that its result depends on as JSON values, and the hash that it is stored under."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

FORMAT = 1  # of what is stored; another one makes all cells anew
SEED_AXES = ("data", "training")


@dataclass(frozen=True)
class Cell:
    """One experiment; its result is a function of `settings` alone."""

    labels: Mapping[str, Any]  # by axis, as the study file writes them
    settings: Mapping[str, Any]
    places: tuple[str, ...] = ()  # where recorded runs lie; which they are stands in the settings

    @cached_property
    def fingerprint(self) -> str:
        """The name under which the result is stored."""
        return fingerprint({"format": FORMAT, **self.settings})

    @property
    def name(self) -> str:
        """What it is called for people."""
        return ", ".join(f"{axis} {value}" if _is_number(value) else str(value) for axis, value in self.labels.items())

    @property
    def group(self) -> tuple[Any, ...]:
        """What it has in common with the same cell of other seeds."""
        return tuple(value for axis, value in self.labels.items() if axis not in SEED_AXES)


@dataclass(frozen=True)
class Result:
    """What is stored of a cell: what came out, which any machine finds again, and how it was made."""

    settings: Mapping[str, Any]
    result: Mapping[str, Any]
    made: Mapping[str, Any] = field(default_factory=dict)  # versions, seconds, cores

    def as_text(self) -> str:
        """Return what the file holds."""
        content = {"settings": self.settings, "result": self.result, "made": self.made}
        return json.dumps(content, ensure_ascii=False, sort_keys=True) + "\n"


def fingerprint(settings: Mapping[str, Any]) -> str:
    """Return a hash of JSON values."""
    text = json.dumps(settings, sort_keys=True, ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
