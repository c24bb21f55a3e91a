"""Stages and cameras that Micro-Manager knows, through `pymmcore`: XY, Z and any other single stage."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from lift_ros.array_types import FloatArray, Picture
from lift_ros.configuration import Key
from lift_ros.drivers.frames import KnownFormat, no_frame, wait_for_exposure
from lift_ros.drivers.micromanager_core import Core
from lift_ros.drivers.protocol import Axis, DriverFault
from lift_ros.errors import UserError
from lift_ros.positioning.pictures import PictureFormat

AXIS_KEYS = {
    "device": Key(str, meaning="label of the stage in the configuration"),
    "direction": Key(str, "single", choices=("x", "y", "single"), meaning="x or y of an XY stage, or a single stage"),
    "home": Key(bool, True, meaning="whether its stage takes part in homing; false where its adapter cannot"),
}
CAMERA_KEYS = {
    "device": Key(str, meaning="label of the camera in the configuration"),
    "exposure_ms": Key(float, 10.0, above=0, high=60_000, meaning="exposure in milliseconds"),
    "properties": Key(dict, {}, meaning="properties of the camera by name"),
}


class MicroManagerAxes:
    """Any stages of one configuration, as axes in Micro-Manager's unit, the micrometre."""

    def __init__(
        self, layout: tuple[Axis, ...], axes: Sequence[Mapping[str, Any]], settings: Mapping[str, Any]
    ) -> None:
        self.layout = layout
        self._core = Core.of(settings)
        self._parts = [(axis["device"], axis["direction"]) for axis in axes]
        self._devices = list(dict.fromkeys(device for device, _ in self._parts))
        stay = {axis["device"] for axis in axes if not axis["home"]}
        self._homing = [device for device in self._devices if device not in stay]
        for device in self._devices:
            _check_directions(device, [part for name, part in self._parts if name == device])

    def connect(self) -> None:
        """Load the configuration and look for the stages."""
        self._core.acquire(self)
        loaded = self._core.api.getLoadedDevices()
        for device in self._devices:
            if device not in loaded:
                raise DriverFault(f"Micro-Manager has no device {device!r}; known are {', '.join(loaded)}")
        self.position()

    def home(self) -> None:
        """Home all stages but those whose axes say `home: false`. Some say that they did and do nothing."""
        for device in self._homing:
            try:
                self._core.api.home(device)
            except RuntimeError as error:
                raise DriverFault(
                    f"stage {device!r} cannot be homed ({error}); where its adapter has no homing, say home: false for "
                    "its axes, or motion.home_required: false where all keep their reference"
                ) from error

    def position(self) -> FloatArray:
        """Read all stages."""
        core: Any = self._core.api
        ways: dict[str, Callable[[str], float]] = {
            "x": core.getXPosition, "y": core.getYPosition, "single": core.getPosition,
        }  # fmt: skip
        return np.array([ways[direction](device) for device, direction in self._parts])

    def start(self, target: FloatArray) -> None:
        """Start all stages; an XY stage moves both of its axes at once."""
        targets = dict(zip(self._parts, target.tolist(), strict=True))
        for device in self._devices:
            if (device, "single") in targets:
                self._core.api.setPosition(device, targets[device, "single"])
            else:
                self._core.api.setXYPosition(device, targets[device, "x"], targets[device, "y"])

    def busy(self) -> bool:
        """Ask the stages, up to the first that moves."""
        return any(self._core.api.deviceBusy(device) for device in self._devices)

    def stop(self) -> None:
        """Stop all stages, also where one of them fails to."""
        failed = [error for device in self._devices if (error := self._stop(device)) is not None]
        if failed:
            raise failed[0]

    def _stop(self, device: str) -> Exception | None:
        try:
            self._core.api.stop(device)
        except Exception as error:
            return error
        return None

    def close(self) -> None:
        """Unload the configuration, where no camera uses it."""
        self._core.release(self)


def _check_directions(device: str, directions: list[str]) -> None:
    if sorted(directions) not in (["single"], ["x", "y"]):
        raise UserError(
            f"stage {device!r} has the directions {', '.join(directions)}; allowed: x and y, both once, or single"
        )


class MicroManagerCamera:
    """A camera of a configuration; each picture is exposed when it is asked for."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._core, self._settings, self._device = Core.of(settings), settings, settings["device"]
        self._format = KnownFormat(self._device)

    @property
    def format(self) -> PictureFormat:
        """Of the picture that was taken on connecting."""
        return self._format.value

    def connect(self) -> None:
        """Load the configuration, set the camera's properties and take a picture."""
        self._core.acquire(self)
        self._format.forget()
        core = self._core.api
        try:
            core.setCameraDevice(self._device)
            for name, value in self._settings["properties"].items():
                core.setProperty(self._device, name, value)
            core.setExposure(self._settings["exposure_ms"])
        except (RuntimeError, TypeError, ValueError) as error:
            raise DriverFault(
                f"camera {self._device!r} cannot be set up ({error}); check device, properties"
            ) from error
        self._snap(0.0)

    def frame(self, exposed_after: float, timeout: float) -> Picture:
        """Expose once, after the given time."""
        wait_for_exposure(exposed_after, timeout)
        return self._snap(timeout)

    def _snap(self, timeout: float) -> Picture:
        core = self._core.api
        try:
            core.snapImage()
            return self._format.checked(_as_picture(core.getImage(), core.getNumberOfComponents()))
        except RuntimeError as error:
            raise no_frame(self._device, timeout, error) from error

    def close(self) -> None:
        """Unload the configuration, where no axes use it."""
        self._format.forget()
        self._core.release(self)


def _as_picture(pixels: Picture, components: int) -> Picture:
    """Return colours apart: Micro-Manager packs blue, green, red and nothing into one number."""
    if components != 4 or pixels.itemsize not in (4, 8):
        return pixels
    value = np.dtype(f"u{pixels.itemsize // 4}")
    return pixels.view(value).reshape(*pixels.shape, 4)[..., 2::-1]
