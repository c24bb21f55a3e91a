"""What somebody who only listens knows of a run: fed with steps, ends of episodes and reports; needs no ROS."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from lift_ros.collection.records import Outcome, Source, Step
from lift_ros.graph.live_view import RunStatus
from lift_ros.messages.records import EpisodeEnd

DISTANCES_KEPT = 64
RATE_WINDOW_S = 2.0


@dataclass(frozen=True)
class Report:
    """What a node last said of itself on /diagnostics."""

    is_well: bool
    sentence: str
    values: Mapping[str, str] = field(default_factory=dict)


class RunWatch:
    """Sums up what is heard of a run as a `RunStatus`; records that are repeated count once."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.reports: dict[str, Report] = {}  # by the name of the node
        self._clock = clock
        self._seen = RunStatus()
        self._step_times: deque[float] = deque()
        self._steps_of_ended = 0

    def heed_step(self, step: Step) -> bool:
        """Take a step in; False where it is repeated."""
        seen = self._seen
        if (step.episode, step.index) <= (seen.episode, seen.step) and seen.steps_done:
            return False
        seen.episode, seen.step = step.episode, step.index
        seen.steps_done += 1
        seen.augmented_steps += step.source == Source.AUGMENTOR
        seen.model = step.model_hash or seen.model
        if step.reward == step.reward:
            seen.distances = [*seen.distances, -step.reward][-DISTANCES_KEPT:]
        self._step_times.append(self._clock())
        return True

    def heed_end(self, end: EpisodeEnd) -> bool:
        """Take the end of an episode in; False where it is repeated."""
        seen = self._seen
        if end.episode.index < seen.episodes_done:
            return False
        seen.episodes_done = end.episode.index + 1  # those before anybody listened count, too
        seen.episodes_seen += 1
        seen.episodes_reached += end.episode.outcome == Outcome.REACHED
        self._steps_of_ended += end.steps
        seen.mean_steps = self._steps_of_ended / seen.episodes_seen
        return True

    def heed_report(self, node: str, report: Report) -> None:
        """Take in what a node says of itself."""
        self.reports[node] = report
        if node == "trainer":
            self._seen.training = report.sentence
        if node == "arbiter":
            self._seen.guard = report.values.get("guard", "")

    def status(self) -> RunStatus:
        """Return how the run goes at this moment."""
        now = self._clock()
        while self._step_times and now - self._step_times[0] > RATE_WINDOW_S:
            self._step_times.popleft()
        self._seen.steps_per_second = len(self._step_times) / RATE_WINDOW_S
        troubles = {node: report.sentence for node, report in self.reports.items() if not report.is_well}
        self._seen.trouble = " · ".join(f"{node}: {sentence}" for node, sentence in troubles.items())
        return self._seen
