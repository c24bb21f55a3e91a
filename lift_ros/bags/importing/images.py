"""Camera pictures of a bag as arrays, decoded only for the samples that need them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import cv2
import numpy as np

from lift_ros.array_types import ByteArray, IntArray, Picture
from lift_ros.bags.importing.foreign_bag import ForeignBag
from lift_ros.collection.records import Episode
from lift_ros.errors import UserError
from lift_ros.positioning.pictures import ENCODINGS

RAW_TYPE, COMPRESSED_TYPE = "sensor_msgs/msg/Image", "sensor_msgs/msg/CompressedImage"
# Besides those that runs have: what they become, the values of a pixel, and which of them are kept in which order.
_TRANSLATED = {
    "bgr8": ("rgb8", 3, [2, 1, 0]),
    "rgba8": ("rgb8", 4, [0, 1, 2]),
    "bgra8": ("rgb8", 4, [2, 1, 0]),
    "16UC1": ("mono16", 1, [0]),
}
_KNOWN = {**{name: (name, count, list(range(count))) for name, (_, count) in ENCODINGS.items()}, **_TRANSLATED}


def require_image_topic(bag: ForeignBag, topic: str) -> None:
    """Refuse topics that are no pictures."""
    typename = bag.typename(topic)
    if typename not in (RAW_TYPE, COMPRESSED_TYPE):
        raise UserError(f"topic {topic} is {typename}; image.topic must be {RAW_TYPE} or {COMPRESSED_TYPE}")


def to_picture(topic: str, message: Any) -> Picture:
    """Return a picture message as array: a raw one with its type and channels as they are, a compressed one as rgb."""
    if not hasattr(message, "encoding"):
        return _decompress(topic, message)
    encoding = str(message.encoding)
    if encoding not in _KNOWN:
        raise UserError(f"topic {topic}: encoding {encoding!r} is not supported; use one of {', '.join(_KNOWN)}")
    name, values, order = _KNOWN[encoding]
    dtype, channels = ENCODINGS[name]
    height, width, step = int(message.height), int(message.width), int(message.step)
    used = width * values * dtype.itemsize
    data = np.frombuffer(bytes(message.data), dtype=np.uint8)
    if width < 1 or height < 1 or step < used or data.size < step * height:
        raise UserError(f"topic {topic}: a picture of {width}x{height} ({encoding}) has only {data.size} bytes")
    rows = np.ascontiguousarray(data[: step * height].reshape(height, step)[:, :used])
    pixels = rows.view(dtype.newbyteorder(">" if message.is_bigendian else "<")).reshape(height, width, values)
    picture = np.ascontiguousarray(pixels[:, :, order] if channels > 1 else pixels[:, :, 0], dtype=dtype)
    if dtype.kind == "f" and not np.isfinite(picture).all():
        remedy = "fill the gaps before you record it, or leave image out"
        raise UserError(f"topic {topic}: a picture has values that are NaN or infinite; {remedy}")
    return picture


def _decompress(topic: str, message: Any) -> ByteArray:
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
    found = {time: to_picture(topic, message) for time, message in stretch if time in wanted}
    if missing := wanted - set(found):
        raise UserError(f"bag {bag.path}: {len(missing)} pictures of topic {topic} cannot be decoded")
    *during, last = [found[moment] for moment in moments]
    steps = [replace(step, image=picture) for step, picture in zip(episode.steps, during, strict=True)]
    return replace(episode, steps=steps, final_image=last)
