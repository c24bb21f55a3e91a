"""The drivers by name, with the keys that each takes in a scenario, and devices made of what a scenario says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lift_ros.configuration import Key, Keys, Section, check_mapping, nearest
from lift_ros.drivers import (
    epics,
    genicam,
    grbl,
    micromanager,
    micromanager_core,
    motion,
    opencv,
    ros_link,
    topic_camera,
    topics,
)
from lift_ros.drivers.motion import MotionSettings
from lift_ros.drivers.own import arguments_of, own_axes, own_camera
from lift_ros.drivers.protocol import Axes, Camera
from lift_ros.errors import UserError
from lift_ros.own_code import is_own
from lift_ros.untrusted import brief

MOST_AXES = 32


@dataclass(frozen=True)
class Driver:
    """What a device family takes and makes; without `axes` it has no axes, without `camera` no camera."""

    keys: Mapping[str, Key] = field(default_factory=dict)  # of the device, for axes and camera alike
    axis_keys: Mapping[str, Key] = field(default_factory=dict)
    camera_keys: Mapping[str, Key] = field(default_factory=dict)
    axes: Callable[..., Axes] | None = None
    camera: Callable[[Mapping[str, Any]], Camera] | None = None
    axes_keys: Mapping[str, Key] = field(default_factory=dict)  # of the device, for axes alone


DRIVERS: Mapping[str, Driver] = {
    "micromanager": Driver(
        micromanager_core.CORE_KEYS,
        micromanager.AXIS_KEYS,
        micromanager.CAMERA_KEYS,
        micromanager.MicroManagerAxes,
        micromanager.MicroManagerCamera,
    ),
    "epics": Driver(epics.KEYS, epics.AXIS_KEYS, axes=epics.EpicsAxes),
    "grbl": Driver(grbl.KEYS, grbl.AXIS_KEYS, axes=grbl.GrblAxes),
    "genicam": Driver(camera_keys=genicam.CAMERA_KEYS, camera=genicam.GenicamCamera),
    "opencv": Driver(camera_keys=opencv.CAMERA_KEYS, camera=opencv.OpenCvCamera),
    "topics": Driver(
        ros_link.KEYS,
        topics.AXIS_KEYS,
        topic_camera.CAMERA_KEYS,
        topics.make_topic_axes,
        topic_camera.TopicCamera,
        topics.AXES_KEYS,
    ),
}


OWN = Driver()  # a class of the user, which nothing is known of before it is imported


def read_axes(data: Any, where: str = "axes") -> MotionSettings:
    """Return how the axes move that a mapping describes, all of it checked but what only a user's own class knows."""
    driver, read, settings = _read(data, where)
    if driver.axes is not None:
        driver.axes(settings.axes, read["axes"], read)
    return settings


def make_axes(data: Any, where: str = "axes") -> tuple[Axes, MotionSettings]:
    """Return the axes that a mapping describes and how they move; nothing is connected yet."""
    driver, read, settings = _read(data, where)
    if driver.axes is None:
        return own_axes(read, settings.axes, where), settings
    return driver.axes(settings.axes, read["axes"], read), settings


def _read(data: Any, where: str) -> tuple[Driver, dict[str, Any], MotionSettings]:
    """Return the driver of a mapping of axes, the checked mapping, and how the axes move; one's own has no `axes`."""
    driver = _driver(data, where, [name for name, known in DRIVERS.items() if known.axes is not None])

    def read_each(value: Any, place: str) -> list[dict[str, Any]]:
        return _read_axes(value, {**motion.AXIS_KEYS, **driver.axis_keys}, place)

    keys: Keys = {
        "driver": Key(str),
        **driver.keys,
        **driver.axes_keys,
        "axes": Section(read_each),
        "motion": Section(_read_motion, check_mapping({}, motion.MOTION_KEYS, "motion")),
    }
    arguments = arguments_of(data, keys) if driver is OWN else {}
    read = check_mapping({name: data[name] for name in data if name not in arguments}, keys, where)
    return driver, {**read, **arguments}, MotionSettings.of(read["axes"], read["motion"])


def check_camera(data: Any, where: str = "camera") -> None:
    """Check what a mapping says of a camera: all but what only a user's own class knows."""
    if _camera_driver(data, where) is not OWN:
        make_camera(data, where)


def make_camera(data: Any, where: str = "camera") -> Camera:
    """Return the camera that a mapping describes; it is not connected yet."""
    driver = _camera_driver(data, where)
    if driver.camera is None:
        return own_camera(data, where)
    return driver.camera(check_mapping(data, {"driver": Key(str), **driver.keys, **driver.camera_keys}, where))


def _camera_driver(data: Any, where: str) -> Driver:
    return _driver(data, where, [name for name, known in DRIVERS.items() if known.camera is not None])


def _driver(data: Any, where: str, names: list[str]) -> Driver:
    name = data.get("driver") if isinstance(data, dict) else None
    allowed = f'one of {", ".join(names)}, or a class of your own as "my_package.my_module:Name"'
    if name is None:
        raise UserError(f"{where}.driver is missing; allowed: {allowed}")
    if isinstance(name, str) and is_own(name):
        return OWN
    if not isinstance(name, str) or name not in names:
        raise UserError(f"{where}.driver is {brief(name)}; allowed: {allowed}; {nearest(name, names)}")
    return DRIVERS[name]


def _read_motion(value: Any, place: str) -> dict[str, Any]:
    return check_mapping(value, motion.MOTION_KEYS, place)


def _read_axes(value: Any, keys: Keys, place: str) -> list[dict[str, Any]]:
    if not isinstance(value, list) or not 1 <= len(value) <= MOST_AXES:
        raise UserError(f"{place} is {brief(value)}; allowed: a list of 1 to {MOST_AXES} mappings, one per axis")
    axes = [check_mapping(axis, keys, f"{place}[{i}]") for i, axis in enumerate(value)]
    for i, axis in enumerate(axes):
        _check_axis(axis, f"{place}[{i}]")
    names = [axis["name"] for axis in axes]
    if len(set(names)) != len(names):
        raise UserError(f"{place} has the names {', '.join(map(brief, names))}; allowed: each name once")
    return axes


def _check_axis(axis: Mapping[str, Any], place: str) -> None:
    travel = axis["high"] - axis["low"]
    if travel <= 0:
        raise UserError(f"{place}.low is {axis['low']:g}; allowed: less than high, which is {axis['high']:g}")
    for name in ("tolerance", "backlash"):
        if abs(axis[name]) >= travel:
            raise UserError(f"{place}.{name} is {axis[name]:g}; allowed: less than the travel of {travel:g}")
