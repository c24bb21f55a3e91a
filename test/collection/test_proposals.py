from __future__ import annotations

import numpy as np
import pytest

from lift_ros.collection.proposals import check_action, check_augmentation, describe
from lift_ros.collection.records import Rejection, Source
from lift_ros.positioning.problem import Limits

LIMITS = Limits(2, 2, 0.3, 10, (np.full(2, -1.0), np.full(2, 1.0)))


def test_rounding_of_float32_is_no_excess() -> None:
    for angle in np.linspace(0, 2 * np.pi, 500):
        unit = np.array([np.cos(angle), np.sin(angle)], dtype=np.float32)
        assert check_action((unit * np.float32(0.3)).astype(np.float64), LIMITS) is Rejection.NONE


def test_a_real_excess_is_one() -> None:
    assert check_action(np.array([0.3001, 0.0]), LIMITS) is Rejection.TOO_LONG


def test_the_border_belongs_to_the_workspace() -> None:
    assert check_augmentation(np.array([0.1, 0.0]), np.array([0.9, 0.0]), LIMITS) is Rejection.NONE
    assert check_augmentation(np.array([-0.2, 0.0]), np.array([-0.9, 0.0]), LIMITS) is Rejection.OUTSIDE_WORKSPACE


def test_without_workspace_every_place_is_allowed() -> None:
    free = Limits(2, 2, 0.3, 10)
    assert check_augmentation(np.array([0.1, 0.0]), np.array([99.0, 0.0]), free) is Rejection.NONE


def test_a_matrix_is_no_action() -> None:
    assert check_action(np.zeros((1, 2)), LIMITS) is Rejection.WRONG_SIZE


@pytest.mark.parametrize("rejection", [reason for reason in Rejection if reason is not Rejection.NONE])
@pytest.mark.parametrize("source", list(Source))
def test_every_reason_has_a_sentence_that_names_the_culprit(rejection: Rejection, source: Source) -> None:
    sentence = describe(rejection, source, np.array([1.0, 2.0]), LIMITS)
    assert source.name.lower().replace("_", " ") in sentence


def test_no_reason_has_no_sentence() -> None:
    assert describe(Rejection.NONE, Source.AUGMENTOR, np.zeros(2), LIMITS) == ""
