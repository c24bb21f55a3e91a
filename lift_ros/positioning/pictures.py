"""What pictures may be: arrays whose type and shape say how a `sensor_msgs/Image` calls them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lift_ros.array_types import Picture
from lift_ros.errors import UserError

# By ROS' name: type of a value and values per pixel. Floats hold differences, which have a sign.
ENCODINGS: dict[str, tuple[np.dtype, int]] = {
    "rgb8": (np.dtype(np.uint8), 3),
    "mono8": (np.dtype(np.uint8), 1),
    "rgb16": (np.dtype(np.uint16), 3),
    "mono16": (np.dtype(np.uint16), 1),
    "32FC3": (np.dtype(np.float32), 3),
    "32FC1": (np.dtype(np.float32), 1),
}
_NAMES = {kind: name for name, kind in ENCODINGS.items()}


@dataclass(frozen=True)
class PictureFormat:
    """Size and encoding of a picture: an array (height, width), or (height, width, 3) where it has three channels."""

    height: int
    width: int
    encoding: str

    @classmethod
    def of(cls, picture: Picture) -> PictureFormat:
        """Return the format of a picture; UserError where it is none."""
        channels = {2: 1, 3: picture.shape[-1]}.get(picture.ndim, 0)
        encoding = _NAMES.get((picture.dtype, channels))
        if encoding is None or not picture.size or (picture.ndim == 3 and channels == 1):
            raise UserError(
                f"a picture is {picture.dtype} of shape {picture.shape}; allowed: uint8, uint16 or float32 of shape "
                "(height, width) or (height, width, 3), not empty"
            )
        return cls(picture.shape[0], picture.shape[1], encoding)

    @property
    def dtype(self) -> np.dtype:
        """Type of a value."""
        return ENCODINGS[self.encoding][0]

    @property
    def channels(self) -> int:
        """Values per pixel."""
        return ENCODINGS[self.encoding][1]

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the array."""
        return (self.height, self.width) if self.channels == 1 else (self.height, self.width, self.channels)

    def __str__(self) -> str:
        return f"{self.width}×{self.height} {self.encoding}"


def for_eyes(picture: Picture) -> Picture:
    """Return a picture as viewers can show it: floats, which lie between −1 and 1, as bytes with 0 at mid grey."""
    if picture.dtype.kind != "f":
        return picture
    return np.asarray(np.clip(np.rint(127 * picture) + 128, 0, 255), dtype=np.uint8)
