from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from lift_ros.collection.exchange import Refusal
from lift_ros.collection.proposals import RELATIVE_TOLERANCE
from lift_ros.collection.refusals import refusal_of
from lift_ros.positioning.problem import Limits

LIMITS = Limits(2, 2, 0.3, 100, (np.full(2, -1.0), np.full(2, 1.0)))
NOWHERE = np.empty(0)


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
    assert refusal_of(np.array([0.3, 0.0]), NOWHERE, LIMITS) is Refusal.NONE
