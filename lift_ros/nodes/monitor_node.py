"""Watches a graph and prints what it sees as JSON lines; `lift run` draws its live view from them."""

from __future__ import annotations

import json
import time
from collections import deque
from dataclasses import asdict
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus

import lift_ros.msg as msg
from lift_ros.collection.records import Outcome, Source, Step
from lift_ros.graph import qos
from lift_ros.graph.live_view import RunStatus
from lift_ros.graph.parameters import Parameter
from lift_ros.messages.records import EpisodeEnd, decode_episode, decode_step, with_run
from lift_ros.nodes.base import LiftNode
from lift_ros.nodes.diagnostics import Status
from lift_ros.nodes.senders import RECORDS

DISTANCES_KEPT = 64
RATE_WINDOW_S = 2.0


class Monitor(LiftNode):
    """Listens only: nothing in the loop waits for it."""

    executable = "monitor"
    summary = "prints the state of a run as JSON lines, for live views"
    parameters = (
        Parameter("period", 0.25, "s", "how often a line is printed", low=0.02, high=60.0, fixed=True),
        Parameter("diagnostics_period", 5.0, "s", "how often this node reports on /diagnostics", low=0.05, high=60.0),
        Parameter("graph", "", "text", "token of the graph that is watched; empty for whichever is there", fixed=True),
    )

    def __init__(self) -> None:
        super().__init__()
        self._seen = RunStatus()
        self._step_times: deque[float] = deque()
        self._steps_of_ended = 0
        self._troubles: dict[str, str] = {}
        self.listen(msg.Step, qos.STEP, with_run("Step", decode_step), self._on_step, roles=RECORDS)
        self.listen(msg.Episode, qos.EPISODE, with_run("Episode", decode_episode), self._on_episode, roles=RECORDS)
        self.create_subscription(DiagnosticArray, qos.DIAGNOSTICS, self._on_diagnostics, qos.VIEW)
        self.every(self.value("period"), self._print)
        self.set_status(Status.SERVING)

    def finish(self) -> None:
        """Print the last state, which the period may not have reached."""
        self._print()

    def _on_step(self, received: tuple[Step, str]) -> None:
        step, seen = received[0], self._seen
        if (step.episode, step.index) <= (seen.episode, seen.step) and seen.steps_done:
            return  # a record that the arbiter repeated
        seen.episode, seen.step = step.episode, step.index
        seen.steps_done += 1
        seen.augmented_steps += step.source == Source.AUGMENTOR
        seen.model = step.model_hash or seen.model
        if step.reward == step.reward:
            seen.distances = [*seen.distances, -step.reward][-DISTANCES_KEPT:]
        self._step_times.append(time.monotonic())

    def _on_episode(self, received: tuple[EpisodeEnd, str]) -> None:
        end, seen = received[0], self._seen
        seen.episodes_done = end.episode.index + 1  # those before this node's start count, too
        seen.episodes_seen += 1
        seen.episodes_reached += end.episode.outcome == Outcome.REACHED
        self._steps_of_ended += end.steps
        seen.mean_steps = self._steps_of_ended / seen.episodes_seen

    def _on_diagnostics(self, message: Any) -> None:
        for status in message.status:
            if status.hardware_id != self.get_namespace():
                continue
            name = status.name.rsplit("/", 1)[-1]
            if status.level == DiagnosticStatus.OK:
                self._troubles.pop(name, None)
            else:
                self._troubles[name] = status.message
            if name == "trainer":
                self._seen.training = status.message
            if name == "arbiter":
                self._seen.guard = next((each.value for each in status.values if each.key == "guard"), "")

    def _print(self) -> None:
        now = time.monotonic()
        while self._step_times and now - self._step_times[0] > RATE_WINDOW_S:
            self._step_times.popleft()
        self._seen.steps_per_second = len(self._step_times) / RATE_WINDOW_S
        self._seen.trouble = "; ".join(f"{name}: {text}" for name, text in self._troubles.items())
        print(json.dumps(asdict(self._seen)), flush=True)


main = Monitor.main
