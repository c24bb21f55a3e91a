"""Cameras behind a GenTL producer (GigE Vision, USB3 Vision and others), through `harvesters`."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from lift_ros.array_types import Picture
from lift_ros.configuration import Key
from lift_ros.drivers.frames import KnownFormat, no_frame, wait_for_exposure
from lift_ros.drivers.libraries import needed_by
from lift_ros.drivers.protocol import DriverFault
from lift_ros.errors import UserError
from lift_ros.positioning.pictures import PictureFormat

DEMO = "demo"
CAMERA_KEYS = {
    "producer": Key(str, meaning="file .cti of the camera's maker; demo: the one that comes with genicam"),
    "device": Key(str, "", meaning="serial number; empty where there is one camera only"),
    "properties": Key(dict, {}, meaning="features of the camera by name, such as PixelFormat or ExposureTime"),
}
# By the beginning of a format's name: values per pixel, and which of them are red, green and blue.
_COLOURS = {"RGBa": (4, [0, 1, 2]), "BGRa": (4, [2, 1, 0]), "RGB": (3, [0, 1, 2]), "BGR": (3, [2, 1, 0])}
_CONNECTING_SECONDS = 5.0


class GenicamCamera:
    """One camera; the acquisition begins with each picture that is asked for, so that none is older."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._settings = settings
        self._name = settings["device"] or settings["producer"]
        self._format = KnownFormat(self._name)
        self._harvester: Any = None
        self._acquirer: Any = None

    @property
    def format(self) -> PictureFormat:
        """Of the picture that was taken on connecting."""
        return self._format.value

    def connect(self) -> None:
        """Find the camera, set its features and take a picture."""
        with needed_by("genicam"):
            from harvesters.core import Harvester
        self._format.forget()
        self._harvester = Harvester()
        self._harvester.add_file(str(_producer(self._settings["producer"])))
        self._harvester.update()
        self._acquirer = self._harvester.create({"serial_number": self._serial_number()})
        for name, value in self._settings["properties"].items():
            self._set(name, value)
        self._take(_CONNECTING_SECONDS)

    def _serial_number(self) -> str:
        known = [device.serial_number for device in self._harvester.device_info_list]
        asked = self._settings["device"]
        if asked in known:
            return str(asked)
        if not asked and len(known) == 1:
            return str(known[0])
        raise DriverFault(
            f"camera.device is {asked!r}; allowed: one of {', '.join(known) or 'none, since none is found'}"
        )

    def _set(self, name: str, value: Any) -> None:
        try:
            getattr(self._acquirer.remote_device.node_map, name).value = value
        except Exception as error:  # of the maker's own kinds
            raise DriverFault(f"camera {self._name}: {name} cannot be {value!r} ({error}); check properties") from error

    def frame(self, exposed_after: float, timeout: float) -> Picture:
        """Begin an acquisition after the given time and return its first picture."""
        wait_for_exposure(exposed_after, timeout)
        return self._take(timeout)

    def _take(self, timeout: float) -> Picture:
        if self._acquirer is None:
            raise DriverFault(f"camera {self._name} is not connected; connect it first")
        try:
            self._acquirer.start()
            try:
                with self._acquirer.fetch(timeout=timeout) as buffer:
                    return self._format.checked(_as_picture(buffer.payload.components[0]))
            finally:
                self._acquirer.stop()
        except DriverFault:
            raise
        except Exception as error:  # of the maker's own kinds
            raise no_frame(self._name, timeout, error) from error

    def close(self) -> None:
        """Release the camera and its producer."""
        acquirer, self._acquirer = self._acquirer, None
        harvester, self._harvester = self._harvester, None
        self._format.forget()
        for end in (acquirer and acquirer.destroy, harvester and harvester.reset):
            if end:
                with contextlib.suppress(Exception):
                    end()


def _producer(name: str) -> Path:
    if name != DEMO:
        path = Path(name).expanduser()
        if not path.is_file():
            raise UserError(f"camera.producer is {name!r}, which is no file; name a .cti file, or {DEMO}")
        return path
    with needed_by("genicam"):
        import genicam
    return next(Path(genicam.__file__).parent.glob("*.cti"))


def _as_picture(component: Any) -> Picture:
    """Return the pixels with their shape, and colours as red, green, blue."""
    kind = str(component.data_format)
    channels, order = next((way for name, way in _COLOURS.items() if kind.startswith(name)), (1, [0]))
    if (channels == 1 and not kind.startswith("Mono")) or kind.endswith(("p", "Packed", "Planar")):
        raise DriverFault(
            f"the camera's pixel format is {kind}; allowed: Mono, RGB or BGR, not packed; set PixelFormat"
        )
    pixels = np.asarray(component.data).reshape(component.height, component.width, channels)
    return pixels[..., 0] if channels == 1 else pixels[..., order]
