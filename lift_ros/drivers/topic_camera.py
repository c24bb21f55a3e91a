"""Pictures of a ROS topic, raw or compressed; one counts only if its stamp says that it was taken late enough."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from lift_ros.array_types import Picture
from lift_ros.configuration import Key
from lift_ros.drivers.frames import KnownFormat, wait_for_exposure
from lift_ros.drivers.libraries import needed_by
from lift_ros.drivers.protocol import DriverFault
from lift_ros.drivers.ros_link import SOURCED, Link
from lift_ros.positioning.pictures import PictureFormat

CAMERA_KEYS = {
    "topic": Key(str, "image", meaning="topic of the pictures"),
    "compressed": Key(bool, False, meaning="sensor_msgs/CompressedImage instead of sensor_msgs/Image"),
    "stamps": Key(
        str,
        "header",
        choices=("header", "arrival"),
        meaning="time of exposure: the stamp in the header, or when it arrived, less latency_seconds",
    ),
    "latency_seconds": Key(
        float, 0.2, low=0, high=10, meaning="longest time from exposure to arrival (stamps: arrival)"
    ),
}
# By ROS' name: type of a value, values per pixel, and in which order they become red, green and blue.
_ENCODINGS = {"mono8": ("u1", 1, 1), "mono16": ("u2", 1, 1), "rgb8": ("u1", 3, 1), "bgr8": ("u1", 3, -1)}
_AHEAD_SECONDS = 0.5  # a stamp this far in the future is another clock's


class TopicCamera:
    """Keeps the last picture of a topic."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._settings, self._topic = settings, settings["topic"]
        self._format = KnownFormat(self._topic)
        self._link: Link | None = None
        self._come = threading.Condition()
        self._last: tuple[Any, float] | None = None  # message and time of exposure, by the monotonic clock

    @property
    def format(self) -> PictureFormat:
        """Of the picture that came on connecting."""
        return self._format.value

    def connect(self) -> None:
        """Wait for the first picture, whenever it was taken."""
        with needed_by("topics", SOURCED):
            from sensor_msgs.msg import CompressedImage, Image
        self.close()
        self._link = Link("lift_camera", self._settings["namespace"])
        try:
            self._topic = self._link.full_name(self._settings["topic"])
            kind = CompressedImage if self._settings["compressed"] else Image
            self._link.hear(kind, self._settings["topic"], self._receive)
            self._format.checked(self._decode(self._await(-np.inf, self._settings["connection_seconds"])))
        except Exception:
            self.close()
            raise

    def _receive(self, message: Any) -> None:
        exposed = now = time.monotonic()
        if self._settings["stamps"] == "header":
            stamp = message.header.stamp
            exposed += stamp.sec + stamp.nanosec * 1e-9 - time.time()
        else:
            exposed -= self._settings["latency_seconds"]
        with self._come:
            self._last = (message, exposed if exposed < now + _AHEAD_SECONDS else np.nan)
            self._come.notify_all()

    def frame(self, exposed_after: float, timeout: float) -> Picture:
        """Return the next picture that was taken after the given time."""
        if self._link is None:
            raise DriverFault(f"camera topic {self._topic} is not connected; connect it first")
        began = time.monotonic()
        wait_for_exposure(exposed_after, timeout)
        message = self._await(exposed_after, max(0.0, timeout - (time.monotonic() - began)), timeout)
        return self._format.checked(self._decode(message))

    def _await(self, exposed_after: float, seconds: float, limit: float | None = None) -> Any:
        with self._come:
            self._come.wait_for(lambda: self._last is not None and not self._last[1] <= exposed_after, seconds)
            last = self._last
        if last is not None and np.isnan(last[1]):
            raise DriverFault(
                f"camera topic {self._topic} stamps its pictures more than {_AHEAD_SECONDS:g} s ahead of this "
                "machine's clock; synchronise the clocks, or set stamps: arrival"
            )
        if last is None or last[1] <= exposed_after:
            told = "none came" if last is None else f"the last was taken {exposed_after - last[1]:.3g} s too early"
            raise DriverFault(
                f"camera topic {self._topic} brought no picture in time, limit {limit or seconds:.3g} s ({told}); "
                "check its driver, the topic's name and ROS_DOMAIN_ID, or set stamps: arrival where clocks differ"
            )
        return last[0]

    def _decode(self, message: Any) -> Picture:
        return self._uncompressed(message) if self._settings["compressed"] else self._raw(message)

    def _uncompressed(self, message: Any) -> Picture:
        with needed_by("topics", "pip install opencv-python-headless"):
            import cv2
        data = np.frombuffer(message.data, np.uint8)
        pixels = cv2.imdecode(data, cv2.IMREAD_ANYDEPTH | cv2.IMREAD_ANYCOLOR) if data.size else None
        if pixels is None:
            raise DriverFault(
                f"camera topic {self._topic} brought {data.size} bytes of format {message.format!r}, which OpenCV does "
                "not read; allowed: JPEG or PNG"
            )
        return pixels if pixels.ndim == 2 else cv2.cvtColor(pixels, cv2.COLOR_BGR2RGB)

    def _raw(self, message: Any) -> Picture:
        if message.encoding not in _ENCODINGS:
            raise DriverFault(
                f"camera topic {self._topic} has encoding {message.encoding!r}; allowed: {', '.join(_ENCODINGS)}; "
                "change the pixel format of its driver"
            )
        kind, channels, order = _ENCODINGS[message.encoding]
        dtype = np.dtype((">" if message.is_bigendian else "<") + kind)
        row = message.width * channels * dtype.itemsize
        if message.step < row or len(message.data) != message.step * message.height:
            raise DriverFault(
                f"camera topic {self._topic} brought {len(message.data)} bytes in rows of {message.step}; allowed: "
                f"{message.height} rows of at least {row}; check its driver"
            )
        rows = np.frombuffer(message.data, np.uint8).reshape(message.height, message.step)[:, :row]
        pixels = np.ascontiguousarray(rows).view(dtype).astype(dtype.newbyteorder("="))
        return pixels if channels == 1 else pixels.reshape(message.height, message.width, channels)[:, :, ::order]

    def close(self) -> None:
        """Leave the graph."""
        link, self._link, self._last = self._link, None, None
        self._format.forget()
        if link is not None:
            link.close()
