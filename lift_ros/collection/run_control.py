"""A run as a pure state machine around the arbiter's: which episode is next, who is waited for, and what people want.

The contract with its owner (the arbiter node):

- Feed all that arrives to `RunControl.handle`, and a `Tick` several times in the shortest deadline, and perform the
  returned instructions in their order. The machine has no clock, no threads and no I/O: `time_ns` is the wall clock
  for records, `steady_ns` one that never jumps, for waiting.
- `situation` and `detail` say what people should know; they are right after every call of `handle`.
- While people want a pause, a chosen move is withheld and the plant told to hold. Resuming commands that move, and
  whatever ends the episode forgets it.
- Before the first move of an episode nothing is lost by waiting: a silent plant is told again and a policy without an
  answer asked again, for ever. After it they have their deadlines. The recorder has none: no unrecorded step is made.
- An augmentor that missed its deadline is asked on but not waited for, until it says something.
- An emergency stop pauses the run, and so does a fault of the plant. After an episode that was aborted before its first
  move the next waits, twice as long each time, so that neither empty episodes pile up nor a passing trouble ends the
  run.
- The recorder says which number is free. If it fails or begins anew, the episode under way is given up without a record
  of its end: the recorder has closed it on its side already.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from lift_ros.collection import exchange
from lift_ros.collection.arbiter import Arbiter
from lift_ros.collection.episode_under_way import PARTY_OF
from lift_ros.collection.exchange import Party, State
from lift_ros.collection.guard import Decision, Guard
from lift_ros.collection.records import Mode, Outcome, Source
from lift_ros.positioning.problem import Limits
from lift_ros.scenario import DEFAULT_ASSIST, NO_GUARD, AssistSettings, GuardSettings

# How long an answer may take before people are told who is waited for.
PATIENCE_NS = 500_000_000
# How long the next episode waits after one that came to nothing; doubled each time.
FIRST_RETRY_S, LONGEST_RETRY_S = 1, 60


@dataclass(frozen=True)
class RunSettings:
    """What a run is told; whoever owns it may replace it at any time, and the next decision heeds it."""

    deadlines: Mapping[Party, float]  # of plant and policies, in seconds
    repeat_period: float  # in seconds
    seed: int = 0
    episodes: int = 0  # in the run, aborted ones included; 0 for no end
    mode: Mode = Mode.COLLECT
    p: float = 0.0
    budget: int = exchange.DEFAULT_BUDGET
    model_from: int = -1  # from this episode on the augmentor's model is waited for; -1 never waits
    assist: AssistSettings = DEFAULT_ASSIST
    guard: GuardSettings = NO_GUARD


class Wish(Enum):
    """What people want: an event of `RunControl`."""

    RUN = "run episodes"
    PAUSE = "make no move"
    STOP = "stopped by the operator"
    END = "the arbiter was ended"


class Situation(Enum):
    """What people should know about the run."""

    WAITING_FOR_START = "nobody has told it to run"
    WAITING_FOR_RECORDER = "what was made is not confirmed, or no number is free"
    WAITING_FOR_PLANT = "the plant has not answered"
    WAITING_FOR_LOGGING_POLICY = "the logging policy has not answered"
    WAITING_FOR_MODEL = "the augmentor has no model, and the first move waits for one"
    RETRYING = "the last episode came to nothing, and the next is not tried yet"
    RUNNING = "an episode is under way"
    PAUSED = "no move is made until people want one"
    DONE = "all episodes are recorded"


@dataclass(slots=True)
class Tick:
    """Time has passed: an event of `RunControl`."""


@dataclass(slots=True)
class Repeat:
    """Send again what these parties have not answered; they know repeats and never act twice."""

    parties: frozenset[Party]


@dataclass(slots=True)
class Overdue:
    """Tell people that a party missed its deadline."""

    party: Party


RunEvent: TypeAlias = (
    exchange.Observation | exchange.Proposal | exchange.Receipt | exchange.Ready | exchange.Failed | Wish | Tick
)
RunInstruction: TypeAlias = exchange.Instruction | Repeat | Overdue

_WAITING = {
    Party.PLANT: Situation.WAITING_FOR_PLANT,
    Party.LOGGING_POLICY: Situation.WAITING_FOR_LOGGING_POLICY,
    Party.AUGMENTOR: Situation.WAITING_FOR_MODEL,
    Party.RECORDER: Situation.WAITING_FOR_RECORDER,
}
_WANTS_A_PERSON = {  # refusals of the plant after which a run waits until somebody resumes it
    exchange.Refusal.EMERGENCY_STOP: "The emergency stop was pressed.",
    exchange.Refusal.HARDWARE_FAULT: "The plant has a fault.",
}
_RESTING = {
    Wish.RUN: Situation.WAITING_FOR_RECORDER,
    Wish.PAUSE: Situation.PAUSED,
    Wish.STOP: Situation.WAITING_FOR_START,
}
# Who is waited for once an instruction is performed.
_ANSWERED_BY: Mapping[type, tuple[Party, ...]] = {
    exchange.Reset: (Party.PLANT,),
    exchange.Move: (Party.PLANT,),
    exchange.Ask: (Party.LOGGING_POLICY, Party.AUGMENTOR),
    exchange.RecordStep: (Party.RECORDER,),
    exchange.RecordEpisode: (Party.RECORDER,),
}


class RunControl:
    """Runs one episode after the other; the module text is its contract."""

    def __init__(self, limits: Limits, settings: RunSettings, wish: Wish = Wish.RUN) -> None:
        self.settings = settings
        self.situation = _RESTING[wish]
        self.detail = ""
        self.since = dict.fromkeys(Party, 0)  # by the steady clock: when each was last told something to answer
        self.arbiter = Arbiter(limits, require_receipts=True)
        self.guard = Guard(settings.guard)
        self.decision = Decision(settings.p, settings.budget)  # for the episode under way
        self._wish = wish
        self._mode = settings.mode  # of the episode under way
        self._next: int | None = None  # number of the next episode, once the recorder has named it
        self._recorder: str | None = None  # token of its start
        self._asked: tuple[Source, ...] = ()
        self._augmentor_speaks = True  # has answered, or not yet missed a deadline
        self._model_seen = False  # the augmentor has answered with a model
        self._withheld: exchange.Move | None = None
        self._trouble = ""
        self._failures = 0  # episodes in a row that were aborted before their first move
        self._retry_ns = 0  # by the steady clock: when the next may begin
        self._repeated_ns = self._time_ns = self._steady_ns = 0

    @property
    def idle(self) -> bool:
        """Whether no episode is under way, and the last one is confirmed or given up."""
        return self.arbiter.state is State.IDLE

    def handle(self, event: RunEvent, *, time_ns: int, steady_ns: int) -> list[RunInstruction]:
        """Take one event and return what is to be done now, in this order."""
        self._time_ns, self._steady_ns = time_ns, steady_ns
        match event:
            case exchange.Observation():
                return self._take_observation(event)
            case exchange.Proposal():
                return self._take_proposal(event)
            case exchange.Receipt():
                return self._feed(event)
            case Tick():
                return self._take_tick()
            case exchange.Ready():
                return self._take_ready(event)
            case exchange.Failed():
                return self._abandon(f"the recorder failed: {event.reason}")
            case Wish():
                return self._take_wish(event)

    # What each event means to the run -------------------------------------------------------------------------------

    def _take_observation(self, observation: exchange.Observation) -> list[RunInstruction]:
        if observation.refusal in _WANTS_A_PERSON and observation.episode == self.arbiter.episode:
            self._pause(_WANTS_A_PERSON[observation.refusal])
        return self._feed(observation)

    def _take_proposal(self, proposal: exchange.Proposal) -> list[RunInstruction]:
        if proposal.source is Source.AUGMENTOR:
            self._augmentor_speaks = True
            self.guard.serve(proposal.model_hash)
            if proposal.source not in self._asked:
                return []  # it answers every query, because it cannot know the budget
            self._model_seen |= bool(proposal.action.size or proposal.model_hash)
        # One without a model says nothing yet; a model that withholds its action has answered.
        says_nothing = proposal.action.size == 0 and not proposal.model_hash
        if says_nothing and self.has_no_deadline(PARTY_OF[proposal.source]):
            return []
        return self._feed(proposal)

    def _take_ready(self, ready: exchange.Ready) -> list[RunInstruction]:
        if ready.token == self._recorder and self._next is not None:
            return []
        anew = self._recorder not in (None, ready.token)
        told = self._abandon("the recorder began anew") if anew else []
        self._recorder, self._next = ready.token, ready.episode
        return [*told, *self._go_on()]

    def _take_wish(self, wish: Wish) -> list[RunInstruction]:
        if self._wish is Wish.END:
            return []
        self._wish, self._trouble, self._retry_ns = wish, "", 0
        if wish in (Wish.STOP, Wish.END) and self.arbiter.state not in (State.IDLE, State.FINISHING):
            return self._feed(exchange.Stop(wish.value, self._time_ns))
        if wish is Wish.RUN and self._withheld is not None:
            move, self._withheld = self._withheld, None
            return [self._adapt(move)]
        return self._go_on()

    def _take_tick(self) -> list[RunInstruction]:
        if self._withheld is not None:
            return []  # a pause lasts as long as people want
        if self.idle:
            return self._go_on() if self._next is not None else []
        parties = self.arbiter.waiting_for
        for party in [each for each in Party if each in parties]:
            waited, patient = self._steady_ns - self.since[party], self.has_no_deadline(party)
            if not patient and waited > self.settings.deadlines[party] * 1e9:
                self._augmentor_speaks &= party is not Party.AUGMENTOR
                return [Overdue(party), *self._feed(self._deadline(party))]
            if waited > PATIENCE_NS and (patient or party is not Party.AUGMENTOR):
                self._tell(_WAITING[party])
        latest = max(self._repeated_ns, *(self.since[party] for party in parties))
        if self._steady_ns - latest < self.settings.repeat_period * 1e9:
            return []
        self._repeated_ns = self._steady_ns
        return [Repeat(parties)]

    # Episodes -------------------------------------------------------------------------------------------------------

    def _go_on(self) -> list[RunInstruction]:
        """Begin the next episode if none is under way, or rest and say why not."""
        if not self.idle or self._wish is Wish.END:
            return []
        done = self._next is not None and 0 < self.settings.episodes <= self._next
        ready = self._wish is Wish.RUN and self._next is not None and not done
        if ready and self._next is not None and self._steady_ns >= self._retry_ns:
            self._trouble = ""
            settings, self._mode = self.settings, self.settings.mode
            self.guard.settings = settings.guard
            self.decision = decision = self.guard.decide(settings.mode, settings.p, settings.budget)
            start = (self._next, settings.seed, settings.mode, decision.p, decision.budget, self._time_ns)
            return self._feed(exchange.Start(*start, settings.assist, decision.leash))
        before, after = self.situation, Situation.DONE if done else _RESTING[self._wish]
        after = Situation.RETRYING if ready else after
        self._tell(after, self._trouble)
        episode, step = self.arbiter.episode, self.arbiter.step
        return [] if before is after or episode is None else [exchange.Hold(episode, step)]

    def _feed(self, event: exchange.Event) -> list[RunInstruction]:
        """Let the arbiter decide, and what follows from that for the run."""
        finishing = self.arbiter.state is State.FINISHING
        told = [self._adapt(instruction) for instruction in self.arbiter.handle(event)]
        if self.arbiter.state is not State.MOVING:
            self._withheld = None
        silent = not self._augmentor_speaks and Party.AUGMENTOR in self.arbiter.waiting_for
        if silent and not self.has_no_deadline(Party.AUGMENTOR):
            return [*told, *self._feed(self._deadline(Party.AUGMENTOR))]
        if self.arbiter.state is State.IDLE:
            if finishing and self._next is not None:
                self._next += 1
            return [*told, *self._go_on()]
        return told

    def _adapt(self, instruction: exchange.Instruction) -> RunInstruction:
        """Note what the arbiter instructs, and withhold its moves while people want a pause."""
        if isinstance(instruction, exchange.Move):
            if self._wish is Wish.PAUSE:
                self._withheld = instruction
                self._tell(Situation.PAUSED, self._trouble)
                return exchange.Hold(instruction.episode, instruction.step)
            self._tell(Situation.RUNNING, f"The guard: {self.decision}." if self.decision.warns else "")
        elif isinstance(instruction, exchange.Ask):
            self._asked = instruction.sources
        elif isinstance(instruction, exchange.RecordEpisode):
            episode = instruction.episode
            self.guard.note(episode)
            if episode.steps or episode.outcome is not Outcome.ABORTED:
                self._failures = 0
            elif self._wish is Wish.RUN:
                self._retry_later(episode.reason)
        for party in _ANSWERED_BY.get(type(instruction), ()):
            self.since[party] = self._steady_ns
        return instruction

    def _abandon(self, reason: str) -> list[RunInstruction]:
        """Give up the episode under way without a record of its end, and begin none until the recorder is ready."""
        self._next = self._withheld = None
        self._trouble = f"{reason[0].upper()}{reason[1:]}."
        told: list[RunInstruction] = []
        while not self.idle:
            told += self.arbiter.handle(exchange.Stop(reason, self._time_ns))
        return [*(each for each in told if isinstance(each, exchange.Hold | exchange.Halt)), *self._go_on()]

    # Waiting --------------------------------------------------------------------------------------------------------

    def has_no_deadline(self, party: Party) -> bool:
        """Whether a party is waited for as long as it takes: before the first move, or where nothing else is safe."""
        arbiter = self.arbiter
        if party is Party.RECORDER or arbiter.state is State.RESETTING:
            return True
        if party is Party.PLANT or arbiter.state is not State.ASKING or arbiter.step > 0:
            return False
        needs_model = self._mode is Mode.EVALUATE or 0 <= self.settings.model_from <= (arbiter.episode or 0)
        # In assist mode it is waited for until it was there once: later the logging policy arrives without it.
        given_up = self._mode is Mode.ASSIST and self._model_seen
        return party is Party.LOGGING_POLICY or (needs_model and not given_up)

    def _deadline(self, party: Party) -> exchange.Deadline:
        return exchange.Deadline(self.arbiter.episode or 0, self.arbiter.step, party, self._time_ns)

    def _retry_later(self, reason: str) -> None:
        seconds = min(FIRST_RETRY_S * 2 ** min(self._failures, 10), LONGEST_RETRY_S)
        self._failures += 1
        self._retry_ns = self._steady_ns + seconds * 1_000_000_000
        self._trouble = f"An episode was aborted before its first move: {reason}; the next begins {seconds} s later."

    def _pause(self, trouble: str) -> None:
        self._wish = Wish.PAUSE if self._wish is Wish.RUN else self._wish
        self._trouble = trouble

    def _tell(self, situation: Situation, detail: str = "") -> None:
        self.situation, self.detail = situation, detail
