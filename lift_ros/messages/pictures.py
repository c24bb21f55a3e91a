"""Pictures as arrays: what a `sensor_msgs/Image` may hold, checked in both directions."""

from __future__ import annotations

import numpy as np

from lift_ros.array_types import ByteArray
from lift_ros.messages.errors import MessageError

ENCODING = "rgb8"
_CHANNELS = 3


def image_fields(name: str, image: ByteArray | None) -> tuple[tuple[int, int, bytes, int], bytes | memoryview]:
    """Return height, width, encoding and bytes per row of a picture, zeros where there is none, and its pixels."""
    if image is None:
        return (0, 0, b"\0", 0), b""
    if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] != _CHANNELS or not image.size:
        raise MessageError(name, f"{image.dtype} of shape {image.shape}", "uint8 of shape (height, width, 3)")
    height, width, _ = image.shape
    pixels = image.data.cast("B") if image.flags.c_contiguous else image.tobytes()
    return (height, width, ENCODING.encode() + b"\0", _CHANNELS * width), pixels


def image_array(name: str, height: int, width: int, encoding: str, row: int, pixels: memoryview) -> ByteArray | None:
    """Return the picture that an image's fields describe, or None where its width is 0."""
    if not width:
        return None
    if encoding != ENCODING:
        raise MessageError(f"{name}.encoding", repr(encoding), repr(ENCODING))
    if row < _CHANNELS * width:
        raise MessageError(f"{name}.step", row, f"at least {_CHANNELS * width} for width {width}")
    if not height or len(pixels) != row * height:
        expected = f"{row * height} for {height} rows of {row} bytes, not 0"
        raise MessageError(f"{name}.data", f"{len(pixels)} bytes long", expected)
    rows = np.frombuffer(pixels, np.uint8).reshape(height, row)
    return rows[:, : _CHANNELS * width].reshape(height, width, _CHANNELS).copy()
