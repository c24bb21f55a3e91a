"""Executable `arbiter`: moves messages and clocks around the state machine in `lift_ros.collection.arbiter`."""

from __future__ import annotations

import sys
import time
from enum import Enum
from typing import Any

from std_srvs.srv import Trigger

import lift_ros.msg as msg
from lift_ros.collection.arbiter import Arbiter
from lift_ros.collection.exchange import (
    Ask,
    Deadline,
    Event,
    Failed,
    Halt,
    Hold,
    Instruction,
    Move,
    Observation,
    Party,
    Proposal,
    Ready,
    Receipt,
    RecordEpisode,
    RecordStep,
    Refusal,
    Reset,
    Start,
    State,
    Stop,
)
from lift_ros.collection.records import Episode, Mode, Outcome, Source
from lift_ros.graph import qos
from lift_ros.messages import records as wire
from lift_ros.nodes.base import LiftNode, run
from lift_ros.nodes.diagnostics import Status
from lift_ros.nodes.outbox import Outbox
from lift_ros.positioning.problem import Limits
from lift_ros.scenario import load_scenario

# Deadlines are checked so many times in the shortest of them, but not more often than clocks are worth.
CHECKS = 10
SHORTEST_TICK, LONGEST_TICK = 0.002, 0.02
DEADLINES = ("plant_deadline", "logging_policy_deadline", "augmentor_deadline", "repeat_period")
# How long an answer may take before diagnostics say who is waited for.
PATIENCE_NS = 500_000_000


class Operator(Enum):
    """What people have told the arbiter to do."""

    WAIT = "wait for start"
    RUN = "run episodes"
    PAUSE = "make no move"
    END = "end the process"


_WAITING_STATUS = {
    Party.PLANT: Status.WAITING_FOR_PLANT,
    Party.LOGGING_POLICY: Status.WAITING_FOR_LOGGING_POLICY,
    Party.AUGMENTOR: Status.WAITING_FOR_MODEL,
    Party.RECORDER: Status.WAITING_FOR_RECORDER,
}


