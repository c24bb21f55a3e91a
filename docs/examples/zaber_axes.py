"""Zaber stages through `zaber-motion`: an example of axes of one's own. NOT VERIFIED: it never met a Zaber device.

    pip install zaber-motion
    axes: {driver: "zaber_axes:ZaberAxes", port: /dev/ttyUSB0, numbers: ["1.1", "2.1"], axes: [...]}

Only the names of the library's methods were compared with its release 10.2.0. Try it with your hand at the power
switch.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lift_ros.array_types import FloatArray
from lift_ros.drivers.protocol import Axis, DriverFault
from lift_ros.errors import UserError

UNITS = ("mm", "um", "nm", "m", "deg", "rad")  # as the library spells them


class ZaberAxes:
    """One axis per number "device.axis" on one serial line; units are those of the scenario's axes."""

    def __init__(self, layout: tuple[Axis, ...], port: str, numbers: list[str]) -> None:
        if len(numbers) != len(layout):
            raise UserError(f"numbers has {len(numbers)} entries; allowed: one for each of the {len(layout)} axes")
        for axis in layout:
            if axis.unit not in UNITS:
                raise UserError(f"unit of axis {axis.name} is {axis.unit!r}; allowed: one of {', '.join(UNITS)}")
        self.layout = layout
        self._port = port
        self._numbers = [tuple(map(int, number.split("."))) for number in numbers]
        self._connection: Any = None
        self._axes: list[Any] = []

    def connect(self) -> None:
        """Open the line and look for the axes; nothing moves."""
        from zaber_motion.ascii import Connection

        self._connection = Connection.open_serial_port(self._port)
        self._connection.detect_devices()
        self._axes = [self._connection.get_device(device).get_axis(axis) for device, axis in self._numbers]

    def home(self) -> None:
        """Begin to home all axes."""
        for axis in self._opened():
            axis.home(wait_until_idle=False)

    def position(self) -> FloatArray:
        """Read all axes."""
        return np.array([axis.get_position(known.unit) for axis, known in self._pairs()])

    def start(self, target: FloatArray) -> None:
        """Start all axes."""
        for (axis, known), value in zip(self._pairs(), target.tolist(), strict=True):
            axis.move_absolute(value, known.unit, wait_until_idle=False)

    def busy(self) -> bool:
        """Whether an axis moves."""
        return any(axis.is_busy() for axis in self._opened())

    def stop(self) -> None:
        """Stop all axes, also where one of them fails to."""
        failed: list[Exception] = []
        for axis in self._opened():
            try:
                axis.stop(wait_until_idle=False)
            except Exception as error:  # the others must stop all the same
                failed.append(error)
        if failed:
            raise failed[0]

    def close(self) -> None:
        """Close the line."""
        connection, self._connection, self._axes = self._connection, None, []
        if connection is not None:
            connection.close()

    def _opened(self) -> list[Any]:
        if not self._axes:
            raise DriverFault("the Zaber devices are not connected; connect the rig first")
        return self._axes

    def _pairs(self) -> list[tuple[Any, Axis]]:
        return list(zip(self._opened(), self.layout, strict=True))
