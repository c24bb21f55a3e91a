"""Runs a rig's devices on one thread; a stop goes past its queue, and what fails is kept until somebody resets it."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

import numpy as np

from lift_ros.array_types import FloatArray, Picture
from lift_ros.drivers.motion import Action, MotionSettings, Move, Rest
from lift_ros.drivers.protocol import Axes, Camera, Displaced, DriverFault, MoveRefused, MoveStopped
from lift_ros.drivers.stopping import Stopper
from lift_ros.errors import UserError

Result = TypeVar("Result")
Sample = tuple[float, bool, FloatArray]  # time of the monotonic clock, busy, position
Job = tuple["Future[Any]", Callable[[], Any], int]  # where the answer goes, what to do, stops before it was asked

_CLOSING_SECONDS = 5.0  # a device that hangs longer is left to its thread
_REST_SECONDS = 10.0  # after a stop, beside motion.settle_seconds


class DeviceWorker:
    """The only one who talks to a rig's devices. Each question is answered by a future, in the order of asking."""

    def __init__(self, axes: Axes, settings: MotionSettings, camera: Camera | None = None) -> None:
        self._axes, self._settings, self._camera = axes, settings, camera
        self._queue: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._stops = 0  # so far; a job that was asked before the last of them is not begun
        self._stopped = threading.Event()  # wakes a move that waits for its next poll
        self._asking = threading.Lock()  # of the queue, the count and what is latched; never held while a device works
        self._fault: DriverFault | None = None
        self._connected = self._homed = self._closed = False
        self._thread = threading.Thread(target=self._work, name="devices", daemon=True)
        self._thread.start()
        self._stopper = Stopper(axes.stop)

    @property
    def fault(self) -> DriverFault | None:
        """What failed and was not reset yet."""
        return self._fault

    @property
    def homed(self) -> bool:
        """Whether the axes found their reference since they were connected."""
        return self._homed

    def connect(self) -> Future[None]:
        """Open the devices, closing them first where they are open: this is also how to reconnect."""
        return self._ask(self._connect)

    def home(self) -> Future[None]:
        """Home all axes."""
        return self._ask(self._home)

    def move(self, target: FloatArray) -> Future[FloatArray]:
        """Move to an absolute target; the answer is the position that is read back on arrival."""
        return self._ask(lambda: self._move(lambda _: target))

    def move_by(self, way: FloatArray, origin: FloatArray | None = None) -> Future[FloatArray]:
        """Move by a way from where the axes are; Displaced where that is not `origin`, where they were last seen."""
        return self._ask(lambda: self._move(lambda position: self._checked(position, origin) + way))

    def trace(self, target: FloatArray, seconds: float) -> Future[list[Sample]]:
        """Move as `move` does, and answer with what the device told from the start until so long after the arrival."""
        return self._ask(lambda: self._trace(target, seconds))

    def look(self, timeout: float) -> Future[tuple[FloatArray, Picture | None]]:
        """Read the axes and take a picture, where there is a camera, exposed after all that was asked before."""
        return self._ask(lambda: self._look(timeout))

    def rest(self) -> Future[None]:
        """See the axes at rest; those that move are stopped first."""
        return self._ask(self._see_rest)

    def position(self) -> Future[FloatArray]:
        """Read where the axes are."""
        return self._ask(self._position)

    def frame(self, exposed_after: float, timeout: float) -> Future[Picture]:
        """Take a picture that was exposed after a time of the monotonic clock."""
        return self._ask(lambda: self._frame(exposed_after, timeout))

    def stop(self) -> None:
        """Stop the axes from the caller's thread, now; what is under way or queued ends as stopped."""
        with self._asking:
            self._stops += 1
            self._stopped.set()
        try:
            if self._connected:
                self._stopper.stop()
        except Exception as error:
            self._latch(_as_fault(error, "stopping"))

    def reset(self) -> None:
        """Forget the fault, once its reason is gone; devices that lost their connection are then connected again."""
        with self._asking:
            self._fault = None

    def close(self) -> None:
        """Stop the axes and release the devices; never raises, and does not wait for a device that hangs."""
        if self._closed:
            return
        self.stop()
        with self._asking:
            self._closed = True
            self._queue.put(None)
        self._stopper.close()
        self._thread.join(_CLOSING_SECONDS)

    def _ask(self, work: Callable[[], Result]) -> Future[Result]:
        answer: Future[Result] = Future()
        with self._asking:
            if self._closed:
                answer.set_exception(DriverFault("the devices are closed; start the rig anew"))
            elif self._fault is not None:
                answer.set_exception(self._fault)
            else:
                self._queue.put((answer, work, self._stops))
        return answer

    def _work(self) -> None:
        while (job := self._queue.get()) is not None:
            answer, work, stops = job
            if not answer.set_running_or_notify_cancel():
                continue
            try:
                answer.set_result(self._do(work, stops))
            except DriverFault as fault:
                answer.set_exception(fault)
        self._release()

    def _do(self, work: Callable[[], Result], stops: int) -> Result:
        """Do one job, unless a stop or a fault came since it was asked; whatever it raises becomes a fault."""
        with self._asking:
            if self._fault is not None:
                raise self._fault
            if stops != self._stops:
                raise _stopped()
            self._stopped.clear()
        try:
            return work()
        except Exception as error:
            fault = _as_fault(error, "working")
            if fault.latches:
                self._latch(fault)
                self._stop_quietly()
            raise fault from error

    def _latch(self, fault: DriverFault) -> None:
        with self._asking:
            self._fault = self._fault or fault

    def _require_connection(self) -> None:
        if not self._connected:
            raise DriverFault("the devices are not connected; connect them first")

    def _connect(self) -> None:
        self._release()
        self._axes.connect()
        self._connected = True
        if self._camera is not None:
            self._camera.connect()
        self._see_rest()

    def _release(self) -> None:
        self._connected = self._homed = False
        for device in (self._axes, self._camera):
            if device is not None:
                with contextlib.suppress(Exception):
                    device.close()

    def _home(self) -> None:
        self._require_connection()
        self._homed = False
        self._begin(self._axes.home)
        self._rest(self._settings.home_seconds, "homing began")
        self._homed = True

    def _trace(self, target: FloatArray, seconds: float) -> list[Sample]:
        samples: list[Sample] = []
        self._move(lambda _: target, samples)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self._pause()
            samples.append((time.monotonic(), self._axes.busy(), self._axes.position()))
        return samples

    def _move(self, target_from: Callable[[FloatArray], FloatArray], samples: list[Sample] | None = None) -> FloatArray:
        began = self._position()  # read once: a serial line takes its time
        move = Move(self._settings, began, target_from(began), time.monotonic(), homed=self._homed)
        self._begin(lambda: self._axes.start(move.first_target))
        while True:
            self._pause()
            busy, position, now = self._axes.busy(), self._axes.position(), time.monotonic()
            if samples is not None:
                samples.append((now, busy, position))
            decision = move.next(now, busy, position)
            if decision.fault is not None:
                raise decision.fault
            if decision.action is Action.FINISH:
                return position
            if decision.target is not None:
                self._turn(decision.target)

    def _turn(self, target: FloatArray) -> None:
        """Begin the last approach; what refuses it has let the axes move, so that it is a fault."""
        try:
            self._begin(lambda: self._axes.start(target))
        except MoveRefused as refused:
            raise DriverFault(f"the axes stay where the last approach begins: {refused}") from refused

    def _checked(self, position: FloatArray, origin: FloatArray | None) -> FloatArray:
        """Return the position; Displaced where it is further from `origin` than two arrivals may differ."""
        if origin is None:
            return position
        off, allowed = np.abs(position - origin), 2 * self._settings.tolerance
        if (off > allowed).any():
            i = int(np.argmax(off / allowed))
            axis = self._settings.axes[i]
            raise Displaced(
                f"axis {axis.name} is at {axis.show(position[i])}, but was last seen at {axis.show(origin[i])} (twice "
                f"the tolerance: {axis.show(allowed[i])}): something else moved it; begin an episode anew"
            )
        return position

    def _position(self) -> FloatArray:
        self._require_connection()
        return self._axes.position()

    def _look(self, timeout: float) -> tuple[FloatArray, Picture | None]:
        position = self._position()
        return position, None if self._camera is None else self._frame(time.monotonic(), timeout)

    def _begin(self, start: Callable[[], None]) -> None:
        """Begin a motion; a stop that came while the device was told to start is said again after it."""
        if not self._stopped.is_set():
            start()
        if self._stopped.is_set():
            self._halt()

    def _pause(self) -> None:
        if self._stopped.wait(self._settings.poll_seconds):
            self._halt()

    def _halt(self) -> None:
        """See the axes come to rest after a stop, saying it again as long as they move."""
        self._axes.stop()
        self._see_rest()
        raise _stopped()

    def _see_rest(self) -> None:
        """Look until the axes rest, stopping those that move."""
        self._require_connection()
        rest = Rest(self._settings, time.monotonic(), _REST_SECONDS + self._settings.settle_seconds, "a stop")
        while not rest.reached(time.monotonic(), busy := self._axes.busy(), self._axes.position()):
            if busy:
                self._axes.stop()
            time.sleep(self._settings.poll_seconds)

    def _rest(self, allowed: float, what: str) -> None:
        rest = Rest(self._settings, time.monotonic(), allowed, what)
        while not rest.reached(time.monotonic(), self._axes.busy(), self._axes.position()):
            self._pause()

    def _frame(self, exposed_after: float, timeout: float) -> Picture:
        self._require_connection()
        if self._camera is None:
            raise DriverFault("the rig has no camera; add a section camera to the scenario")
        return self._camera.frame(exposed_after, timeout)

    def _stop_quietly(self) -> None:
        with contextlib.suppress(Exception):
            if self._connected:
                self._axes.stop()


def _stopped() -> MoveStopped:
    return MoveStopped("the axes were stopped before they arrived; read their position before the next move")


def _as_fault(error: Exception, doing: str) -> DriverFault:
    if isinstance(error, DriverFault):
        return error
    if isinstance(error, UserError):
        return DriverFault(str(error))
    what = str(error) or type(error).__name__
    return DriverFault(f"a device failed while {doing} ({what}); check its power and cable, then reset and connect")
