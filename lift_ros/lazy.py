"""Names that a package offers but loads only when they are first used, since what they need is slow or optional."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any


def lazily(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a package's `__getattr__`; `homes` are modules with the names that they hold."""

    def get(name: str) -> Any:
        for module, names in homes.items():
            if name in names.split():
                return getattr(importlib.import_module(module), name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return get
