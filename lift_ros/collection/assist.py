"""Mode assist: when a learned policy that acts from the first step has stalled, and how what it did is taken back.

Nobody knows the distance to the goal here, because a rig does not. What is known are the moves that were commanded, and
they are enough: a policy that comes closer makes moves that add up, and shorter ones the closer it is.
"""

from __future__ import annotations

import math

import numpy as np

from lift_ros.array_types import FloatArray
from lift_ros.collection.proposals import judge_augmentation
from lift_ros.collection.records import Rejection
from lift_ros.positioning.problem import Limits
from lift_ros.scenario import AssistSettings

# An augmentor that says nothing has said nothing against the moves it has made.
ABSENT = frozenset({Rejection.MISSING, Rejection.LATE, Rejection.STALE})
# One that aims somewhere makes shorter moves the closer it comes: at most this share of its longest.
SETTLED = 0.5
# A way back that is shorter than this share of the action radius is not worth a move.
NEAR = 0.02
# A plant that came less far than this share of what was commanded has met a stop, and commands do not tell where it is.
FOLLOWED = 0.45
# Moves that are kept for what is then still missing, because the plant moved a little otherwise than commanded.
CORRECTIONS = 2
NOTHING: FloatArray = np.empty(0)
_ROUNDING = 1e-9


class Assistant:
    """Watches the augmentor of one episode until it stalls, then leads the plant back if the moves were erratic.

    Together its moves and those that take them back never exceed the budget. It stalls where the last `window` moves
    cancel out in both halves (in both, since a task with two goals may lead there and back once), where a move is too
    short to be worth making, where the budget is used up, or where its proposal is refused.
    """

    def __init__(self, settings: AssistSettings, limits: Limits) -> None:
        self.acting = settings.budget > 0
        self.left = settings.budget
        self._settings, self._limits = settings, limits
        self._half = settings.window // 2
        self._moves: list[FloatArray] = []  # of the augmentor
        self._lengths: list[float] = []
        self._net: FloatArray = np.zeros(limits.action_size)  # sum of them
        self._began: FloatArray | None = None  # position where it is known, else empty
        self._position: FloatArray = self._net
        self._leads_back = False
        self._undone: list[FloatArray] = []  # moves that take back what was commanded, from the end
        self._distance_back = math.inf  # as the plant saw it before the last move back

    @property
    def used(self) -> int:
        """How much of the budget is used."""
        return self._settings.budget - self.left

    def see(self, position: FloatArray) -> None:
        """Note where the plant is; empty where that is not known."""
        self._position = position
        self._began = position if self._began is None else self._began

    def judge(self, move: FloatArray) -> Rejection:
        """Return why the augmentor has stalled instead of making `move`, or NONE."""
        length = _length(move)
        if length < self._settings.smallest * self._limits.action_radius:
            return Rejection.TOO_SHORT
        back = CORRECTIONS + self._moves_along(self._net + move) if self._settings.retreat else 0
        if 1 + back > self.left:
            return Rejection.BUDGET_USED
        moves, lengths, half = [*self._moves, move], [*self._lengths, length], self._half
        cancelling = len(moves) >= 2 * half and all(
            _length(np.sum(moves[part], axis=0)) <= self._settings.cancel * sum(lengths[part])
            for part in (slice(-2 * half, -half), slice(-half, None))
        )
        return Rejection.CANCELLING if cancelling else Rejection.NONE

    def note(self, move: FloatArray) -> None:
        """Note a move that the augmentor has made, or one back."""
        self.left -= 1
        if self.acting:
            self._net = self._net + move
            self._moves.append(move)
            self._lengths.append(_length(move))

    def hand_over(self, reason: Rejection) -> None:
        """End the augmentor's part; unless it has settled, where it came to is no better than where it began."""
        self.acting = False
        settled = reason in ABSENT or reason is Rejection.TOO_SHORT or self._settled()
        self._leads_back = self._settings.retreat and not settled
        self._undone = self._take_back()

    def next_back(self) -> FloatArray | None:
        """Return the next move that takes back what the augmentor did, or None where the plant stays.

        First what was commanded, which is exact where moves add up or depend on their length alone: a routine may need
        far more steps from a place only a little beside. Then, where the plant tells its position, what is missing, as
        long as that brings it closer; at once where the budget would not allow both.
        """
        if self._leads_back and self.left > 0:
            seen = self._way_seen()
            if self._moves_along(seen) + CORRECTIONS > self.left:
                self._undone.clear()
            move = self._undone.pop() if self._undone else NOTHING
            if not self._may(move):
                self._undone.clear()
                move = self._missing(seen)
            if self._may(move):
                return move
        self.stay()
        return None

    def _take_back(self) -> list[FloatArray]:
        """Return the moves back, to be made from the end: on the way it came, or straight where that costs too much.

        None where the plant is seen to have come much less far than commanded: then its position tells the way.
        """
        if 0.0 < _length(self._way_seen()) < FOLLOWED * _length(self._net):
            return []
        if len(self._moves) + CORRECTIONS <= self.left:
            return [-move for move in self._moves]
        count = self._moves_along(self._net)
        return [-self._net / count for _ in range(count)]

    def stay(self) -> None:
        """Take nothing back any more."""
        self._leads_back = False

    def _may(self, move: FloatArray) -> bool:
        return judge_augmentation(move, self._position, self._limits) is Rejection.NONE

    def _way_seen(self) -> FloatArray:
        """Return the way to where the augmentor began as the plant sees it; none where it does not."""
        began = self._began
        if began is None or not began.shape == self._position.shape == self._net.shape:
            return np.zeros_like(self._net)
        return began - self._position

    def _missing(self, way: FloatArray) -> FloatArray:
        """Return a move on this way, or none where it is short or the last one has not made it shorter."""
        before, self._distance_back = self._distance_back, _length(way)
        worth_it = NEAR * self._limits.action_radius < self._distance_back < before
        return way / self._moves_along(way) if worth_it else NOTHING

    def _settled(self) -> bool:
        return bool(self._lengths) and max(self._lengths[-self._half :]) <= SETTLED * max(self._lengths)

    def _moves_along(self, way: FloatArray) -> int:
        return math.ceil(_length(way) / self._limits.action_radius - _ROUNDING)


def _length(move: FloatArray) -> float:
    return math.hypot(*move.tolist())
