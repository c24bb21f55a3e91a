"""Ctrl-C at the right moment: never in the middle of an episode's record."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupts:
    """Holds Ctrl-C back while something must not be cut in two; a second one is not held back.

    Only the main thread receives signals, and whoever handles SIGINT on their own keeps doing so; there this class
    changes nothing.
    """

    def __init__(self) -> None:
        self.requested = False
        self._held = False

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Handle SIGINT for the duration of the block."""
        is_main = threading.current_thread() is threading.main_thread()
        if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
            yield
            return
        signal.signal(signal.SIGINT, self._handle)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold Ctrl-C back: it only sets `requested`, and KeyboardInterrupt follows at the end of the block."""
        self._held = True
        try:
            yield
        finally:
            self._held = False
        if self.requested:
            raise KeyboardInterrupt

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if not self._held or self.requested:
            raise KeyboardInterrupt
        self.requested = True


@contextmanager
def sigint_blocked() -> Iterator[None]:
    """Block SIGINT in this thread: processes started meanwhile never see Ctrl-C, this one sees it afterwards."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def stop_on_signals() -> Iterator[Callable[[], bool]]:
    """Within this context Ctrl-C and SIGTERM only set a flag, which the yielded function reads."""
    received: list[int] = []
    previous = {
        number: signal.signal(number, lambda received_number, _frame: received.append(received_number))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield lambda: bool(received)
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
