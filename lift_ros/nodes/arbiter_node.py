"""Executable `arbiter`: moves messages and clocks around the decisions of `lift_ros.collection.run_control`."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

from std_srvs.srv import Trigger

import lift_ros.msg as msg
from lift_ros.bags.reader import RunReader
from lift_ros.collection import exchange, run_control
from lift_ros.collection.episode_under_way import PARTY_OF
from lift_ros.collection.exchange import Party
from lift_ros.collection.records import Episode, Mode, Outcome, Source
from lift_ros.collection.run_control import Situation, Wish
from lift_ros.graph import qos
from lift_ros.graph.parameters import ASSIST_OF_ARBITER
from lift_ros.messages import records as wire
from lift_ros.nodes.base import LiftNode
from lift_ros.nodes.diagnostics import Status
from lift_ros.nodes.outbox import Outbox
from lift_ros.scenario import GUARD_KEYS, AssistSettings, GuardSettings, load_scenario

# Deadlines are checked so many times in the shortest of them, but not more often than clocks are worth.
CHECKS = 10
SHORTEST_TICK, LONGEST_TICK = 0.002, 0.02
DEADLINES = {party: f"{party.name.lower()}_deadline" for party in Party if party is not Party.RECORDER}
# What people can call, what it means and what they are answered.
SERVICES = {
    qos.START: (Wish.RUN, "started"),
    qos.RESUME: (Wish.RUN, "resumed"),
    qos.PAUSE: (Wish.PAUSE, "paused"),
    qos.STOP: (Wish.STOP, "stopped; start begins the next episode"),
}


class ArbiterNode(LiftNode):
    """Runs episodes: asks, commands and has recorded, each only after what must come before it is confirmed."""

    executable = "arbiter"
    summary = "runs episodes: decides in each step whether the logging policy or the augmentor acts"

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        scenario = load_scenario(self.value("scenario"))
        self._limits = scenario.limits
        self._is_hardware = scenario.plant.kind == "hardware"
        wish = Wish.RUN if self.value("autostart") else Wish.STOP
        self._control = run_control.RunControl(self._limits, self._settings(), wish)
        self._machine = self._control.arbiter
        self._shown: Situation
        self._commanded_ns = 0
        self._recalled = False  # what the run holds
        self._guard_said = ""
        self._outbox = Outbox(
            plant=self.create_publisher(msg.Command, qos.COMMAND, qos.LOOP),
            policies=self.create_publisher(msg.Query, qos.QUERY, qos.LOOP),
            steps=self.create_publisher(msg.Step, qos.STEP, qos.LOOP),
            episodes=self.create_publisher(msg.Episode, qos.EPISODE, qos.LOOP),
        )
        self.listen(msg.Observation, qos.OBSERVATION, _on_arrival(wire.decode_observation), self._on_observation)
        self.listen(msg.Proposal, qos.PROPOSAL, _on_arrival(wire.decode_proposal), self._on_proposal)
        self.listen(msg.Receipt, qos.RECEIPT, _on_arrival(wire.decode_receipt), self._on_receipt)
        self.listen(msg.Receipt, qos.READY, _on_arrival(wire.decode_receipt), self._on_ready, qos.LATCHED)
        for service, (wish, answer) in SERVICES.items():
            self.create_service(Trigger, service, partial(self._obey, wish, answer))
        self._ticks = self.every(self._tick_seconds(), self._tick)
        self._show()

    def _settings(self) -> run_control.RunSettings:
        return run_control.RunSettings(
            {party: self.value(name) for party, name in DEADLINES.items()},
            mode=Mode[self.value("mode").upper()],
            guard=GuardSettings(**{name: self.value(f"guard_{name}") for name in GUARD_KEYS}).on(self._is_hardware),
            assist=AssistSettings(**{name: self.value(f"assist_{name}") for name in ASSIST_OF_ARBITER}),
            **{name: self.value(name) for name in ("repeat_period", "seed", "episodes", "p", "budget", "model_from")},
        )

    def _tick_seconds(self) -> float:
        settings = self._settings()
        shortest = min(settings.repeat_period, *settings.deadlines.values())
        return min(max(shortest / CHECKS, SHORTEST_TICK), LONGEST_TICK)

    def parameter_changed(self, name: str) -> None:
        """Decide by the new value, and check as often as new deadlines need."""
        self._control.settings = self._settings()
        self._show()  # a run that is done may be wanted to end now
        self.destroy_timer(self._ticks)
        self._ticks = self.every(self._tick_seconds(), self._tick)

    # --- what others say -------------------------------------------------------------------------------------------

    def _on_observation(self, observation: exchange.Observation) -> None:
        size, expected = observation.values.size, self._limits.observation_size
        if observation.refusal is exchange.Refusal.NONE and size != expected:
            self.drop("malformed observation", f"{size} values, expected {expected}")
            return
        if observation.step > 0 and Party.PLANT in self._machine.waiting_for:  # a reset takes its own time
            self._note_answer(Party.PLANT)
        self._feed(observation)

    def _on_proposal(self, proposal: exchange.Proposal) -> None:
        party = PARTY_OF[proposal.source]
        if party in self._machine.waiting_for:
            self._note_answer(party)
        self._feed(proposal)

    def _on_receipt(self, receipt: exchange.Receipt | exchange.Ready | exchange.Failed) -> None:
        if isinstance(receipt, exchange.Receipt) and self._outbox.confirm(receipt):
            self._note_answer(Party.RECORDER)
        if not isinstance(receipt, exchange.Ready):  # that travels on a topic of its own
            self._feed(receipt)

    def _on_ready(self, ready: exchange.Receipt | exchange.Ready | exchange.Failed) -> None:
        if isinstance(ready, exchange.Ready):
            self._recall(ready.episode)
            self._feed(ready)

    def _recall(self, episode: int) -> None:
        """Tell the guard, once, how the episodes went that the run held before this node began."""
        if self._recalled:
            return
        self._recalled = True
        guard = self._control.guard
        if guard.settings.enabled and self.value("run") and episode > 0:
            guard.recall(each for each in RunReader(self.value("run")) if each.index < episode)
        guard.serve(self.value("model"))

    def _obey(self, wish: Wish, answer: str, _request: Any, response: Any) -> Any:
        self._feed(wish)
        response.success, response.message = True, answer
        return response

    def _tick(self) -> None:
        self._feed(run_control.Tick())

    def _note_answer(self, party: Party) -> None:
        self.diagnostics.latency(party.value, time.monotonic_ns() - self._control.since[party])

    # --- what follows from it --------------------------------------------------------------------------------------

    def _feed(self, event: run_control.RunEvent) -> None:
        for instruction in self._control.handle(event, time_ns=time.time_ns(), steady_ns=time.monotonic_ns()):
            self._perform(instruction)
        if self._control.situation is not self._shown or self._control.detail != self.diagnostics.detail:
            self._show()

    def _perform(self, instruction: run_control.RunInstruction) -> None:
        match instruction:
            case exchange.Move():
                self._outbox.command(instruction)
                before, self._commanded_ns = self._commanded_ns, time.monotonic_ns()
                if instruction.step > 0:
                    self.diagnostics.latency("step", self._commanded_ns - before)
            case exchange.Ask():
                self._outbox.ask(instruction.query)
            case exchange.RecordStep(step):
                self._outbox.record(step)
                self.diagnostics.count("steps")
                if step.source is Source.AUGMENTOR:
                    self.diagnostics.count("augmentations")
            case exchange.RecordEpisode(episode):
                self._outbox.record(episode)
                self._note_end(episode)
            case exchange.Reset() | exchange.Hold():
                self._note_decision()
                self._outbox.command(instruction)
            case run_control.Repeat(parties):
                self._outbox.repeat(parties)
                self.diagnostics.count("repeats")
            case run_control.Overdue(party):
                self.diagnostics.count(f"deadlines missed: {party.value}")
                self.warn_sometimes(party.value, f"the {party.value} missed its deadline")
            case exchange.Halt():
                self._outbox.records.clear()  # repeat none of them any more
                self.diagnostics.count("episodes given up")
                self.get_logger().warning(f"gives up episode {instruction.episode}: {instruction.reason}")

    def _note_decision(self) -> None:
        """Say once what the guard has changed."""
        decision = self._control.decision
        if decision.is_plain or decision.why == self._guard_said:
            return
        self._guard_said = decision.why
        tell = self.get_logger().warning if decision.warns else self.get_logger().info
        tell(f"guard: {decision}")

    def _note_end(self, episode: Episode) -> None:
        self.diagnostics.count("episodes")
        self.diagnostics.count(f"episodes: {episode.outcome.name.lower().replace('_', ' ')}")
        if episode.outcome is Outcome.ABORTED:
            steps = len(episode.steps)
            self.get_logger().warning(f"episode {episode.index} aborted after {steps} steps: {episode.reason}")

    def _show(self) -> None:
        self._shown = self._control.situation
        self.set_status(Status[self._shown.name], self._control.detail)
        if self._shown is Situation.DONE and self.value("exit_when_done") and not self.ended.done():
            self.ended.set_result(None)

    # --- reports and end -------------------------------------------------------------------------------------------

    def report(self) -> None:
        """Add what the machine has ignored."""
        for drop, number in self._machine.drops.items():
            self.diagnostics.drops[drop.name.lower().replace("_", " ")] = number
        self.diagnostics.facts.update(
            mode=self.value("mode"),
            p=self._control.decision.p,
            budget=self._control.decision.budget,
            guard=str(self._control.decision) if self._control.decision.why else "",
            episode="" if self._machine.episode is None else self._machine.episode,
            step=self._machine.step,
        )
        super().report()

    def finish(self) -> None:
        """Stop the plant and have the episode under way recorded as far as it came."""
        self._feed(Wish.END)

    def finished(self) -> bool:
        """Whether the recorder has confirmed all."""
        return self._control.idle


def _on_arrival(decode: Callable[[bytes, int], Any]) -> Callable[[bytes], Any]:
    """Return a decoder that notes when its message came, by this machine's clock."""
    return lambda data: decode(data, time.time_ns())


main = ArbiterNode.main
