"""How executables begin: what a node lacks is told in one sentence before its module is imported.

Each name of an executable is a function here: `from lift_ros.nodes.starting import arbiter` gives what runs it.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import sys
from collections.abc import Callable

from lift_ros.errors import UserError
from lift_ros.graph.roles import require_libraries
from lift_ros.nodes.sourced import require_ros


def start(executable: str) -> int:
    """Run a node by the name of its executable and return its exit status."""
    try:
        require_ros()
        require_libraries([executable])
    except UserError as error:
        print(f"{executable}: {error}", file=sys.stderr)
        return error.exit_status
    return int(importlib.import_module(f"lift_ros.nodes.{executable}_node").main())


def __getattr__(name: str) -> Callable[[], int]:
    if name.startswith("_") or importlib.util.find_spec(f"lift_ros.nodes.{name}_node") is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return functools.partial(start, name)
