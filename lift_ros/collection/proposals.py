"""Whether an action may be commanded by the arbiter and executed by a plant, with closed sets of reasons against it."""

from __future__ import annotations

import math

import numpy as np

from lift_ros.array_types import FloatArray
from lift_ros.collection.exchange import Refusal
from lift_ros.collection.records import Rejection, Source
from lift_ros.positioning.problem import Limits

# A policy that computes in float32 and scales to the radius exceeds it by a few units in the last place.
RELATIVE_TOLERANCE = 1e-6

# A plant refuses for the reasons for which the arbiter itself rejects; all others are not about the proposal.
REJECTION_OF: dict[Refusal, Rejection] = {
    refusal: Rejection[refusal.name]
    for refusal in (Refusal.TOO_LONG, Refusal.OUTSIDE_WORKSPACE, Refusal.NOT_FINITE, Refusal.WRONG_SIZE)
}
_REFUSAL_OF = {rejection: refusal for refusal, rejection in REJECTION_OF.items()} | {
    Rejection.NONE: Refusal.NONE,
    Rejection.MISSING: Refusal.WRONG_SIZE,
}


def check_action(action: FloatArray, limits: Limits) -> Rejection:
    """Return why `action` must not be commanded anywhere, or NONE."""
    if action.size == 0:
        return Rejection.MISSING
    if action.shape != (limits.action_size,):
        return Rejection.WRONG_SIZE
    length = math.hypot(*action.tolist())
    if not math.isfinite(length):
        return Rejection.NOT_FINITE if not np.isfinite(action).all() else Rejection.TOO_LONG
    if length > limits.action_radius * (1 + RELATIVE_TOLERANCE):
        return Rejection.TOO_LONG
    return Rejection.NONE


def judge_augmentation(action: FloatArray, position: FloatArray, limits: Limits) -> Rejection:
    """Return why `action` must not replace the logging policy's action at `position`, or NONE.

    Besides the action itself this checks where an undistorted move would lead, if the position is known. The logging
    policy is spared that: the plant refuses what it cannot do, and there would be nothing to command instead.
    """
    rejection = check_action(action, limits)
    if rejection is not Rejection.NONE or limits.workspace is None or position.size != action.size:
        return rejection
    low, high = limits.workspace
    slack = RELATIVE_TOLERANCE * limits.action_radius
    borders = zip(position.tolist(), action.tolist(), low.tolist(), high.tolist(), strict=True)
    outside = any(x + move < least - slack or x + move > most + slack for x, move, least, most in borders)
    return Rejection.OUTSIDE_WORKSPACE if outside else Rejection.NONE


def refusal_of(action: FloatArray, position: FloatArray, limits: Limits, *, stopped: bool = False) -> Refusal:
    """Return why a plant at `position` must not execute `action`, or NONE: the last check, whoever sent the command."""
    if stopped:
        return Refusal.EMERGENCY_STOP
    return _REFUSAL_OF[judge_augmentation(action, position, limits)]


def describe_rejection(rejection: Rejection, source: Source, action: FloatArray, limits: Limits) -> str:
    """Return one sentence for the reason of an aborted episode, where `check_action` found one against `action`."""
    who = "the logging policy" if source is Source.LOGGING_POLICY else "the augmentor"
    match rejection:
        case Rejection.WRONG_SIZE:
            return f"{who} proposed an action of shape {action.shape}, the plant needs ({limits.action_size},)"
        case Rejection.NOT_FINITE:
            return f"{who} proposed an action that is not finite"
        case Rejection.TOO_LONG:
            length = float(np.linalg.norm(action))
            return f"{who} proposed an action of length {length:.6g}, the limit is {limits.action_radius:.6g}"
        case _:
            return f"{who} proposed no action"
