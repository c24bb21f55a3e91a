"""Camera pictures of a bag as rgb arrays, decoded only for the samples that need them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from lift_ros.array_types import IntArray
from lift_ros.bags.importing.foreign_bag import ForeignBag
from lift_ros.collection.records import Episode
from lift_ros.errors import UserError

Image = npt.NDArray[np.uint8]
RAW_TYPE, COMPRESSED_TYPE = "sensor_msgs/msg/Image", "sensor_msgs/msg/CompressedImage"
# Bytes per pixel, and which of them are red, green and blue.
_ENCODINGS = {
    "rgb8": (3, [0, 1, 2]),
    "bgr8": (3, [2, 1, 0]),
    "rgba8": (4, [0, 1, 2]),
    "bgra8": (4, [2, 1, 0]),
    "mono8": (1, [0, 0, 0]),
}


def require_image_topic(bag: ForeignBag, topic: str) -> None:
    """Refuse topics that are no pictures."""
    typename = bag.typename(topic)
    if typename not in (RAW_TYPE, COMPRESSED_TYPE):
        raise UserError(f"topic {topic} is {typename}; image.topic must be {RAW_TYPE} or {COMPRESSED_TYPE}")


def to_rgb(topic: str, message: Any) -> Image:
    """Return a picture message, raw or compressed, as (height, width, 3) array."""
    if not hasattr(message, "encoding"):
        return _decompress(topic, message)
    encoding = str(message.encoding)
    if encoding not in _ENCODINGS:
        raise UserError(f"topic {topic}: encoding {encoding!r} is not supported; use one of {', '.join(_ENCODINGS)}")
    height, width, step = int(message.height), int(message.width), int(message.step)
    size, colours = _ENCODINGS[encoding]
    data = np.frombuffer(bytes(message.data), dtype=np.uint8)
    if width < 1 or height < 1 or step < width * size or data.size < step * height:
        raise UserError(f"topic {topic}: a picture of {width}x{height} ({encoding}) has only {data.size} bytes")
    pixels = data[: step * height].reshape(height, step)[:, : width * size].reshape(height, width, size)
    return np.ascontiguousarray(pixels[:, :, colours])


def _decompress(topic: str, message: Any) -> Image:
    data = np.frombuffer(bytes(message.data), dtype=np.uint8)
    picture = cv2.imdecode(data, cv2.IMREAD_COLOR) if data.size else None
    if picture is None:
        what = f"a picture of format {str(message.format)!r} with {data.size} bytes"
        raise UserError(f"topic {topic}: {what} cannot be decoded; JPEG and PNG can")
    return np.ascontiguousarray(picture[:, :, ::-1], dtype=np.uint8)


def with_pictures(episode: Episode, bag: ForeignBag, topic: str, received: IntArray) -> Episode:
    """Return an episode with the pictures received at these times, one per sample; only their stretch is read."""
    moments = [int(moment) for moment in received]
    wanted = set(moments)
    stretch = bag.decoded(topic, min(wanted), max(wanted) + 1)
    found = {time: to_rgb(topic, message) for time, message in stretch if time in wanted}
    if missing := wanted - set(found):
        raise UserError(f"bag {bag.path}: {len(missing)} pictures of topic {topic} cannot be decoded")
    *during, last = [found[moment] for moment in moments]
    steps = [replace(step, image=picture) for step, picture in zip(episode.steps, during, strict=True)]
    return replace(episode, steps=steps, final_image=last)
