"""Executable `rig`: a plant node around the axes, the camera and the reading that a scenario names."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

import numpy as np
from std_srvs.srv import Trigger

from lift_ros.array_types import FloatArray, Picture
from lift_ros.drivers.protocol import DriverFault
from lift_ros.drivers.rig import POSITION, Reading
from lift_ros.errors import UserError
from lift_ros.graph import qos
from lift_ros.nodes.plant import PlantNode
from lift_ros.own_code import find_own
from lift_ros.positioning.problem import Observed

CONNECTING_SECONDS = 60.0
HOMING_CHECK_SECONDS = 0.1
ANSWER_SECONDS = 10.0  # in which a device that was asked where it is answers, or is connected anew
Looked = tuple[FloatArray, Picture | None]


class RigNode(PlantNode):
    """Drives a rig whose controllers have drivers; devices are asked on a thread of their own, never on the node's."""

    executable = "rig"
    summary = "a plant: drives the axes and the camera that a scenario names in its section rig"

    _begun: list[Future[Any]]
    _looked: Future[Looked]

    def switch_on(self) -> None:
        """Connect the devices, and home them where the scenario wants it."""
        if not self.scenario.rig:
            raise UserError(
                f"scenario {self.scenario.name} has no section rig; name the drivers of its axes and camera there "
                "(docs/drivers.md), or start a plant node of your own"
            )
        self.rig = self.scenario.make_rig()
        self._reading = make_reading(self.rig.reading)
        self._refers = self.rig.reference_at is not None
        if self._refers and not (self.rig.camera and hasattr(self._reading, "set_reference")):
            raise UserError(
                f"rig.reference_at is given, but the reading {self.rig.reading.name} has no method "
                "set_reference(picture), or the rig no camera; leave reference_at out, or add what is missing"
            )
        self._worker = self.rig.make_worker()
        try:
            self._connect(CONNECTING_SECONDS)
        except Exception:
            self._worker.close()
            raise
        self._begun, self._looked = [], Future()
        self._homing: Future[None] | None = None
        self._homing_began = 0.0
        self.create_service(Trigger, qos.HOME, self._on_home)
        self.every(HOMING_CHECK_SECONDS, self._check_homing)
        if self.rig.home_at_start:
            self._home()

    def begin(self, seed: int) -> None:
        """Go to where the episode starts, before the first of all over the place of the reference picture."""
        start = self.rig.start_of(seed)
        self._begun = []
        if self._refers and self.rig.reference_at is not None:
            self._begun = [self._worker.move(self.rig.reference_at), self._worker.look(self.rig.camera_seconds)]
        if start is not None:
            self._begun.append(self._worker.move(start))
        self._look()

    def move(self, action: FloatArray) -> None:
        """Move by `action` from where the axes were last seen, unless somebody has moved them since."""
        origin = None if self._last is None else self._last.position * self.rig.scale
        self._begun = [self._worker.move_by(np.asarray(action) * self.rig.scale, origin)]
        self._look()

    def moving(self) -> bool:
        """Whether the axes move, or the picture after the move is still to come."""
        return not self._looked.done()

    def read(self) -> Observed:
        """Return the observation that the reading makes of the position and the picture after the move."""
        answers = [step.result() for step in self._begun]
        if len(answers) > 1 and self._refers:
            self._refer(answers[1][1])
        position, picture = self._looked.result()
        self._check_picture(picture)
        observed = self._reading(position, picture)
        if not isinstance(observed, Observed):
            observed = Observed(np.asarray(observed, dtype=np.float64))
        if observed.values.shape != (self.limits.observation_size,):
            raise UserError(
                f"the reading {self.rig.reading.name} gave an observation of shape {observed.values.shape}; allowed: "
                f"({self.limits.observation_size},), as plant.observation_size says"
            )
        return replace(observed, position=position / self.rig.scale, image=picture)

    def hold(self) -> None:
        """Stop the axes, past everything that waits for its turn."""
        self._worker.stop()
        if self._worker.fault is not None and not self._fault:
            raise self._worker.fault

    def recover(self) -> None:
        """See the axes at rest; connect devices anew that do not answer, after which they are not homed any more."""
        self._worker.reset()
        try:
            self._worker.rest().result(ANSWER_SECONDS)
        except Exception:
            self._worker.reset()
            self._connect(ANSWER_SECONDS)

    def close(self) -> None:
        """Leave the axes standing still and release the devices."""
        super().close()
        self._worker.close()

    def _look(self) -> None:
        self._looked = self._worker.look(self.rig.camera_seconds)

    def _connect(self, seconds: float) -> None:
        try:
            self._worker.connect().result(seconds)
        except TimeoutError as error:
            raise DriverFault(f"the devices did not connect within {seconds:g} s; check power and cables") from error

    def _refer(self, picture: Picture | None) -> None:
        """Give the reading what the goal looks like, once."""
        reading: Any = self._reading
        reading.set_reference(picture)
        self._refers = False

    def _check_picture(self, picture: Picture | None) -> None:
        wanted = self.limits.picture
        if picture is None or wanted is None:
            return
        shape, dtype = wanted.shape, wanted.dtype
        if picture.shape != shape or picture.dtype != dtype:
            raise DriverFault(
                f"the camera sent a picture of shape {picture.shape}, {picture.dtype}; allowed: {wanted}, as "
                "the plant's picture_height, picture_width and picture_encoding say; change these or the camera's keys"
            )

    def _on_home(self, request: Any, response: Any) -> Any:
        if self._under_way is not None or self._stopped or self._fault:
            response.success = False
            response.message = "not now: the rig moves, is stopped or has a fault; pause, release or reset it first"
            return response
        self._home()
        response.success, response.message = True, "homing has begun; the log tells when it has ended"
        return response

    def _home(self) -> None:
        self._homing, self._homing_began = self._worker.home(), time.monotonic()

    def _check_homing(self) -> None:
        """Tell how homing has ended; one that failed is a fault, which the next command need not find out."""
        homing = self._homing
        if homing is None or not homing.done():
            return
        self._homing = None
        error = homing.exception()
        if error is None:
            self.get_logger().info(f"the axes are homed, after {time.monotonic() - self._homing_began:.1f} s")
        elif isinstance(error, DriverFault) and not error.latches:
            self.get_logger().warning(f"no homing: {error}")
        else:
            self._latch(f"homing: {error}")


def make_reading(reading: Reading) -> Callable[[FloatArray, Picture | None], Any]:
    """Return the function that makes observations; UserError where it cannot be had, or not with these arguments."""
    if reading.name == POSITION:
        return lambda position, picture: position
    target = find_own(reading.name, "reading")
    arguments = dict(reading.arguments)
    if not inspect.isclass(target):
        return lambda position, picture: target(position, picture, **arguments)
    try:
        made = target(**arguments)
    except TypeError as error:
        raise UserError(f"reading {reading.name} cannot be made with arguments {arguments}: {error}") from error
    if not callable(made):
        raise UserError(f"reading {reading.name} is a class without __call__(position, picture): add it")
    called: Callable[[FloatArray, Picture | None], Any] = made
    return called


main = RigNode.main
