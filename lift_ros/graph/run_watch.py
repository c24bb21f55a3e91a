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
        self._paces: deque[tuple[float, int]] = deque()  # when how many steps were made since the last entry
        self._counted = -1  # steps of the episode under way that are in them; below zero before anything was heard
        self._steps_of_ended = 0

    def heed_step(self, step: Step) -> bool:
        """Take a step in; False where it is repeated."""
        seen = self._seen
        if (step.episode, step.index) <= (seen.episode, seen.step) and seen.steps_done:
            return False
        if step.episode >= seen.episodes_done:  # else its end was heard first
            self._count(step.episode, step.index + 1)
        seen.episode, seen.step = step.episode, step.index
        seen.steps_done += 1
        seen.augmented_steps += step.source == Source.AUGMENTOR
        seen.model = step.model_hash or seen.model
        if step.reward == step.reward:
            seen.distances = [*seen.distances, -step.reward][-DISTANCES_KEPT:]
        return True

    def heed_end(self, end: EpisodeEnd) -> bool:
        """Take the end of an episode in; False where it is repeated."""
        seen = self._seen
        if end.episode.index < seen.episodes_done:
            return False
        self._count(end.episode.index, end.steps)
        self._counted = 0
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

    def _count(self, episode: int, steps: int) -> None:
        """Note how many steps of an episode were made, of which not each may have been heard."""
        if self._counted < 0:
            self._counted = max(0, steps - 1)  # whoever comes late does not count what was before
        elif episode != self._seen.episode and self._seen.episode >= self._seen.episodes_done:
            self._counted = 0  # the end of the one before was not heard
        self._paces.append((self._clock(), max(0, steps - self._counted)))
        self._counted = max(self._counted, steps)

    def status(self) -> RunStatus:
        """Return how the run goes at this moment."""
        now = self._clock()
        while self._paces and now - self._paces[0][0] > RATE_WINDOW_S:
            self._paces.popleft()
        self._seen.steps_per_second = sum(count for _, count in self._paces) / RATE_WINDOW_S
        troubles = {node: report.sentence for node, report in self.reports.items() if not report.is_well}
        self._seen.trouble = " · ".join(f"{node}: {sentence}" for node, sentence in troubles.items())
        return self._seen
