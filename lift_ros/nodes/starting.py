"""How executables begin: what a node lacks is told in one sentence, and Ctrl-C is heard, before modules are imported.

Each name of an executable is a function here: `from lift_ros.nodes.starting import arbiter` gives what runs it.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import os
import signal
import sys
from collections.abc import Callable


def start(executable: str) -> int:
    """Run a node by the name of its executable and return its exit status."""
    _end_at_once_when_interrupted()
    # Only now, so that nobody is interrupted in the midst of imports.
    from lift_ros.errors import UserError
    from lift_ros.graph.roles import require_libraries
    from lift_ros.nodes.sourced import require_ros

    try:
        require_ros()
        require_libraries([executable])
    except UserError as error:
        print(f"{executable}: {error}", file=sys.stderr)
        return error.exit_status
    return int(importlib.import_module(f"lift_ros.nodes.{executable}_node").main())


def _end_at_once_when_interrupted() -> None:
    """End without a word while modules are loading, when there is nothing to finish; a node that runs listens itself.

    An exception would not do: libraries catch it in the midst of their imports, or turn it into an error of their own.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda _number, _frame: os._exit(0))


def __getattr__(name: str) -> Callable[[], int]:
    if name.startswith("_") or importlib.util.find_spec(f"lift_ros.nodes.{name}_node") is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return functools.partial(start, name)
