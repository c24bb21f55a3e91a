"""Mode assist: when a learned policy that acts from the first step has stalled, and how what it did is taken back.

Nobody knows the distance to the goal here, because a rig does not. What is known are the moves that were commanded, and
they are enough: a policy that comes closer makes moves that add up, and shorter ones the closer it is.
"""

from __future__ import annotations

import math

import numpy as np

from lift_ros.array_types import FloatArray
from lift_ros.collection.records import Rejection
from lift_ros.positioning.problem import Limits
from lift_ros.scenario import AssistSettings

# An augmentor that says nothing has said nothing against the moves it has made.
ABSENT = frozenset({Rejection.MISSING, Rejection.LATE, Rejection.STALE})
# One that aims somewhere makes shorter moves the closer it comes: at most this share of its longest.
SETTLED = 0.5
_ROUNDING = 1e-9


class Assistant:
    """Watches the augmentor of one episode until it stalls, then leads the plant back if the moves were erratic.

    Together its moves and those that take them back never exceed the budget. It stalls where the last `window` moves
    cancel out in both halves (in both, since a task with two goals may lead there and back once), where a move is too
    short to be worth making, where the budget is used up, or where its owner says so.
    """

    def __init__(self, settings: AssistSettings, limits: Limits) -> None:
        self.acting = settings.budget > 0
        self._settings, self._radius = settings, limits.action_radius
        self._half = settings.window // 2
        self._moves: list[FloatArray] = []
        self._lengths: list[float] = []
        self._net: FloatArray = np.zeros(limits.action_size)  # sum of the moves
        self._way_back: list[FloatArray] = []

    def judge(self, move: FloatArray) -> Rejection:
        """Return why the augmentor has stalled instead of making `move`, or NONE."""
        length = _length(move)
        if length < self._settings.smallest * self._radius:
            return Rejection.TOO_SHORT
        cost = len(self._moves) + 1 + self._moves_back(self._net + move)
        if cost > self._settings.budget:
            return Rejection.BUDGET_USED
        moves, lengths, half = [*self._moves, move], [*self._lengths, length], self._half
        cancelling = len(moves) >= 2 * half and all(
            _length(np.sum(moves[part], axis=0)) <= self._settings.cancel * sum(lengths[part])
            for part in (slice(-2 * half, -half), slice(-half, None))
        )
        return Rejection.CANCELLING if cancelling else Rejection.NONE

    def note(self, move: FloatArray) -> None:
        """Note a move that the augmentor has made."""
        self._moves.append(move)
        self._lengths.append(_length(move))
        self._net = self._net + move

    def hand_over(self, reason: Rejection) -> None:
        """End the augmentor's part; unless it has settled, where it came to is no better than where it began."""
        self.acting = False
        settled = reason in ABSENT or reason is Rejection.TOO_SHORT or self._settled()
        count = 0 if settled else self._moves_back(self._net)
        self._way_back = [-self._net / count for _ in range(count)]

    def next_back(self) -> FloatArray | None:
        """Return the next move that takes back what the augmentor did, or None."""
        return self._way_back.pop() if self._way_back else None

    def stay(self) -> None:
        """Take nothing back any more."""
        self._way_back.clear()

    def _settled(self) -> bool:
        return bool(self._lengths) and max(self._lengths[-self._half :]) <= SETTLED * max(self._lengths)

    def _moves_back(self, net: FloatArray) -> int:
        if not self._settings.retreat:
            return 0
        return math.ceil(_length(net) / self._radius - _ROUNDING)


def _length(move: FloatArray) -> float:
    return math.hypot(*move.tolist())
