"""Whether a plant executes a command: the last check before something moves, whoever sent the command."""

from __future__ import annotations

from lift_ros.array_types import FloatArray
from lift_ros.collection.exchange import Refusal
from lift_ros.collection.proposals import check_augmentation
from lift_ros.collection.records import Rejection
from lift_ros.positioning.problem import Limits

_REFUSAL_OF = {
    Rejection.NONE: Refusal.NONE,
    Rejection.MISSING: Refusal.WRONG_SIZE,
    Rejection.WRONG_SIZE: Refusal.WRONG_SIZE,
    Rejection.NOT_FINITE: Refusal.NOT_FINITE,
    Rejection.TOO_LONG: Refusal.TOO_LONG,
    Rejection.OUTSIDE_WORKSPACE: Refusal.OUTSIDE_WORKSPACE,
}


def refusal_of(action: FloatArray, position: FloatArray, limits: Limits, *, stopped: bool = False) -> Refusal:
    """Return why a plant at `position` must not execute `action`, or NONE."""
    if stopped:
        return Refusal.EMERGENCY_STOP
    return _REFUSAL_OF[check_augmentation(action, position, limits)]
