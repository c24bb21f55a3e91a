"""A fast picture of a Siemens star through a lens objective that stands at a displacement from its optimum.

It is no ray tracer. Shift, keystone and magnification move the star; each pixel and colour is as sharp as its own
distance from focus says, blended from a stack of stars that were blurred once. Tz blurs everything; colours focus at
different Tz, which shows on which side of the focus one is; Rx and Ry sharpen one side and blur the other, and shift
the star a little, as Ty and Tx do.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from lift_ros.array_types import ByteArray, Float32Array, FloatArray, Picture
from lift_ros.errors import UserError
from lift_ros.positioning.dynamics import Beginning
from lift_ros.positioning.pictured import with_noise
from lift_ros.positioning.pictures import PictureFormat
from lift_ros.seeds import generator

AXES = ("Tx", "Ty", "Tz", "Rx", "Ry")
SMALLEST_PICTURE, LARGEST_PICTURE = 16, 512

# Lengths on the sensor are in halves of its side, all others in units of the axes.
_SHIFT = 9 / 32  # of the star by one unit of Tx or Ty; displacements reach ±2
_TILT_SHIFT = 0.25  # of Tx by Ry and of Ty by Rx
_KEYSTONE = 0.08  # growth across the sensor by one unit of tilt
_TILT_FOCUS = 1.0  # distance from focus at the sensor's edge by one unit of tilt
_FOCUS_MAGNIFICATION = 0.03  # growth by one unit of Tz
_COLOUR_FOCUS = (0.25, 0.0, -0.25)  # Tz at which red, green and blue are sharp
_BLUR = 0.12  # radius of the disc that a point becomes, by one unit from focus
_FARTHEST = 3.0  # from focus; beyond it nothing becomes less sharp
_LEVELS = 16  # of sharpness
_AT_ONCE = 4  # levels that OpenCV moves together: channels of one picture

_SPOKES = 9
_STAR_RADIUS = 0.62
_EXTENT = 1.25  # of the stack, which holds the star with its blur
_STACK_SCALE = 4  # pixels of the stack by pixel of the picture
_DARK, _BRIGHT = 0.08, 0.85
# Deviation of a lens from the next at strength 1.
_FOCUS_ERROR, _ASTIGMATISM, _MAGNIFICATION_ERROR, _BRIGHTNESS_ERROR = 0.04, 0.12, 0.03, 0.05
_ROWS = 512  # of pictures drawn at once, so that they stay close to the processor


def _import_cv2() -> Any:
    try:
        import cv2
    except ImportError as error:
        raise UserError("pictures of a lens need OpenCV: pip install opencv-python-headless") from error
    return cv2


def draw_lens(seed: int, strength: float) -> FloatArray:
    """Return the errors of the lens of an episode: focus of three colours, astigmatism (2), magnification, brightness.

    The focus errors of colours add up to zero, so that the optimum stays where it is.
    """
    deviations = generator(seed, "lens").normal(size=7) * strength
    deviations[:3] -= deviations[:3].mean()
    scales = [_FOCUS_ERROR] * 3 + [_ASTIGMATISM] * 2 + [_MAGNIFICATION_ERROR, _BRIGHTNESS_ERROR]
    return np.asarray(np.clip(deviations, -3, 3) * scales)


class FastLens:
    """Renders pictures of the star within a millisecond, one at a time or many at once with the same bits."""

    def __init__(self, picture_size: int = 64, lens_errors: float = 1.0, noise: float = 0.01) -> None:
        self._cv2 = _import_cv2()
        self.format = PictureFormat(picture_size, picture_size, "rgb8")
        self._lens_errors, self._noise = lens_errors, noise
        self._stack = _blurred_stars(picture_size)
        centres = (np.arange(picture_size, dtype=np.float32) * 2 + 1) / picture_size - 1
        self._across, self._down = centres[None, None, :], centres[None, :, None]
        self._seed = 0
        self._goal = np.zeros(len(AXES))
        self._lens = draw_lens(0, 0.0)

    def begin(self, seed: int, start: Beginning) -> None:
        """Take the lens of this episode."""
        self._seed, self._goal = seed, start.goal
        self._lens = draw_lens(seed, self._lens_errors)

    def picture(self, position: FloatArray, step: int) -> Picture:
        """Return what the sensor sees at a position."""
        brightness = self.brightness((position - self._goal)[None], self._lens[None])[0]
        return with_noise(brightness, self._noise, self._seed, step)

    def pictures(self, displacements: FloatArray, seeds: Sequence[int], steps: Sequence[int]) -> ByteArray:
        """Return what the sensor sees at many displacements, each in the episode of its seed after so many steps."""
        result = np.empty((len(displacements), *self.format.shape), dtype=np.uint8)
        at_once = max(1, _ROWS // self.format.height)
        lenses = np.array([draw_lens(seed, self._lens_errors) for seed in seeds])
        for first in range(0, len(displacements), at_once):
            part = slice(first, first + at_once)
            for index, brightness in enumerate(self.brightness(displacements[part], lenses[part]), first):
                result[index] = with_noise(brightness, self._noise, seeds[index], steps[index])
        return result

    def close(self) -> None:
        """Nothing is held."""

    def brightness(self, displacements: FloatArray, lenses: FloatArray) -> Float32Array:
        """Return pictures without noise as numbers from 0 to 1, one per row."""
        tx, ty, tz, rx, ry = (column[:, None, None] for column in displacements.T.astype(np.float32))
        red, green, blue, straight, skew, growth, gain = (
            column[:, None, None] for column in lenses.T.astype(np.float32)
        )
        x = self._across - np.float32(_SHIFT) * (tx + np.float32(_TILT_SHIFT) * ry)
        y = self._down - np.float32(_SHIFT) * (ty + np.float32(_TILT_SHIFT) * rx)
        wedge = 1 + np.float32(_KEYSTONE) * (ry * x + rx * y)
        wedge /= (1 + growth) * (1 + np.float32(_FOCUS_MAGNIFICATION) * tz)
        x, y = x * wedge, y * wedge
        # A spoke is as sharp as the lens is for its direction: so astigmatism is a focus that turns with the angle.
        square_x, square_y = x * x, y * y
        turning = (straight * (square_x - square_y) + (2 * skew) * (x * y)) / (square_x + square_y + np.float32(1e-4))
        focus = tz + np.float32(_TILT_FOCUS) * (ry * self._across + rx * self._down) + turning
        levels = np.empty((*focus.shape, 3), dtype=np.float32)
        for colour, (error, at) in enumerate(zip((red, green, blue), _COLOUR_FOCUS, strict=True)):
            np.subtract(focus, error + np.float32(at), out=levels[..., colour])
        np.abs(levels, out=levels)
        levels *= np.float32((_LEVELS - 1) / _FARTHEST)
        np.minimum(levels, np.float32(_LEVELS - 1.001), out=levels)
        picture = self._blended(x, y, levels)
        picture *= (1 + gain)[..., None]
        return picture

    def _blended(self, x: Float32Array, y: Float32Array, levels: Float32Array) -> Float32Array:
        """Look up the star at places of the object, each colour at its own level of sharpness."""
        count, size, _ = x.shape
        side = self._stack[0].shape[0]
        scale = np.float32(side / (2 * _EXTENT))
        offset = np.float32(side / 2 - 0.5)
        across, down = ((axis * scale + offset).reshape(count * size, size) for axis in (x, y))
        below = levels.astype(np.intp)
        share = levels - below
        first, last = int(below.min()) // _AT_ONCE, int(below.max() + 1) // _AT_ONCE
        moved = np.empty((last - first + 1, count * size, size, _AT_ONCE), dtype=np.float32)
        for group in range(first, last + 1):
            self._cv2.remap(
                self._stack[group],
                across,
                down,
                self._cv2.INTER_LINEAR,
                dst=moved[group - first],
                borderMode=self._cv2.BORDER_CONSTANT,
                borderValue=(_DARK,) * _AT_ONCE,
            )
        pixels = np.arange(0, moved[0].size, _AT_ONCE).reshape(count, size, size, 1)
        level = np.arange(_LEVELS)
        places = (level // _AT_ONCE - first) * moved[0].size + level % _AT_ONCE  # of a pixel's levels, in one row
        sharper = moved.take(places.take(below, mode="clip") + pixels, mode="clip")
        below += 1
        softer = moved.take(places.take(below, mode="clip") + pixels, mode="clip")
        softer -= sharper
        softer *= share
        softer += sharper
        return np.asarray(softer, dtype=np.float32)


@lru_cache(maxsize=4)
def _blurred_stars(picture_size: int) -> list[Float32Array]:
    """Return the star at all levels of sharpness, in groups that OpenCV moves together."""
    cv2 = _import_cv2()
    side = round(_STACK_SCALE * picture_size * _EXTENT / 2) * 2
    star = _star(side)
    per_length = side / (2 * _EXTENT)
    pixel = 2 / picture_size * per_length  # of the sensor, over which it averages
    levels = []
    for level in range(_LEVELS):
        kernel = _disc(level / (_LEVELS - 1) * _FARTHEST * _BLUR * per_length)
        blurred = cv2.filter2D(star, cv2.CV_32F, kernel, borderType=cv2.BORDER_REPLICATE)
        levels.append(cv2.GaussianBlur(blurred, (0, 0), pixel / 2, borderType=cv2.BORDER_REPLICATE))
    return [
        np.ascontiguousarray(np.stack(levels[first : first + _AT_ONCE], -1)) for first in range(0, _LEVELS, _AT_ONCE)
    ]


def _star(side: int) -> Float32Array:
    """Return a sharp Siemens star, bright spokes on dark ground."""
    fine = 2 * side
    centres = ((np.arange(fine) * 2 + 1) / fine - 1) * _EXTENT
    x, y = centres[None, :], centres[:, None]
    spokes = (np.cos(_SPOKES * np.arctan2(y, x)) > 0) & (x * x + y * y < _STAR_RADIUS**2)
    sharp = np.where(spokes, np.float32(_BRIGHT), np.float32(_DARK))
    return np.asarray(sharp.reshape(side, 2, side, 2).mean(axis=(1, 3)), dtype=np.float32)


def _disc(radius: float) -> Float32Array:
    """Return the disc that a point becomes, with a soft edge one pixel wide; its sum is 1."""
    reach = int(np.ceil(radius + 0.5))
    offsets = np.arange(-reach, reach + 1)
    distance = np.sqrt(offsets[:, None] ** 2 + offsets[None, :] ** 2)
    disc = np.clip(radius + 0.5 - distance, 0, 1)
    return np.asarray(disc / disc.sum(), dtype=np.float32)
