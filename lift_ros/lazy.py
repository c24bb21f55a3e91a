"""Imports with manners: names that are loaded when they are first used, and libraries that are loaded quietly."""

from __future__ import annotations

import contextlib
import importlib
import io
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any


def lazily(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a package's `__getattr__`; `homes` are modules with the names that they hold."""

    def get(name: str) -> Any:
        for module, names in homes.items():
            if name in names.split():
                return getattr(importlib.import_module(module), name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return get


@contextlib.contextmanager
def quietly() -> Iterator[None]:
    """Let a library be imported without what it says of itself: gym, which d3rlpy still imports, prints a notice."""
    nowhere = io.StringIO()
    with warnings.catch_warnings(), contextlib.redirect_stderr(nowhere), contextlib.redirect_stdout(nowhere):
        warnings.simplefilter("ignore")
        yield
