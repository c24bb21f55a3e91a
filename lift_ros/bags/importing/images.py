"""Camera pictures of a bag as rgb arrays, decoded only for the samples that need them."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from lift_ros.array_types import IntArray
from lift_ros.bags.importing.streams import Bag, Ticks
from lift_ros.errors import UserError

Image = npt.NDArray[np.uint8]
RAW_TYPE, COMPRESSED_TYPE = "sensor_msgs/msg/Image", "sensor_msgs/msg/CompressedImage"
_CHANNELS = {"rgb8": (0, 1, 2), "bgr8": (2, 1, 0), "rgba8": (0, 1, 2), "bgra8": (2, 1, 0), "mono8": (0, 0, 0)}
_BYTES = {"rgb8": 3, "bgr8": 3, "rgba8": 4, "bgra8": 4, "mono8": 1}


def require_image_topic(bag: Bag, topic: str) -> None:
    """Refuse topics that are no pictures."""
    typename = bag.require(topic)[0].msgtype
    if typename not in (RAW_TYPE, COMPRESSED_TYPE):
        raise UserError(f"topic {topic} is {typename}; image.topic must be {RAW_TYPE} or {COMPRESSED_TYPE}")


def to_rgb(topic: str, message: Any) -> Image:
    """Return a picture message, raw or compressed, as (height, width, 3) array."""
    if not hasattr(message, "encoding"):
        return _decompress(topic, message)
    encoding = str(message.encoding)
    if encoding not in _CHANNELS:
        raise UserError(f"topic {topic}: encoding {encoding!r} is not supported; use one of {', '.join(_CHANNELS)}")
    height, width, step = int(message.height), int(message.width), int(message.step)
    size = _BYTES[encoding]
    data = np.frombuffer(bytes(message.data), dtype=np.uint8)
    if width < 1 or height < 1 or step < width * size or data.size < step * height:
        raise UserError(f"topic {topic}: a picture of {width}x{height} ({encoding}) has only {data.size} bytes")
    pixels = data[: step * height].reshape(height, step)[:, : width * size].reshape(height, width, size)
    return np.ascontiguousarray(pixels[:, :, list(_CHANNELS[encoding])])


def _decompress(topic: str, message: Any) -> Image:
    data = np.frombuffer(bytes(message.data), dtype=np.uint8)
    picture = cv2.imdecode(data, cv2.IMREAD_COLOR) if data.size else None
    if picture is None:
        raise UserError(
            f"topic {topic}: a picture of format {str(message.format)!r} with {data.size} bytes cannot be decoded; "
            "JPEG and PNG can"
        )
    return np.ascontiguousarray(picture[:, :, ::-1], dtype=np.uint8)


def read_images(bag: Bag, topic: str, ticks: Ticks, rows: IntArray) -> list[Image]:
    """Return the pictures at the given rows of the topic's times, reading only the stretch they lie in."""
    moments = [int(moment) for moment in ticks.received[rows]]
    wanted = set(moments)
    found: dict[int, Image] = {}
    for received, message in bag.decoded(topic, min(wanted), max(wanted) + 1):
        if received in wanted:
            found[received] = to_rgb(topic, message)
    missing = wanted - set(found)
    if missing:
        raise UserError(f"bag {bag.path}: {len(missing)} pictures of topic {topic} cannot be decoded")
    return [found[moment] for moment in moments]
