"""Pictures as arrays: what a `sensor_msgs/Image` may hold, checked in both directions."""

from __future__ import annotations

import sys

import numpy as np

from lift_ros.array_types import Picture
from lift_ros.errors import UserError
from lift_ros.messages.errors import MessageError
from lift_ros.positioning.pictures import ENCODINGS, PictureFormat

_ALLOWED = "uint8, uint16 or float32 of shape (height, width) or (height, width, 3)"
_BIG_ENDIAN = sys.byteorder == "big"


def image_fields(name: str, image: Picture | None) -> tuple[tuple[int, int, bytes, int], bytes | memoryview]:
    """Return height, width, encoding and bytes per row of a picture, zeros where there is none, and its pixels."""
    if image is None:
        return (0, 0, b"\0", 0), b""
    try:
        kind = PictureFormat.of(image)
    except UserError:
        raise MessageError(name, f"{image.dtype} of shape {image.shape}", _ALLOWED) from None
    if image.dtype.kind == "f" and not np.isfinite(image).all():
        raise MessageError(name, "a picture with NaN or infinity", "finite values")
    if _BIG_ENDIAN:
        image = image.astype(image.dtype.newbyteorder("<"))
    pixels = image.data.cast("B") if image.flags.c_contiguous else image.tobytes()
    row = kind.channels * kind.dtype.itemsize * kind.width
    return (kind.height, kind.width, kind.encoding.encode() + b"\0", row), pixels


def image_array(
    name: str, height: int, width: int, encoding: str, row: int, pixels: memoryview, *, big_endian: bool = False
) -> Picture | None:
    """Return the picture that an image's fields describe, or None where its width is 0."""
    if not width:
        return None
    if encoding not in ENCODINGS:
        raise MessageError(f"{name}.encoding", repr(encoding), f"one of {', '.join(ENCODINGS)}")
    kind = PictureFormat(height, width, encoding)
    used = kind.channels * kind.dtype.itemsize * width
    if row < used:
        raise MessageError(f"{name}.step", row, f"at least {used} for width {width}")
    if not height or len(pixels) != row * height:
        expected = f"{row * height} for {height} rows of {row} bytes, not 0"
        raise MessageError(f"{name}.data", f"{len(pixels)} bytes long", expected)
    rows = np.frombuffer(pixels, np.uint8).reshape(height, row)[:, :used]
    stored = kind.dtype.newbyteorder(">" if big_endian else "<")
    picture = np.ascontiguousarray(rows).view(stored).reshape(kind.shape).astype(kind.dtype)
    if kind.dtype.kind == "f" and not np.isfinite(picture).all():
        raise MessageError(f"{name}.data", "a picture with NaN or infinity", "finite values")
    return picture
