"""How processes of ours begin and end: without code of the current folder, and no later than who needs them."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping

_PR_SET_PDEATHSIG = 1
_SAFE_PATH = "PYTHONSAFEPATH"  # the same as `-P`


def module_command(name: str) -> list[str]:
    """Return the command that runs a module; with `-P` no file of the current folder is taken for its imports."""
    return [sys.executable, "-P", "-m", name]


@contextlib.contextmanager
def environment_with(settings: Mapping[str, str]) -> Iterator[None]:
    """Set variables for what is started inside; afterwards the environment is as before."""
    before = {name: os.environ.get(name) for name in settings}
    os.environ.update(settings)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def spawned_safely() -> contextlib.AbstractContextManager[None]:
    """Let what `multiprocessing` starts inside take no file of the current folder for its imports either."""
    return environment_with({_SAFE_PATH: "1"})


def end_with_parent(sent: signal.Signals) -> None:
    """Let the kernel send this process a signal when the one that started it dies, however that happens."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, sent)


def heed_interrupts() -> None:
    """Make Ctrl-C interrupt this process also where it was started to ignore it, as scripts do with `&`."""
    is_main = threading.current_thread() is threading.main_thread()
    if is_main and signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
