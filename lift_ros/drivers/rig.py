"""What a scenario's section `rig` says: which devices drive the plant, how they are read and where episodes start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lift_ros.array_types import FloatArray
from lift_ros.configuration import Key, check_mapping
from lift_ros.drivers.motion import MotionSettings
from lift_ros.drivers.protocol import Axes, Axis, Camera
from lift_ros.drivers.table import check_camera, make_axes, make_camera, read_axes
from lift_ros.drivers.worker import DeviceWorker
from lift_ros.errors import UserError
from lift_ros.positioning.problem import Bounds, Limits
from lift_ros.seeds import derive_seed

POSITION = "position"  # a reading that needs no function: the observation is where the axes are

RIG_KEYS = {
    "axes": Key(
        dict,
        meaning="What moves: `driver` (a class of your own, too), its keys, `axes`, `motion`; see docs/drivers.md.",
    ),
    "camera": Key(dict, {}, meaning="What takes a picture after each move: `driver` and its keys; {} for none."),
    "reading": Key(dict, {}, meaning="What makes observations of positions and pictures, see below."),
    "scale": Key(
        list, None, optional=True, meaning="Units of each axis per unit of an action; null: 1, where units are alike."
    ),
    "start_low": Key(
        list, None, optional=True, meaning="Episodes start at a random place of this box; null: where the axes are."
    ),
    "start_high": Key(list, None, optional=True, meaning="The other corner of it, in units of the axes."),
    "reference_at": Key(
        list,
        None,
        optional=True,
        meaning="Where a reference picture is taken before the first episode, for readings that compare with one.",
    ),
    "home_at_start": Key(bool, False, meaning="Home the axes as soon as the node is up, without being asked to."),
    "camera_seconds": Key(float, 5.0, above=0, high=600, meaning="How long a picture may take."),
}
READING_KEYS = {
    "name": Key(
        str, POSITION, meaning='`position`, or a function or class of your own as "my_package.my_module:my_reading".'
    ),
    "arguments": Key(dict, {}, meaning="Keyword arguments of it."),
}


@dataclass(frozen=True)
class Reading:
    """A function that makes an observation of a position and a picture, by name, with its arguments."""

    name: str = POSITION
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Rig:
    """The checked section `rig`; positions of devices are in units of their axes, those of policies in one unit."""

    axes: Mapping[str, Any]
    camera: Mapping[str, Any]
    reading: Reading
    motion: MotionSettings
    scale: FloatArray  # units of an axis per unit of an action
    start: Bounds | None
    reference_at: FloatArray | None
    home_at_start: bool
    camera_seconds: float

    @classmethod
    def parse(cls, data: Mapping[str, Any], where: str) -> Rig:
        """Return what a section says; UserError where it cannot be."""
        read = check_mapping(data, RIG_KEYS, where)
        motion = read_axes(read["axes"], f"{where}.axes")
        if read["camera"]:
            check_camera(read["camera"], f"{where}.camera")
        reading = Reading(**check_mapping(read["reading"], READING_KEYS, f"{where}.reading"))
        scale = _vector(read["scale"], motion.axes, f"{where}.scale")
        if scale is not None and not (scale > 0).all():
            raise UserError(f"{where}.scale is {scale.tolist()}; allowed: numbers above 0")
        rig = cls(
            read["axes"],
            read["camera"],
            reading,
            motion,
            np.ones(len(motion.axes)) if scale is None else scale,
            _box(read, motion.axes, where),
            _vector(read["reference_at"], motion.axes, f"{where}.reference_at"),
            read["home_at_start"],
            read["camera_seconds"],
        )
        rig._check_places(where)
        return rig

    def reachable(self) -> Bounds:
        """Return the box of positions that every move may end in, in units of actions: what backlash needs is kept."""
        low = np.array([axis.low for axis in self.motion.axes]) + np.maximum(self.motion.backlash, 0)
        high = np.array([axis.high for axis in self.motion.axes]) + np.minimum(self.motion.backlash, 0)
        return low / self.scale, high / self.scale

    @property
    def patience(self) -> float:
        """How many seconds the longest move may take, with its picture, before others than the devices give up."""
        travel = np.array([axis.high - axis.low for axis in self.motion.axes])
        moving = 2 * self.motion.seconds_for(travel) + 2 * self.motion.settle_seconds
        return float(moving + self.camera_seconds + 5.0)

    def check(self, limits: Limits, where: str) -> None:
        """Refuse sizes and a workspace that these axes do not have."""
        count = len(self.motion.axes)
        if limits.action_size != count:
            raise UserError(f"plant.action_size is {limits.action_size}; allowed: {count}, the axes of {where}.axes")
        if self.reading.name == POSITION and limits.observation_size != count:
            raise UserError(
                f"plant.observation_size is {limits.observation_size}; allowed: {count}, the axes, as {where}.reading "
                "is the position; name a reading of your own for other observations"
            )
        if (limits.picture is None) == bool(self.camera):
            wanted = "plant.picture_height and picture_width" if self.camera else f"{where}.camera"
            raise UserError(f"{wanted} must be given: the scenario has a camera and a picture, or neither")
        low, high = self.reachable()
        if limits.workspace is not None and ((limits.workspace[0] < low) | (limits.workspace[1] > high)).any():
            raise UserError(
                f"plant.workspace_low {limits.workspace[0].tolist()} and workspace_high {limits.workspace[1].tolist()} "
                f"leave what the axes reach, {low.tolist()} to {high.tolist()} in units of actions; narrow them, or "
                f"leave them out"
            )

    def start_of(self, seed: int) -> FloatArray | None:
        """Return where the episode of this seed starts, in units of the axes; None where the axes stay."""
        if self.start is None:
            return None
        return np.random.default_rng(derive_seed(seed, "start")).uniform(*self.start)

    def make_devices(self) -> tuple[Axes, MotionSettings, Camera | None]:
        """Return axes and camera of the classes that the scenario names; nothing is connected yet."""
        return *make_axes(self.axes, "rig.axes"), make_camera(self.camera, "rig.camera") if self.camera else None

    def make_worker(self) -> DeviceWorker:
        """Return the devices on a thread of their own; nothing is connected yet."""
        return DeviceWorker(*self.make_devices())

    def _check_places(self, where: str) -> None:
        low, high = (corner * self.scale for corner in self.reachable())
        places = {"reference_at": self.reference_at}
        places |= {} if self.start is None else {"start_low": self.start[0], "start_high": self.start[1]}
        for name, place in places.items():
            if place is not None and ((place < low) | (place > high)).any():
                raise UserError(
                    f"{where}.{name} is {place.tolist()}; allowed: {low.tolist()} to {high.tolist()}, what the axes "
                    "reach with their backlash approach"
                )


def _vector(values: list[float] | None, axes: tuple[Axis, ...], where: str) -> FloatArray | None:
    if values is None:
        return None
    vector = np.array(values, dtype=np.float64)
    if len(vector) != len(axes) or not np.isfinite(vector).all():
        raise UserError(f"{where} is {values}; allowed: one finite number for each of the {len(axes)} axes")
    return vector


def _box(read: Mapping[str, Any], axes: tuple[Axis, ...], where: str) -> Bounds | None:
    low, high = (_vector(read[name], axes, f"{where}.{name}") for name in ("start_low", "start_high"))
    if low is None and high is None:
        return None
    if low is None or high is None or (low > high).any():
        raise UserError(
            f"{where}.start_low is {read['start_low']} and start_high is {read['start_high']}; give both, with no "
            "start_low above its start_high"
        )
    return low, high
