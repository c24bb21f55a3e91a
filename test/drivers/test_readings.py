"""Likeness and contrast of pictures, and the routine that climbs them."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from lift_ros.drivers.readings import Likeness
from lift_ros.errors import UserError
from lift_ros.policies.climbing import climb

NOWHERE = np.zeros(2)


def spots(shift: float = 0.0, blur: float = 0.0) -> np.ndarray:
    picture = np.zeros((96, 96), np.float32)
    for row, column in np.random.default_rng(5).integers(20, 76, (12, 2)):
        cv2.circle(picture, (int(column), int(row)), 2, 255.0, -1)
    moved = cv2.warpAffine(picture, np.float32([[1, 0, shift], [0, 1, 0]]), (96, 96))
    return (cv2.GaussianBlur(moved, (0, 0), blur) if blur else moved).astype(np.uint8)


@pytest.fixture
def likeness() -> Likeness:
    reading = Likeness(blur=6)
    reading.set_reference(spots())
    return reading


def test_the_reference_itself_is_the_goal(likeness: Likeness) -> None:
    observed = likeness(NOWHERE, spots())
    assert np.allclose(observed.values, 1.0, atol=1e-5) and observed.terminated


def test_likeness_falls_with_the_shift_and_contrast_with_the_blur(likeness: Likeness) -> None:
    alike = [likeness(NOWHERE, spots(shift)).values[0] for shift in (0, 2, 4, 8)]
    sharp = [likeness(NOWHERE, spots(blur=blur)).values[1] for blur in (0, 1, 2, 4)]
    assert alike == sorted(alike, reverse=True) and alike[-1] < 0.9
    assert sharp == sorted(sharp, reverse=True) and sharp[-1] < 0.9


def test_brightness_says_nothing(likeness: Likeness) -> None:
    assert np.allclose(likeness(NOWHERE, spots() // 2).values, 1.0, atol=0.02)


@pytest.mark.parametrize("shown", [{"shift": 6}, {"blur": 3}])
def test_one_score_alone_is_no_arrival(likeness: Likeness, shown: dict[str, float]) -> None:
    assert not likeness(NOWHERE, spots(**shown)).terminated


def test_without_a_reference_it_says_what_is_missing() -> None:
    with pytest.raises(UserError, match="rig.reference_at"):
        Likeness()(NOWHERE, spots())


@pytest.mark.parametrize("name", ["margin", "alike", "sharp"])
def test_arguments_have_limits(name: str) -> None:
    with pytest.raises(UserError, match=f"argument {name}"):
        Likeness(**{name: 1.5})


@pytest.mark.parametrize("start", [(3.0, -2.0), (-4.2, 0.3), (0.1, 5.0)])
def test_climbing_arrives_wherever_it_starts(start: tuple[float, float]) -> None:
    place = np.array(start)
    routine = climb(np.array([-abs(place[0]), -abs(place[1])]), axes=[0, 1], scores=[0, 1], steps=[1.0, 0.25], size=2)
    action = next(routine)
    for _ in range(200):
        assert np.count_nonzero(action) == 1
        place = place + action
        if np.linalg.norm(place) < 0.3:
            return
        action = routine.send(-np.abs(place))
    raise AssertionError(place)
