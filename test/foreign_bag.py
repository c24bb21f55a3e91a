"""Bags as other people record them: written with rosbags alone, with types this package does not know."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

SECOND = 1_000_000_000
START = 1_700_000_000 * SECOND
STORE = get_typestore(Stores.ROS2_HUMBLE)
STORE.register(
    get_types_from_msg("std_msgs/Header header\nfloat64[] delta\nstring phase\n", "foreign_rig/msg/Move")
    | get_types_from_msg("foreign_rig/Move[] moves\nfloat32[3] last\nbool done\n", "foreign_rig/msg/Plan")
)
Entry = tuple[str, Any, int]


def nanoseconds(seconds: float) -> int:
    return START + round(seconds * SECOND)


def make(typename: str, **fields: Any) -> Any:
    return STORE.types[typename](**fields)


def header(seconds: float) -> Any:
    time = nanoseconds(seconds)
    stamp = make("builtin_interfaces/msg/Time", sec=time // SECOND, nanosec=time % SECOND)
    return make("std_msgs/msg/Header", stamp=stamp, frame_id="rig")


def point(seconds: float, x: float, y: float, z: float = 0.0) -> Any:
    return make(
        "geometry_msgs/msg/PointStamped", header=header(seconds), point=make("geometry_msgs/msg/Point", x=x, y=y, z=z)
    )


def move(seconds: float, *delta: float, phase: str = "run") -> Any:
    return make("foreign_rig/msg/Move", header=header(seconds), delta=np.array(delta, dtype=np.float64), phase=phase)


def number(value: float) -> Any:
    return make("std_msgs/msg/Float64", data=value)


def flag(value: bool) -> Any:
    return make("std_msgs/msg/Bool", data=value)


def picture(seconds: float, pixels: np.ndarray, encoding: str = "rgb8") -> Any:
    height, width = pixels.shape[:2]
    return make(
        "sensor_msgs/msg/Image",
        header=header(seconds),
        height=height,
        width=width,
        encoding=encoding,
        is_bigendian=0,
        step=pixels.nbytes // height,
        data=np.ascontiguousarray(pixels).view(np.uint8).ravel(),
    )


def write_bag(path: Path, entries: Iterable[Entry], storage: StoragePlugin = StoragePlugin.MCAP) -> Path:
    """Write (topic, message, time) entries; bytes instead of a message are written raw as a service event."""
    with Writer(path, version=9, storage_plugin=storage) as writer:
        connections: dict[str, Any] = {}
        for topic, message, time in sorted(entries, key=lambda entry: entry[2]):
            raw = isinstance(message, bytes)
            if topic not in connections and raw:
                # What recorders store for service events is no message definition that parsers accept.
                connections[topic] = writer.add_connection(
                    topic, "std_srvs/srv/Trigger_Event", msgdef="---\nbool success\n???", rihs01="RIHS01_" + "0" * 64
                )
            elif topic not in connections:
                connections[topic] = writer.add_connection(topic, message.__msgtype__, typestore=STORE)
            data = message if raw else STORE.serialize_cdr(message, message.__msgtype__)
            writer.write(connections[topic], time, data)
    return path


def without_definitions(path: Path) -> Path:
    """Make a sqlite3 bag look like one of a distribution that stored no message definitions."""
    for file in path.glob("*.db3"):
        with sqlite3.connect(file) as database:
            database.execute("DROP TABLE message_definitions")
            database.execute("DROP TABLE schema")
        database.close()
    metadata = path / "metadata.yaml"
    metadata.write_text(metadata.read_text().replace("version: 9", "version: 5"))
    return path


def walk(steps: int = 5, begin: float = 0.0, period: float = 0.1) -> list[Entry]:
    """One drive towards (0, 0): positions at 50 Hz, a commanded increment every `period`, a score of the distance."""
    entries: list[Entry] = []
    stride = round(period / 0.02)
    for tick in range(steps * stride + stride // 2 + 1):
        seconds = begin + 0.02 * tick
        # A command acts at once: the tick after it shows the new position.
        done = min(steps, (tick + stride - 1) // stride)
        x, y = 1.0 - done / steps, 2.0 * (1.0 - done / steps)
        entries.append(("/tool", point(seconds, x, y), nanoseconds(seconds)))
        entries.append(("/score", number(-float(np.hypot(x, y))), nanoseconds(seconds)))
    for step in range(steps):
        seconds = begin + step * period + 0.001
        entries.append(("/move", move(seconds, -1.0 / steps, -2.0 / steps), nanoseconds(seconds)))
    return entries


def joints(seconds: float, **positions: float) -> Any:
    return make(
        "sensor_msgs/msg/JointState",
        header=header(seconds),
        name=list(positions),
        position=np.array(list(positions.values())),
        velocity=np.empty(0),
        effort=np.empty(0),
    )


def search(episodes: int, seed: int = 0, step: float = 0.05) -> list[Entry]:
    """Return drives of a stage to (0, 0), one axis after the other: encoders, a photodiode, positions, increments."""
    rng = np.random.default_rng(seed)
    entries: list[Entry] = []
    seconds = 0.0

    def tell(x: float, y: float) -> None:
        light = float(np.exp(-4.0 * (x * x + y * y)))
        for topic, message in (
            ("/joint_states", joints(seconds, slide_x=x, slide_y=y)),
            ("/photodiode", number(light)),
            ("/stage", point(seconds, x, y)),
        ):
            entries.append((topic, message, nanoseconds(seconds)))

    for _ in range(episodes):
        place = np.round(rng.uniform(-0.6, 0.6, 2) / step) * step
        place[place == 0] = step
        tell(*place)
        for axis in (0, 1):
            while abs(place[axis]) > step / 2:
                delta = np.zeros(2)
                delta[axis] = -np.sign(place[axis]) * step
                entries.append(("/stage/move", move(seconds + 0.01, *delta), nanoseconds(seconds + 0.01)))
                place = place + delta
                seconds += 0.1
                tell(*place)
        seconds += 10.0
    return entries