class ArbiterNode(LiftNode):
    """Runs episodes: asks, commands and has recorded, each only after what must come before it is confirmed."""

    executable = "arbiter"
    summary = "runs episodes: decides in each step whether the logging policy or the augmentor acts"

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._limits = _limits_of(self.value("scenario"))
        self._machine = Arbiter(self._limits, require_receipts=True)
        self._operator = Operator.RUN if self.value("autostart") else Operator.WAIT
        self._next: int | None = None  # number of the next episode, once the recorder has named it
        self._recorder = ""  # token of the recorder's start
        self._asked: tuple[Source, ...] = ()
        self._augmentor_speaks = True  # has answered, or not yet missed a deadline
        self._withheld: Move | None = None
        self._trouble = ""
        self._commanded_ns = 0
        self._outbox = Outbox(
            plant=self.create_publisher(msg.Command, qos.COMMAND, qos.LOOP),
            policies=self.create_publisher(msg.Query, qos.QUERY, qos.LOOP),
            steps=self.create_publisher(msg.Step, qos.STEP, qos.LOOP),
            episodes=self.create_publisher(msg.Episode, qos.EPISODE, qos.LOOP),
        )
        self._connect()
        self._show_idle()

    def _connect(self) -> None:
        now = time.time_ns
        self.listen(
            msg.Observation,
            qos.OBSERVATION,
            lambda data: wire.decode_observation(data, now()),
            self._on_observation,
        )
        self.listen(msg.Proposal, qos.PROPOSAL, lambda data: wire.decode_proposal(data, now()), self._on_proposal)
        self.listen(msg.Receipt, qos.RECEIPT, lambda data: wire.decode_receipt(data, now())[0], self._on_receipt)
        self.listen(
            msg.Receipt,
            qos.READY,
            lambda data: wire.decode_receipt(data, now()),
            self._on_ready,
            qos.LATCHED,
        )
        self.create_service(Trigger, qos.START, self._serve_start)
        self.create_service(Trigger, qos.STOP, self._serve_stop)
        self.create_service(Trigger, qos.PAUSE, self._serve_pause)
        self.create_service(Trigger, qos.RESUME, self._serve_resume)
        self._ticks = self.every(self._tick_seconds(), self._tick)

    def _tick_seconds(self) -> float:
        shortest: float = min(self.value(name) for name in DEADLINES)
        return min(max(shortest / CHECKS, SHORTEST_TICK), LONGEST_TICK)

    def parameter_changed(self, name: str) -> None:
        """Check as often as new deadlines need."""
        if name in DEADLINES:
            self.destroy_timer(self._ticks)
            self._ticks = self.every(self._tick_seconds(), self._tick)

    # --- what others say -------------------------------------------------------------------------------------------

    def _on_observation(self, observation: Observation) -> None:
        if observation.refusal is Refusal.NONE and observation.values.size != self._limits.observation_size:
            self.drop(
                "malformed observation",
                f"{observation.values.size} values, expected {self._limits.observation_size}",
            )
            return
        machine = self._machine
        if observation.refusal is Refusal.EMERGENCY_STOP and observation.episode == machine.episode:
            self._operator = Operator.PAUSE if self._operator is Operator.RUN else self._operator
            self._trouble = "The emergency stop was pressed."
        if machine.state is State.MOVING:
            self.diagnostics.latency("plant", time.monotonic_ns() - self._outbox.commanded_ns)
        self._feed(observation)

    def _on_proposal(self, proposal: Proposal) -> None:
        if proposal.source is Source.AUGMENTOR:
            self._augmentor_speaks = True
            if proposal.source not in self._asked:
                return  # it answers every query, because it cannot know the budget
        if proposal.action.size == 0 and self._asks_again(proposal.source):
            return
        if proposal.source in self._asked and self._machine.state is State.ASKING:
            name = "logging policy" if proposal.source is Source.LOGGING_POLICY else "augmentor"
            self.diagnostics.latency(name, time.monotonic_ns() - self._outbox.asked_ns)
        self._feed(proposal)

    def _on_receipt(self, receipt: Ready | Receipt | Failed) -> None:
        match receipt:
            case Receipt():
                recorded_ns = self._outbox.confirm(receipt)
                if recorded_ns is not None:
                    self.diagnostics.latency("recorder", time.monotonic_ns() - recorded_ns)
                self._feed(receipt)
            case Failed():
                self._abandon(f"the recorder failed: {receipt.reason}")
            case Ready():
                pass  # travels on a topic of its own

    def _on_ready(self, announced: tuple[Ready | Receipt | Failed, str]) -> None:
        ready, token = announced
        if not isinstance(ready, Ready) or (token == self._recorder and self._next is not None):
            return
        if token != self._recorder:
            self._abandon("the recorder began anew")
        self._recorder, self._next = token, ready.episode
        self._begin_if_due()

    # --- the machine -----------------------------------------------------------------------------------------------

    def _feed(self, event: Event) -> None:
        finishing = self._machine.state is State.FINISHING
        actions = self._machine.handle(event)
        if len(actions) == 2 and isinstance(actions[1], Ask):
            actions.reverse()  # the policies think while the step is put into its record
        for action in actions:
            self._perform(action)
        if finishing and self._machine.state is State.IDLE and self._next is not None:
            self._next += 1
        if self._augmentor_is_out():
            self._feed(self._deadline(Party.AUGMENTOR))
        elif self._machine.state is State.IDLE:
            self._begin_if_due()

    def _perform(self, action: Instruction) -> None:
        match action:
            case Move():
                if self._operator is Operator.PAUSE:
                    self._withhold(action)
                else:
                    self._command(action)
            case Ask():
                self._asked = action.sources
                self._outbox.ask(action.query)
            case RecordStep():
                self._outbox.record_step(action.step)
                self.diagnostics.count("steps")
                if action.step.source is Source.AUGMENTOR:
                    self.diagnostics.count("augmentations")
            case RecordEpisode():
                self._end_episode(action.episode)
            case Reset() | Hold():
                self._outbox.command(action)
            case Halt():
                self._next = None  # the recorder says how it goes on

    def _command(self, move: Move) -> None:
        self._outbox.command(move)
        now = self._outbox.commanded_ns
        if move.step > 0:
            self.diagnostics.latency("step", now - self._commanded_ns)
        self._commanded_ns = now
        if self.diagnostics.status is not Status.RUNNING:
            self.set_status(Status.RUNNING)

    def _withhold(self, move: Move) -> None:
        self._withheld = move
        self._outbox.command(Hold(move.episode, move.step))
        self.set_status(Status.PAUSED, self._trouble)

    def _end_episode(self, episode: Episode) -> None:
        self._outbox.record_episode(episode)
        self.diagnostics.count("episodes")
        self.diagnostics.count(f"episodes: {episode.outcome.name.lower().replace('_', ' ')}")
        if episode.outcome is not Outcome.ABORTED:
            return
        self.get_logger().warning(f"episode {episode.index} aborted after {len(episode.steps)} steps: {episode.reason}")
        if not episode.steps and self._operator is Operator.RUN:
            # The next one would most likely end the same way, and empty episodes would pile up.
            self._operator = Operator.PAUSE
            self._trouble = f"An episode was aborted before its first move: {episode.reason}."

    def _begin_if_due(self) -> None:
        """Begin the next episode, or say why not; called whenever none is under way."""
        if self._machine.state is not State.IDLE or self._operator is Operator.END:
            return
        wanted = self.value("episodes")
        done = self._next is not None and wanted > 0 and self._next >= wanted
        if self._operator is not Operator.RUN or self._next is None or done:
            self._show_idle(done)
            return
        self._trouble = ""
        mode = Mode[self.value("mode").upper()]
        self._feed(Start(self._next, self.value("seed"), mode, self.value("p"), self.value("budget"), time.time_ns()))

    def _show_idle(self, done: bool = False) -> None:
        if done:
            status = Status.DONE
        elif self._operator is not Operator.RUN:
            status = Status.PAUSED if self._operator is Operator.PAUSE else Status.WAITING_FOR_START
        else:
            status = Status.WAITING_FOR_RECORDER
        if self.diagnostics.status is not status:
            if self._machine.episode is not None:
                self._outbox.command(Hold(self._machine.episode, self._machine.step))
            self.set_status(status, self._trouble)
        if done and self.value("exit_when_done") and not self.ended.done():
            self.ended.set_result(None)

    def _abandon(self, reason: str) -> None:
        """Give up the episode under way without a record: the recorder has closed it on its side already."""
        self._next = None
        self._withheld = None
        self._trouble = f"{reason[0].upper()}{reason[1:]}."
        if self._machine.state is not State.IDLE:
            self.get_logger().warning(f"gives up episode {self._machine.episode}: {reason}")
            self.diagnostics.count("episodes given up")
        while self._machine.state is not State.IDLE:
            for action in self._machine.handle(Stop(reason, time.time_ns())):
                if isinstance(action, Hold):
                    self._outbox.command(action)
        self._outbox.forget_records()
        self._show_idle()

    # --- time ------------------------------------------------------------------------------------------------------

    def _tick(self) -> None:
        machine = self._machine
        if machine.state is State.IDLE:
            if self._next is not None:
                self._begin_if_due()
            return
        now = time.monotonic_ns()
        for party in machine.waiting_for:
            waited = now - self._outbox.since(party)
            if waited > self._allowed_ns(party):
                self._run_out(party)
                return
            if waited > PATIENCE_NS and not (party is Party.PLANT and self._withheld is not None):
                self._show_waiting(party)
        if self._withheld is None and self._outbox.repeat_due(machine.waiting_for, now, self.value("repeat_period")):
            self.diagnostics.count("repeats")

    def _allowed_ns(self, party: Party) -> float:
        """Return how long a party may take; for ever where the arbiter asks again or nothing else is safe."""
        match party:
            case Party.PLANT:
                patient = self._machine.state is State.RESETTING or self._withheld is not None
                seconds = self.value("plant_deadline")
            case Party.LOGGING_POLICY:
                patient = self._asks_again(Source.LOGGING_POLICY)
                seconds = self.value("logging_policy_deadline")
            case Party.AUGMENTOR:
                patient = self._asks_again(Source.AUGMENTOR)
                seconds = self.value("augmentor_deadline")
            case Party.RECORDER:
                return float("inf")
        return float("inf") if patient else seconds * 1e9

    def _asks_again(self, source: Source) -> bool:
        """Whether a missing answer means to ask again: before the first move nothing is lost by waiting."""
        machine = self._machine
        if machine.state is not State.ASKING or machine.step > 0:
            return False
        if source is Source.LOGGING_POLICY:
            return True
        first: int = self.value("model_from")
        alone: bool = self.value("mode") == "evaluate"
        return alone or 0 <= first <= (machine.episode or 0)

    def _augmentor_is_out(self) -> bool:
        """Whether the augmentor need not be waited for, because it missed a deadline and said nothing since."""
        return (
            not self._augmentor_speaks
            and self._machine.state is State.ASKING
            and Party.AUGMENTOR in self._machine.waiting_for
            and not self._asks_again(Source.AUGMENTOR)
        )

    def _run_out(self, party: Party) -> None:
        self.diagnostics.count(f"deadlines missed: {party.value}")
        if party is Party.AUGMENTOR:
            self._augmentor_speaks = False
            self.warn_sometimes("augmentor", "the augmentor missed its deadline; it is asked on, but not waited for")
        self._feed(self._deadline(party))

    def _deadline(self, party: Party) -> Deadline:
        return Deadline(self._machine.episode or 0, self._machine.step, party, time.time_ns())

    def _show_waiting(self, party: Party) -> None:
        if party is Party.AUGMENTOR and not self._asks_again(Source.AUGMENTOR):
            return
        self.set_status(_WAITING_STATUS[party])

    # --- services --------------------------------------------------------------------------------------------------

    def _serve_start(self, _request: Any, response: Any) -> Any:
        return self._obey(Operator.RUN, response, "started")

    def _serve_resume(self, _request: Any, response: Any) -> Any:
        return self._obey(Operator.RUN, response, "resumed")

    def _serve_pause(self, _request: Any, response: Any) -> Any:
        return self._obey(Operator.PAUSE, response, "paused")

    def _serve_stop(self, _request: Any, response: Any) -> Any:
        return self._obey(Operator.WAIT, response, "stopped; start begins the next episode")

    def _obey(self, wish: Operator, response: Any, done: str) -> Any:
        self._operator = wish
        self._trouble = ""
        if wish is Operator.WAIT:
            self._withheld = None
            if self._machine.state not in (State.IDLE, State.FINISHING):
                self._feed(Stop("stopped by the operator", time.time_ns()))
        if wish is Operator.RUN and self._withheld is not None:
            move, self._withheld = self._withheld, None
            self._command(move)
        if self._machine.state is State.IDLE:
            self._begin_if_due()
        response.success = True
        response.message = done
        return response

    # --- reports and end -------------------------------------------------------------------------------------------

    def report(self) -> None:
        """Add what the machine has ignored."""
        for drop, number in self._machine.drops.items():
            self.diagnostics.drops[drop.name.lower().replace("_", " ")] = number
        self.diagnostics.facts.update(
            mode=self.value("mode"),
            p=self.value("p"),
            episode="" if self._machine.episode is None else self._machine.episode,
            step=self._machine.step,
        )
        super().report()

    def finish(self) -> None:
        """Stop the plant and have the episode under way recorded as far as it came."""
        self._operator = Operator.END
        if self._machine.state not in (State.IDLE, State.FINISHING):
            self._feed(Stop("the arbiter was ended", time.time_ns()))

    def finished(self) -> bool:
        """Whether the recorder has confirmed all."""
        return self._machine.state is State.IDLE


def _limits_of(scenario: str) -> Limits:
    problem = load_scenario(scenario).make_problem()
    try:
        return Limits.of(problem)
    finally:
        problem.close()


def main() -> int:
    """Run the node."""
    return run(ArbiterNode)


if __name__ == "__main__":
    sys.exit(main())
