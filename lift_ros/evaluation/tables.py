"""Summaries as tables for people, and the same values for programs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from operator import attrgetter
from typing import Any

import numpy as np

from lift_ros.console import format_table


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


def attribute_table(columns: Mapping[str, str], entries: Sequence[object]) -> str:
    """Return a table with a row per entry; `columns` says which attribute stands under which heading."""
    return format_table(list(columns), [[attrgetter(name)(entry) for name in columns.values()] for entry in entries])
