"""Tables for people, in aligned columns, and the same values for programs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from operator import attrgetter
from typing import Any

import numpy as np


def for_programs(value: Any) -> Any:
    """Return a summary as plain JSON values; what is unknown becomes null."""
    if hasattr(value, "__dataclass_fields__"):
        return for_programs(asdict(value))
    if isinstance(value, dict):
        return {str(key): for_programs(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [for_programs(entry) for entry in value]
    if isinstance(value, np.ndarray):
        return for_programs(value.tolist())
    if isinstance(value, float | np.floating):
        return float(value) if math.isfinite(value) else None
    return int(value) if isinstance(value, np.integer) else value


def shown(value: object, digits: int = 3) -> str:
    """Return a table's entry; what is unknown is a dash."""
    if not isinstance(value, float):
        return str(value)
    if not math.isfinite(value):
        return "–"
    return f"{value:.0f}" if abs(value) >= 10**digits else f"{value:.{digits}g}"


def format_table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a table with aligned columns: numbers to the right, words to the left."""
    cells = [[shown(entry) for entry in row] for row in rows]
    widths = [max(len(line[column]) for line in [list(header), *cells]) for column in range(len(header))]
    words = [any(_is_word(row[column]) for row in rows) for column in range(len(header))]

    def line(entries: Sequence[str]) -> str:
        padded = [
            entry.ljust(width) if word else entry.rjust(width)
            for entry, width, word in zip(entries, widths, words, strict=True)
        ]
        return "  ".join(padded).rstrip()

    return "\n".join([line(header), line(["─" * width for width in widths]), *(line(row) for row in cells)])


def _is_word(entry: object) -> bool:
    return isinstance(entry, str) and not entry[:1].isdigit() and entry[:1] not in "-–"


def attribute_table(columns: Mapping[str, str], entries: Sequence[object]) -> str:
    """Return a table with a row per entry; `columns` says which attribute stands under which heading."""
    return format_table(list(columns), [[attrgetter(name)(entry) for name in columns.values()] for entry in entries])
