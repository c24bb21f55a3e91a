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
from lift_ros.errors import UserError
from lift_ros.graph import qos
from lift_ros.graph.meeting import SIGNS, explain_waiting
from lift_ros.graph.parameters import ASSIST_OF_ARBITER
from lift_ros.messages import records as wire
from lift_ros.nodes.base import LiftNode
from lift_ros.nodes.diagnostics import Status
from lift_ros.nodes.outbox import Outbox
from lift_ros.nodes.senders import RECEIPTS, Roles
from lift_ros.scenario import GUARD_KEYS, AssistSettings, GuardSettings, load_scenario

# Deadlines are checked so many times in the shortest of them, but not more often than clocks are worth.
CHECKS = 10
SHORTEST_TICK, LONGEST_TICK = 0.002, 0.02
# Whom the arbiter listens to: one plant, two policies, one recorder.
PLANT = Roles()
POLICIES = Roles(most=2, of=lambda proposal: proposal.source)
MISFITS = 3  # answers to a reset of another size, after which the plant is taken to be another one
DEADLINES = {party: f"{party.name.lower()}_deadline" for party in Party if party is not Party.RECORDER}
# How long somebody may be waited for before people are told why and what to do; nodes need a while to start.
EXPLAIN_AFTER = 3.0
WAITED_FOR = {
    Situation.WAITING_FOR_PLANT: Party.PLANT,
    Situation.WAITING_FOR_LOGGING_POLICY: Party.LOGGING_POLICY,
    Situation.WAITING_FOR_MODEL: Party.AUGMENTOR,
    Situation.WAITING_FOR_RECORDER: Party.RECORDER,
}
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
        self._shown_detail = ""
        self._shown_since = 0.0
        self._commanded_ns = 0
        self._misfits = 0  # answers to a reset in a row that were of another size
        self._recalled = False  # what the run holds
        self._guard_said = ""
        self._outbox = Outbox(
            self.make_token(),
            shows_pictures=scenario.routine_sight.image or scenario.model_sight.image,
            plant=self.create_publisher(msg.Command, qos.COMMAND, qos.LOOP),
            policies=self.create_publisher(msg.Query, qos.QUERY, qos.LOOP),
            steps=self.create_publisher(msg.Step, qos.STEP, qos.LOOP),
            episodes=self.create_publisher(msg.Episode, qos.EPISODE, qos.LOOP),
        )
        self._hear(msg.Observation, qos.OBSERVATION, wire.decode_observation, self._on_observation, PLANT)
        self._hear(msg.Proposal, qos.PROPOSAL, wire.decode_proposal, self._on_proposal, POLICIES)
        self._hear(msg.Receipt, qos.RECEIPT, wire.decode_receipt, self._on_receipt, RECEIPTS)
        self.listen(msg.Receipt, qos.READY, _on_arrival(wire.decode_receipt), self._on_ready, qos.LATCHED, RECEIPTS)
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

    def _hear(
        self,
        kind: type,
        topic: str,
        decode: Callable[[bytes, int], Any],
        handle: Callable[[Any], None],
        roles: Roles,
    ) -> None:
        """Listen to answers, but to those alone that are for this start of this arbiter."""

        def receive(content: Any) -> None:
            if roles.run(content) == self._outbox.run:
                handle(content)
            else:
                self.drop(f"{topic} of another run")

        self.listen(kind, topic, _on_arrival(decode), receive, roles=roles)

    def _on_observation(self, observation: exchange.Observation) -> None:
        size, expected = observation.values.size, self._limits.observation_size
        if observation.refusal is exchange.Refusal.NONE and size != expected:
            self.drop("malformed observation", f"{size} values, expected {expected}")
            self._note_misfit(observation)
            return
        self._misfits = 0
        if observation.step > 0 and Party.PLANT in self._machine.waiting_for:  # a reset takes its own time
            self._note_answer(Party.PLANT)
        self._feed(observation)

    def _note_misfit(self, observation: exchange.Observation) -> None:
        """Give up on a plant that answers resets with another size again and again; a stranger is no reason."""
        asked = self._machine.state is exchange.State.RESETTING and observation.episode == self._machine.episode
        self._misfits += asked and observation.step == 0
        if self._misfits >= MISFITS and not self.ended.done():
            problem = UserError(
                f"the plant observes {observation.values.size} values, but scenario {self.value('scenario')} says "
                f"{self._limits.observation_size}: correct the scenario, or start the plant that it describes"
            )
            self.ended.set_exception(problem)

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
        if not isinstance(ready, exchange.Ready):
            return
        if not self._is_alone():
            return
        self._recall(ready.episode)
        self._feed(ready)

    def _is_alone(self) -> bool:
        """Whether nobody else commands the plant; else no first episode begins, and people are told who it is."""
        others = [] if self._machine.episode is not None else [each.node for each in self.senders.present(qos.COMMAND)]
        if len(others) > 1:
            others.remove(self.get_fully_qualified_name())
            where = f"{self.place.topic(qos.COMMAND)} ({self.place})"
            remedy = "end it, or give each graph its own namespace"
            self.set_status(Status.NOT_ALONE, f"{' and '.join(others)} publishes {where}: {remedy}.")
        elif self.diagnostics.status is Status.NOT_ALONE:
            self._show()
        return len(others) < 2

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
        if self._machine.episode is None:
            self._is_alone()
        self._feed(run_control.Tick())

    def _note_answer(self, party: Party) -> None:
        self.diagnostics.latency(party.value, time.monotonic_ns() - self._control.since[party])

    # --- what follows from it --------------------------------------------------------------------------------------

    def _feed(self, event: run_control.RunEvent) -> None:
        for instruction in self._control.handle(event, time_ns=time.time_ns(), steady_ns=time.monotonic_ns()):
            self._perform(instruction)
        if self._control.situation is not self._shown or self._control.detail != self._shown_detail:
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
        if decision.warns:  # a line of its own: a logger keeps each line to one severity
            self.get_logger().warning(f"guard: {decision}")
        else:
            self.get_logger().info(f"guard: {decision}")

    def _note_end(self, episode: Episode) -> None:
        self.diagnostics.count("episodes")
        self.diagnostics.count(f"episodes: {episode.outcome.name.lower().replace('_', ' ')}")
        if episode.outcome is Outcome.ABORTED:
            steps = len(episode.steps)
            self.get_logger().warning(f"episode {episode.index} aborted after {steps} steps: {episode.reason}")

    def _show(self) -> None:
        self._shown, self._shown_detail = self._control.situation, self._control.detail
        self._shown_since = time.monotonic()
        self.set_status(Status[self._shown.name], self._shown_detail)
        if self._shown is Situation.DONE and self.value("exit_when_done") and not self.ended.done():
            self.ended.set_result(None)

    # --- reports and end -------------------------------------------------------------------------------------------

    def report(self) -> None:
        """Add what the machine has ignored, and where it waits for long, why and what to do."""
        party = None if self.diagnostics.status is Status.NOT_ALONE else WAITED_FOR.get(self._shown)
        if party is not None and not self._shown_detail and time.monotonic() - self._shown_since > EXPLAIN_AFTER:
            self.diagnostics.detail = explain_waiting(party, self.place, self._nodes_like(party))
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

    def _nodes_like(self, party: Party) -> dict[str, list[str]]:
        """Return which nodes publish what a party would publish, by topic, in whatever namespace."""
        kind = f"lift_ros/msg/{SIGNS[party][1]}"
        topics = [topic for topic, types in self.get_topic_names_and_types() if kind in types]
        return {topic: [_full_name(info) for info in self.get_publishers_info_by_topic(topic)] for topic in topics}

    def finish(self) -> None:
        """Stop the plant and have the episode under way recorded as far as it came."""
        self._feed(Wish.END)

    def finished(self) -> bool:
        """Whether the recorder has confirmed all."""
        return self._control.idle


def _full_name(info: Any) -> str:
    return f"{info.node_namespace.rstrip('/')}/{info.node_name}"


def _on_arrival(decode: Callable[[bytes, int], Any]) -> Callable[[bytes], Any]:
    """Return a decoder that notes when its message came, by this machine's clock."""
    return lambda data: decode(data, time.time_ns())


main = ArbiterNode.main
