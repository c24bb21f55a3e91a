from __future__ import annotations

from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from lift_ros.errors import UserError
from lift_ros.policies.preprocessing import PictureSettings, Preprocessing
from lift_ros.positioning.pictures import ENCODINGS, PictureFormat

COLOURS = PictureFormat(24, 32, "rgb8")


def prepared(format: PictureFormat = COLOURS, **settings: Any) -> Preprocessing:
    return Preprocessing.make(PictureSettings.parse(settings, "picture"), format)


def picture(format: PictureFormat = COLOURS, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if format.dtype.kind == "f":
        return rng.uniform(-1, 1, format.shape).astype(np.float32)
    return rng.integers(0, np.iinfo(format.dtype).max, format.shape, dtype=format.dtype, endpoint=True)


def test_a_picture_as_it_is_stays_as_it_is() -> None:
    given = picture()
    kept = prepared().of(given)
    assert kept.dtype == np.uint8 and (kept == given).all()


def test_steps_are_made_in_their_order() -> None:
    given = picture()
    kept = prepared(crop=[4, 8, 16, 24], grey=True, size=[8, 12]).of(given)
    grey = cv2.cvtColor(np.ascontiguousarray(given[4:20, 8:32]), cv2.COLOR_RGB2GRAY)
    assert (kept[:, :, 0] == cv2.resize(grey, (12, 8), interpolation=cv2.INTER_AREA)).all()


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_every_encoding_keeps_its_type_and_gets_an_axis_of_channels(encoding: str) -> None:
    format = PictureFormat(16, 16, encoding)
    made = prepared(format, size=[8, 8])
    kept = made.of(picture(format))
    assert kept.shape == made.shape == (8, 8, format.channels) and kept.dtype == made.dtype == format.dtype
    assert made.scaled(kept).dtype == np.float32


@pytest.mark.parametrize(
    ("encoding", "limits", "values", "expected"),
    [
        ("mono8", None, [0, 255], [-1.0, 1.0]),
        ("mono16", None, [0, 65535], [-1.0, 1.0]),
        ("mono16", [500, 1500], [400, 500, 1000, 2000], [-1.0, -1.0, 0.0, 1.0]),
        ("32FC1", None, [-2.0, -1.0, 0.0, 0.5], [-1.0, -1.0, 0.0, 0.5]),
        ("32FC1", [-4, 2], [-4.0, 0.0, 2.0], [-1.0, 0.0, 0.5]),
    ],
)
def test_the_range_is_scaled_and_zero_stays_zero_where_signs_count(
    encoding: str, limits: list[float] | None, values: list[float], expected: list[float]
) -> None:
    format = PictureFormat(8, 8, encoding)
    settings = {} if limits is None else {"range": limits}
    scaled = prepared(format, **settings).scaled(np.array(values, dtype=format.dtype))
    assert scaled.tolist() == pytest.approx(expected, abs=1e-6)


def test_the_difference_to_a_reference_has_signs(tmp_path: Path) -> None:
    reference, given = picture(seed=1), picture(seed=2)
    cv2.imwrite(str(tmp_path / "aligned.png"), cv2.cvtColor(reference, cv2.COLOR_RGB2BGR))
    made = prepared(reference=str(tmp_path / "aligned.png"))
    kept = made.of(given)
    assert kept.dtype == np.float32 and (kept == given.astype(np.float32) - reference).all()
    assert -1.0 <= made.scaled(kept).min() < 0.0 < made.scaled(kept).max() <= 1.0


def test_a_description_gives_the_same_preprocessing(tmp_path: Path) -> None:
    np.save(tmp_path / "aligned.npy", picture(seed=3))
    made = prepared(reference=str(tmp_path / "aligned.npy"), size=[8, 16], views=2, range=[-100, 100])
    again = Preprocessing.from_description(made.description(), made.reference.astype(np.float32))
    given = picture()
    assert (again.scaled(again.of(given)) == made.scaled(made.of(given))).all()
    assert made.description()["reference"] == "aligned.npy"  # no path of this machine


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"crop": [0, 0, 30, 8]}, "a part of a picture of 24 rows and 32 columns"),
        ({"size": [4, 8]}, "whole numbers from 8"),
        ({"crop": [0, 0, 4, 32]}, "at least 8 pixels"),
        ({"views": 3}, "a divisor of the width 32"),
        ({"range": [1, 1]}, "the lowest value, then a higher one"),
        ({"reference": "missing.png"}, "missing.png cannot be read"),
        ({"colour": True}, "colour"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError, match=words):
        prepared(**settings)


def test_a_reference_of_another_format_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "other.npy", np.zeros((4, 4, 3), np.uint8))
    with pytest.raises(UserError, match="what the plant sends, 32×24 rgb8"):
        prepared(reference=str(tmp_path / "other.npy"))


def test_pictures_of_another_format_are_refused() -> None:
    with pytest.raises(UserError, match="expected 32×24 rgb8"):
        prepared().of(np.zeros((24, 32), np.uint8))
