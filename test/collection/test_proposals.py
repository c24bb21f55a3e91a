from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from lift_ros.collection.exchange import Refusal
from lift_ros.collection.proposals import (
    RELATIVE_TOLERANCE,
    check_action,
    describe_rejection,
    judge_augmentation,
    refusal_of,
)
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
    assert judge_augmentation(np.array([0.1, 0.0]), np.array([0.9, 0.0]), LIMITS) is Rejection.NONE
    assert judge_augmentation(np.array([-0.2, 0.0]), np.array([-0.9, 0.0]), LIMITS) is Rejection.OUTSIDE_WORKSPACE


def test_without_workspace_every_place_is_allowed() -> None:
    free = Limits(2, 2, 0.3, 10)
    assert judge_augmentation(np.array([0.1, 0.0]), np.array([99.0, 0.0]), free) is Rejection.NONE


def test_a_matrix_is_no_action() -> None:
    assert check_action(np.zeros((1, 2)), LIMITS) is Rejection.WRONG_SIZE


@pytest.mark.parametrize(
    ("action", "words"),
    [
        (np.empty(0), "proposed no action"),
        (np.zeros(3), "of shape (3,), the plant needs (2,)"),
        (np.array([np.nan, 0.0]), "that is not finite"),
        (np.array([0.3, 0.4]), "of length 0.5, the limit is 0.3"),
    ],
)
@pytest.mark.parametrize("source", list(Source))
def test_every_reason_has_a_sentence_that_names_the_culprit(action: np.ndarray, words: str, source: Source) -> None:
    sentence = describe_rejection(check_action(action, LIMITS), source, action, LIMITS)
    assert source.name.lower().replace("_", " ") in sentence
    assert words in sentence


# Whether a plant executes ---------------------------------------------------------------------------------------------


@given(
    action=arrays(np.float64, st.integers(0, 4), elements=st.floats(width=64)),
    position=arrays(np.float64, 2, elements=st.floats(-1, 1)),
)
def test_whatever_passes_is_safe(action: np.ndarray, position: np.ndarray) -> None:
    if refusal_of(action, position, LIMITS) is Refusal.NONE:
        slack = RELATIVE_TOLERANCE * LIMITS.action_radius
        assert action.shape == (2,)
        assert np.linalg.norm(action) <= LIMITS.action_radius * (1 + 2 * RELATIVE_TOLERANCE)
        assert (np.abs(position + action) <= 1.0 + 2 * slack).all()


@given(action=arrays(np.float64, st.integers(0, 4), elements=st.floats(width=64)))
def test_nothing_passes_an_emergency_stop(action: np.ndarray) -> None:
    assert refusal_of(action, np.zeros(2), LIMITS, stopped=True) is Refusal.EMERGENCY_STOP


@pytest.mark.parametrize(
    ("action", "position", "refusal"),
    [
        ([0.3, 0.0], [0.0, 0.0], Refusal.NONE),
        ([0.0, 0.0], [1.0, 1.0], Refusal.NONE),
        ([0.31, 0.0], [0.0, 0.0], Refusal.TOO_LONG),
        ([1e308, 1e308], [0.0, 0.0], Refusal.TOO_LONG),
        ([np.nan, 0.0], [0.0, 0.0], Refusal.NOT_FINITE),
        ([np.inf, 0.0], [0.0, 0.0], Refusal.NOT_FINITE),
        ([0.1], [0.0, 0.0], Refusal.WRONG_SIZE),
        ([], [0.0, 0.0], Refusal.WRONG_SIZE),
        ([0.1, 0.0], [0.95, 0.0], Refusal.OUTSIDE_WORKSPACE),
    ],
)
def test_reasons(action: list[float], position: list[float], refusal: Refusal) -> None:
    assert refusal_of(np.array(action), np.array(position), LIMITS) is refusal


def test_workspace_cannot_be_judged_where_the_position_is_unknown() -> None:
    assert refusal_of(np.array([0.3, 0.0]), np.empty(0), LIMITS) is Refusal.NONE
