"""Readings that rigs with a camera often need; one of your own is a function of position and picture like these."""

from __future__ import annotations

import numpy as np

from lift_ros.array_types import FloatArray, Picture
from lift_ros.errors import UserError
from lift_ros.positioning.problem import Observed


class Likeness:
    """Tells how like the reference picture the present one is, and how rich in contrast, both 1 at the goal.

    A routine climbs them; the plant has arrived where both are high enough.
    """

    def __init__(self, blur: float = 4.0, margin: float = 0.06, alike: float = 0.99, sharp: float = 0.9) -> None:
        for name, value in {"margin": margin, "alike": alike, "sharp": sharp}.items():
            if not 0 <= value <= 1:
                raise UserError(f"argument {name} of the reading Likeness is {value:g}; allowed: 0 to 1")
        self._blur, self._margin, self._alike, self._sharp = blur, margin, alike, sharp
        self._reference: Picture | None = None
        self._contrast = 1.0

    def set_reference(self, picture: Picture) -> None:
        """Learn what the goal looks like."""
        self._reference, self._contrast = self._pattern(picture), _contrast(picture)

    def __call__(self, position: FloatArray, picture: Picture | None) -> Observed:
        """Return likeness and contrast; they belong to the same picture."""
        if picture is None or self._reference is None:
            raise UserError("the reading Likeness needs rig.camera and rig.reference_at: add them to the scenario")
        alike = float((self._pattern(picture) * self._reference).sum())
        sharp = _contrast(picture) / self._contrast
        return Observed(np.array([alike, sharp]), terminated=alike >= self._alike and sharp >= self._sharp)

    def _pattern(self, picture: Picture) -> Picture:
        """Return the picture as coarse pattern without brightness; its border is left out, as it comes and goes."""
        import cv2  # only who uses it needs it

        height, width = (round(self._margin * side) for side in picture.shape[:2])
        inner = picture[height : picture.shape[0] - height, width : picture.shape[1] - width].astype(np.float32)
        coarse = cv2.GaussianBlur(inner, (0, 0), self._blur)
        coarse = coarse - coarse.mean()
        return np.asarray(coarse / max(float(np.linalg.norm(coarse)), 1e-9))


def _contrast(picture: Picture) -> float:
    return float(picture.std() / max(float(picture.mean()), 1e-9))
