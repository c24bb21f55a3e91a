"""Algorithm 2 as a pure state machine: who acts, when the logging policy is reset, and what is recorded.

The contract with its owner (the in-process loop, or a ROS node):

- Feed every event that arrives to `Arbiter.handle`, one at a time, and perform the returned instructions in their
  order. `Ask` comes before the `RecordStep` of the step before it, so that the policies think while that step is put
  into its record. The machine has no clock, no threads and no I/O: the same events give the same instructions, bit for
  bit.
- Events carry the episode and step they belong to. What belongs to another one, or comes when nobody waits for it, is
  ignored and counted in `drops`; it is never an error.
- `Ask` carries reset and question as one query: a policy that sees `handoff` forgets its state before it answers. The
  flag is set at step 0 and, in modes collect and assist, after every step of the augmentor.
- u is drawn at every step in collect mode, needed or not, so that the stream does not depend on timing.
- In assist mode both are asked until the augmentor stalls (`assist.py` says when); from then on the logging policy
  alone, with the whole step limit to itself.
- The owner keeps the time: `waiting_for` names whoever must answer now, and `Deadline` says that one did not. For the
  augmentor that is never the end unless it acts alone; for everybody else it aborts the episode.
- A step is recorded when the observation after it arrives, because the reward comes with it. With `require_receipts`
  the next command leaves only after the recorder has confirmed that step, and the machine is idle again only after the
  recorder has confirmed the episode.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TypeAlias

from lift_ros.collection import exchange
from lift_ros.collection.episode_under_way import EpisodeUnderWay
from lift_ros.collection.exchange import State
from lift_ros.positioning.problem import Limits


class AtOnce:
    """Stands in the table where a state may be left without waiting for an event."""


Condition: TypeAlias = Callable[[EpisodeUnderWay], bool]
Deed: TypeAlias = Callable[[EpisodeUnderWay], list[exchange.Instruction]]
Row: TypeAlias = tuple[Condition, Deed, State]
Trigger: TypeAlias = type[exchange.Event] | type[AtOnce]

# In a state, on an event, the first row whose condition holds says what is done and which state follows. An event that
# the table does not name for a state is dropped. The rows of AtOnce are tried after each event and each transition.
TRANSITIONS: dict[tuple[State, Trigger], tuple[Row, ...]] = {
    (State.IDLE, exchange.Start): ((EpisodeUnderWay.always, EpisodeUnderWay.reset, State.RESETTING),),
    #
    (State.RESETTING, exchange.Observation): (
        (EpisodeUnderWay.broken, EpisodeUnderWay.abort, State.FINISHING),
        (EpisodeUnderWay.arrived, EpisodeUnderWay.record_and_arrive, State.FINISHING),
        (EpisodeUnderWay.always, EpisodeUnderWay.ask, State.ASKING),
    ),
    (State.RESETTING, exchange.Deadline): ((EpisodeUnderWay.always, EpisodeUnderWay.abort, State.FINISHING),),
    (State.RESETTING, exchange.Stop): ((EpisodeUnderWay.always, EpisodeUnderWay.abort, State.FINISHING),),
    #
    (State.ASKING, exchange.Proposal): (
        (EpisodeUnderWay.broken, EpisodeUnderWay.abort, State.FINISHING),
        (EpisodeUnderWay.undecided, EpisodeUnderWay.nothing, State.ASKING),
        (EpisodeUnderWay.always, EpisodeUnderWay.choose, State.CONFIRMING),
    ),
    (State.ASKING, exchange.Deadline): (
        (EpisodeUnderWay.broken, EpisodeUnderWay.abort, State.FINISHING),
        (EpisodeUnderWay.undecided, EpisodeUnderWay.nothing, State.ASKING),
        (EpisodeUnderWay.always, EpisodeUnderWay.choose, State.CONFIRMING),
    ),
    (State.ASKING, exchange.Receipt): ((EpisodeUnderWay.always, EpisodeUnderWay.nothing, State.ASKING),),
    (State.ASKING, exchange.Stop): ((EpisodeUnderWay.always, EpisodeUnderWay.abort, State.FINISHING),),
    #
    (State.CONFIRMING, AtOnce): ((EpisodeUnderWay.confirmed, EpisodeUnderWay.command, State.MOVING),),
    (State.CONFIRMING, exchange.Receipt): ((EpisodeUnderWay.always, EpisodeUnderWay.nothing, State.CONFIRMING),),
    (State.CONFIRMING, exchange.Proposal): ((EpisodeUnderWay.always, EpisodeUnderWay.nothing, State.CONFIRMING),),
    (State.CONFIRMING, exchange.Deadline): ((EpisodeUnderWay.always, EpisodeUnderWay.abort, State.FINISHING),),
    (State.CONFIRMING, exchange.Stop): ((EpisodeUnderWay.always, EpisodeUnderWay.abort, State.FINISHING),),
    #
    (State.MOVING, exchange.Observation): (
        (EpisodeUnderWay.replaceable, EpisodeUnderWay.fall_back, State.MOVING),
        (EpisodeUnderWay.broken, EpisodeUnderWay.abort, State.FINISHING),
        (EpisodeUnderWay.arrived, EpisodeUnderWay.record_and_arrive, State.FINISHING),
        (EpisodeUnderWay.exhausted, EpisodeUnderWay.record_and_give_up, State.FINISHING),
        (EpisodeUnderWay.always, EpisodeUnderWay.ask_and_record, State.ASKING),
    ),
    (State.MOVING, exchange.Proposal): ((EpisodeUnderWay.always, EpisodeUnderWay.nothing, State.MOVING),),
    (State.MOVING, exchange.Deadline): ((EpisodeUnderWay.always, EpisodeUnderWay.abort, State.FINISHING),),
    (State.MOVING, exchange.Stop): ((EpisodeUnderWay.always, EpisodeUnderWay.abort, State.FINISHING),),
    #
    (State.FINISHING, AtOnce): ((EpisodeUnderWay.closed, EpisodeUnderWay.nothing, State.IDLE),),
    (State.FINISHING, exchange.Receipt): ((EpisodeUnderWay.always, EpisodeUnderWay.nothing, State.FINISHING),),
    (State.FINISHING, exchange.Deadline): ((EpisodeUnderWay.always, EpisodeUnderWay.halt, State.IDLE),),
    (State.FINISHING, exchange.Stop): ((EpisodeUnderWay.always, EpisodeUnderWay.halt, State.IDLE),),
}

# The same table by state and then by event, because making a pair for each look-up would cost as much as a row.
_ROWS: dict[State, dict[Trigger, tuple[Row, ...]]] = {
    state: {trigger: rows for (origin, trigger), rows in TRANSITIONS.items() if origin is state} for state in State
}


class Arbiter:
    """Decides step by step whether the logging policy or the augmentor acts; the module text is its contract."""

    def __init__(self, limits: Limits, *, require_receipts: bool = False) -> None:
        self.limits = limits
        self.state = State.IDLE
        self.drops: Counter[exchange.Drop] = Counter()
        self._require_receipts = require_receipts
        self._under_way: EpisodeUnderWay | None = None

    @property
    def episode(self) -> int | None:
        """Number of the episode under way, or of the last one; None before the first."""
        return None if self._under_way is None else self._under_way.episode

    @property
    def step(self) -> int:
        """Number of steps made in that episode, which is the number of the step being decided."""
        return 0 if self._under_way is None else len(self._under_way.steps)

    @property
    def waiting_for(self) -> frozenset[exchange.Party]:
        """Whoever must answer before the machine goes on."""
        return frozenset() if self._under_way is None else self._under_way.waiting_for(self.state)

    def handle(self, event: exchange.Event) -> list[exchange.Instruction]:
        """Take one event and return what is to be done now, in this order."""
        rows = _ROWS[self.state].get(type(event), ())
        drop: exchange.Drop | None = exchange.Drop.UNEXPECTED
        if rows and not isinstance(event, exchange.Start) and self._under_way is not None:
            drop = self._under_way.note(event, self.state)
        elif rows and isinstance(event, exchange.Start):
            self._under_way, drop = EpisodeUnderWay(event, self.limits, self._require_receipts), None
        if drop is not None or self._under_way is None:
            self.drops[drop or exchange.Drop.UNEXPECTED] += 1
            return []
        instructions: list[exchange.Instruction] = []
        while True:
            for condition, deed, following in rows:
                if condition(self._under_way):
                    instructions += deed(self._under_way)
                    self.state = following
                    break
            else:
                return instructions
            rows = _ROWS[self.state].get(AtOnce, ())
