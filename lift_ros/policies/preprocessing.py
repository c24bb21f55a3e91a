"""What becomes of a picture before a network sees it: the same steps, by the same code, in trainer and augmentor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lift_ros.array_types import Float32Array, Picture
from lift_ros.configuration import Key, check_mapping
from lift_ros.errors import UserError
from lift_ros.positioning.pictures import ENCODINGS, PictureFormat

MOST_PIXELS = 4096  # along a side
SMALLEST_SIDE = 8  # of what networks see
PICTURE_KEYS = {
    "crop": Key(
        list, None, length=4, entries=int, optional=True, meaning="Part that is kept: top, left, height, width; pixels."
    ),
    "grey": Key(bool, False, meaning="Whether colours become grey."),
    "size": Key(
        list, None, length=2, entries=int, optional=True, meaning="Height and width that it is resized to; pixels."
    ),
    "reference": Key(
        str,
        None,
        optional=True,
        meaning="Picture file (PNG, or .npy for floats), as the plant sends them, that is subtracted; a path relative "
        "to the scenario's file.",
    ),
    "range": Key(
        list,
        None,
        length=2,
        optional=True,
        meaning="Lowest and highest value: clipped, and scaled to −1 … 1, zero staying zero where one is negative; "
        "null takes all that the encoding holds, and −1 … 1 of floats.",
    ),
    "views": Key(int, 1, low=1, high=8, meaning="Cameras whose pictures stand side by side, each as wide as the next."),
}
_FORMAT_KEYS = {
    "height": Key(int, low=1, high=MOST_PIXELS),
    "width": Key(int, low=1, high=MOST_PIXELS),
    "encoding": Key(str, choices=tuple(ENCODINGS)),
}


@dataclass(frozen=True)
class PictureSettings:
    """What a scenario says of its pictures."""

    crop: list[int] | None = None
    grey: bool = False
    size: list[int] | None = None
    reference: str | None = None
    range: list[float] | None = None
    views: int = 1

    @classmethod
    def parse(cls, data: Mapping[str, Any], where: str) -> PictureSettings:
        """Check the section `picture` of a scenario."""
        settings = cls(**check_mapping(dict(data), PICTURE_KEYS, where))
        if settings.range is not None and not settings.range[0] < settings.range[1]:
            raise UserError(f"{where}.range is {settings.range}; allowed: the lowest value, then a higher one")
        for name, numbers, low in (("crop", settings.crop, 0), ("size", settings.size, SMALLEST_SIDE)):
            if numbers is not None and not all(low <= number <= MOST_PIXELS for number in numbers):
                raise UserError(f"{where}.{name} is {numbers}; allowed: whole numbers from {low} to {MOST_PIXELS}")
        return settings


_AS_IT_IS = PictureSettings()


@dataclass(frozen=True, eq=False)
class Preprocessing:
    """Turns pictures of one format into what networks see."""

    settings: PictureSettings
    format: PictureFormat  # of what the plant sends
    reference: Picture | None = None  # of what is subtracted, processed up to there

    def __post_init__(self) -> None:
        height, width, _ = self.shape
        if self.settings.crop is not None:
            top, left, high, wide = self.settings.crop
            if high < 1 or wide < 1 or top + high > self.format.height or left + wide > self.format.width:
                raise UserError(
                    f"picture.crop is {self.settings.crop} (top, left, height, width); allowed: a part of a picture of "
                    f"{self.format.height} rows and {self.format.width} columns"
                )
        if width % self.settings.views:
            raise UserError(f"picture.views is {self.settings.views}; allowed: a divisor of the width {width}")
        if min(height, width // self.settings.views) < SMALLEST_SIDE:
            raise UserError(
                f"networks would see pictures of {height}×{width // self.settings.views}; allowed: at least "
                f"{SMALLEST_SIDE} pixels along each side: correct picture.size or picture.crop"
            )
        if self.reference is not None and self.reference.shape != self.shape:
            raise UserError(f"the reference picture has the shape {self.reference.shape}, expected {self.shape}")

    @classmethod
    def make(cls, settings: PictureSettings, format: PictureFormat) -> Preprocessing:
        """Return the preprocessing that a scenario asks for; reads the reference picture where it names one."""
        plain = cls(settings, format)
        if settings.reference is None:
            return plain
        return replace(plain, reference=plain.without_difference(_read_picture(Path(settings.reference), format)))

    @classmethod
    def from_description(cls, data: Mapping[str, Any], reference: Picture | None) -> Preprocessing:
        """Return what a model file describes; `reference` is a tensor of it."""
        where = "picture"
        content = {name: value for name, value in data.items() if name not in _FORMAT_KEYS}
        form = check_mapping({name: data[name] for name in _FORMAT_KEYS if name in data}, _FORMAT_KEYS, where)
        settings = PictureSettings.parse(content, where)
        if (settings.reference is None) != (reference is None):
            raise UserError("picture.reference and the tensor of this name do not belong together")
        return cls(settings, PictureFormat(**form), reference)

    def description(self) -> dict[str, Any]:
        """Return what `from_description` reads."""
        name = None if self.settings.reference is None else Path(self.settings.reference).name
        return {**asdict(self.settings), "reference": name, **asdict(self.format)}

    def words(self) -> str:
        """Return what is done to which pictures, for people."""
        said = {name: value for name, value in asdict(self.settings).items() if value != getattr(_AS_IT_IS, name)}
        height, width, channels = self.shape
        done = "".join(f", {name} {value}" for name, value in said.items() if value is not True)
        done += ", grey" if self.settings.grey else ""
        return f"{self.format}{done}; networks see {width}×{height}, channels: {channels}"

    @property
    def shape(self) -> tuple[int, int, int]:
        """Height, width and channels of what networks see."""
        height, width = self.format.height, self.format.width
        if self.settings.crop is not None:
            height, width = self.settings.crop[2:]
        if self.settings.size is not None:
            height, width = self.settings.size
        return height, width, 1 if self.settings.grey else self.format.channels

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type in which pictures are kept until a network sees them: bytes stay bytes."""
        return np.dtype(np.float32) if self.settings.reference is not None else self.format.dtype

    def of(self, picture: Picture) -> Picture:
        """Return a picture as it is kept for networks, of `shape` and `dtype`."""
        if picture.shape != self.format.shape or picture.dtype != self.format.dtype:
            raise UserError(
                f"a picture of {picture.dtype} and shape {picture.shape} came, expected {self.format}; use the plant "
                "that the scenario describes"
            )
        kept = self.without_difference(picture)
        if self.reference is None:
            return kept
        return kept.astype(np.float32) - self.reference.astype(np.float32)

    def scaled(self, pictures: Picture) -> Float32Array:
        """Return pictures that were kept, one or many, as numbers from −1 to 1; zero stays zero where signs count."""
        low, high = self._range
        numbers = pictures.astype(np.float32)
        if not self._holds_all:
            np.clip(numbers, low, high, out=numbers)
        if low < 0:
            numbers *= np.float32(1.0 / max(-low, high))
            return numbers
        numbers -= np.float32((low + high) / 2)
        numbers *= np.float32(2.0 / (high - low))
        return numbers

    def without_difference(self, picture: Picture) -> Picture:
        """Return a picture cropped, in grey and resized, but with nothing subtracted yet."""
        settings = self.settings
        if settings.crop is not None:
            top, left, height, width = settings.crop
            picture = picture[top : top + height, left : left + width]
        if (settings.grey and picture.ndim == 3) or settings.size is not None:
            picture = self._with_opencv(picture)
        return np.ascontiguousarray(picture).reshape(self.shape)

    def _with_opencv(self, picture: Picture) -> Picture:
        import cv2  # here, since whoever sees values alone needs none

        changed: Picture = np.ascontiguousarray(picture)
        if self.settings.grey and picture.ndim == 3:
            changed = cv2.cvtColor(changed, cv2.COLOR_RGB2GRAY)
        height, width, _ = self.shape
        if changed.shape[:2] != (height, width):
            changed = cv2.resize(changed, (width, height), interpolation=cv2.INTER_AREA)
        return changed

    @cached_property
    def _range(self) -> tuple[float, float]:
        if self.settings.range is not None:
            return self.settings.range[0], self.settings.range[1]
        most = 1.0 if self.format.dtype.kind == "f" else float(np.iinfo(self.format.dtype).max)
        return (-most if self.dtype.kind == "f" else 0.0), most

    @cached_property
    def _holds_all(self) -> bool:
        return self.settings.range is None and self.format.dtype.kind != "f"


def _read_picture(path: Path, format: PictureFormat) -> Picture:
    """Read a reference picture from a file."""
    import cv2

    try:
        if path.suffix == ".npy":
            picture: npt.NDArray[Any] = np.load(path, allow_pickle=False)
        else:
            found = cv2.imdecode(np.frombuffer(path.read_bytes(), np.uint8), cv2.IMREAD_UNCHANGED)
            if found is None:
                raise ValueError("no picture")
            picture = cv2.cvtColor(found, cv2.COLOR_BGR2RGB) if found.ndim == 3 else found
    except (OSError, ValueError, cv2.error) as error:
        raise UserError(f"picture.reference {path} cannot be read ({error}); name a PNG file, or .npy") from error
    if picture.shape != format.shape or picture.dtype != format.dtype:
        raise UserError(
            f"picture.reference {path} is {picture.dtype} of shape {picture.shape}; allowed: what the plant sends, "
            f"{format}"
        )
    return picture
