"""The base of nodes that only watch a run: what they hear goes into a `RunWatch`."""

from __future__ import annotations

from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus

import lift_ros.msg as msg
from lift_ros.collection.records import Step
from lift_ros.graph import qos
from lift_ros.graph.run_watch import Report, RunWatch
from lift_ros.messages.records import EpisodeEnd, decode_episode, decode_step, with_run
from lift_ros.nodes.base import LiftNode
from lift_ros.nodes.senders import RECORDS


class WatchingNode(LiftNode):
    """Listens to ends of episodes and diagnostics, and to steps where it is asked to: nothing waits for it."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.watch = RunWatch()
        self.listen(msg.Episode, qos.EPISODE, with_run("Episode", decode_episode), self._on_episode, roles=RECORDS)
        self.create_subscription(DiagnosticArray, qos.DIAGNOSTICS, self._on_diagnostics, qos.VIEW)

    def listen_to_steps(self) -> None:
        """Listen to single steps, too."""
        self.listen(msg.Step, qos.STEP, with_run("Step", decode_step), self._on_step, roles=RECORDS)

    def listen_to_glimpses(self) -> Any:
        """Listen to as many steps as one can see; returns the subscription."""
        return self.listen(msg.Step, qos.GLIMPSE, with_run("Step", decode_step), self._on_step, qos.GLANCE, RECORDS)

    def step_made(self, step: Step) -> None:
        """Take a step that is no repetition; subclasses that show single steps say how."""

    def episode_ended(self, end: EpisodeEnd) -> None:
        """Take the end of an episode that is no repetition; subclasses that show single episodes say how."""

    def _on_step(self, received: tuple[Step, str]) -> None:
        if self.watch.heed_step(received[0]):
            self.step_made(received[0])

    def _on_episode(self, received: tuple[EpisodeEnd, str]) -> None:
        if self.watch.heed_end(received[0]):
            self.episode_ended(received[0])

    def _on_diagnostics(self, message: Any) -> None:
        for status in message.status:
            if status.hardware_id == self.get_namespace():
                values = {each.key: each.value for each in status.values}
                report = Report(status.level == DiagnosticStatus.OK, status.message, values)
                self.watch.heed_report(status.name.rsplit("/", 1)[-1], report)
