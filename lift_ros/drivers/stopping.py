"""Tells axes to stop on a thread of its own, since a library may hold its lock while it does something else."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future

from lift_ros.drivers.protocol import DriverFault

STOP_SECONDS = 1.0  # that a device has to take a stop; its library may be busy with another device for longer


class Stopper:
    """Passes stops on in their order; whoever asks for one waits only so long for the device."""

    def __init__(self, stop: Callable[[], None]) -> None:
        self._stop = stop
        self._asked: queue.SimpleQueue[Future[None] | None] = queue.SimpleQueue()
        threading.Thread(target=self._work, name="stops", daemon=True).start()

    def stop(self) -> None:
        """Stop; raises what the device raises, and DriverFault where it does not take the stop in time."""
        taken: Future[None] = Future()
        self._asked.put(taken)
        try:
            taken.result(STOP_SECONDS)
        except TimeoutError as error:
            if taken.done():
                raise
            raise DriverFault(
                f"the device did not take a stop within {STOP_SECONDS:g} s, it gets it as soon as its library lets it; "
                "cut its power where that is not safe"
            ) from error

    def close(self) -> None:
        """End the thread, after what was asked."""
        self._asked.put(None)

    def _work(self) -> None:
        while (taken := self._asked.get()) is not None:
            try:
                self._stop()
                taken.set_result(None)
            except Exception as error:
                taken.set_exception(error)
