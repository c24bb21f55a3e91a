"""What the operator's page shows of a run: filled by whoever listens to the graph, read by every open browser."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from lift_ros.array_types import Picture
from lift_ros.collection.records import Mode, Outcome, Source, Step
from lift_ros.evaluation.paths import with_unit
from lift_ros.evaluation.phases import Phase
from lift_ros.graph.live_view import RunStatus
from lift_ros.graph.run_watch import Report
from lift_ros.messages.records import EpisodeEnd
from lift_ros.scenario import Scenario, Units

POINTS_KEPT = 2000  # of the episode under way
_PHASES = {Mode.SHADOW: Phase.SHADOW, Mode.ASSIST: Phase.ASSIST, Mode.EVALUATE: Phase.LEARNED_POLICY}


@dataclass(frozen=True)
class PlantWords:
    """How the plant's numbers are called, from its scenario."""

    scenario: str
    units: Units = field(default_factory=Units)
    threshold: float | None = None

    @classmethod
    def of(cls, scenario: Scenario) -> PlantWords:
        """Return the words of a scenario."""
        return cls(scenario.name, scenario.units, scenario.threshold)

    @property
    def distance(self) -> str:
        """Return what distances are called."""
        return with_unit("distance to the goal", self.units.length)

    def axis(self, number: int) -> str:
        """Return what an axis is called; the first has number 0."""
        return with_unit(f"axis {number + 1}", self.units.length)

    def reading(self, number: int) -> str:
        """Return what an entry of the observation is called; the first has number 0."""
        units = self.units.observations
        return with_unit(f"reading {number + 1}", units[number] if number < len(units) else "")


@dataclass(frozen=True, slots=True)
class EpisodeRow:
    """One line of the table of episodes."""

    index: int
    phase: Phase
    outcome: Outcome
    steps: int
    augmentations: int
    seconds: float
    reason: str = ""

    @classmethod
    def of(cls, end: EpisodeEnd) -> EpisodeRow:
        """Sum up the end of an episode."""
        episode = end.episode
        lifted = Phase.LIFT_COLLECTION if end.augmentations else Phase.LOGGING_POLICY
        seconds = (episode.end_time_ns - episode.start_time_ns) / 1e9
        phase = _PHASES.get(episode.mode, lifted)
        return cls(episode.index, phase, episode.outcome, end.steps, end.augmentations, seconds, episode.reason)


@dataclass(frozen=True, slots=True)
class Point:
    """Where the plant was before a step, what it read, and who acted then."""

    step: int
    place: tuple[float, ...]
    reading: tuple[float, ...]
    distance: float  # after the step; NaN where it is unknown
    source: Source


@dataclass(frozen=True)
class Trail:
    """The episode under way."""

    episode: int = -1
    points: Sequence[Point] = ()
    known: bool = False  # places are positions; else the moves added up, since nobody knows more


class Controls(Protocol):
    """What an operator can do; each answers in words or raises `UserError`."""

    async def call(self, service: str) -> str:
        """Call a service of the graph that takes no argument."""

    async def emergency_stop(self, *, stopped: bool) -> str:
        """Stop the plant at once, or release it."""

    async def set(self, parameter: str, value: float | int | str) -> str:
        """Set a parameter of the arbiter."""

    async def serve_model(self, path: str) -> str:
        """Have the augmentor serve a model file."""

    def models(self) -> list[str]:
        """Return the model files that the augmentor would take."""


class LiveRun:
    """All that is shown; `version` of a part rises when it changes, so that browsers are sent nothing twice."""

    def __init__(self, words: PlantWords, run: str = "") -> None:
        self.words = words
        self.run = run
        self.status = RunStatus()
        self.reports: dict[str, Report] = {}
        self.settings: dict[str, object] = {}  # parameters of the arbiter that can be set here
        self.ended = False
        self.lookers = 0  # open browsers
        self.picture: Picture | None = None
        self.versions = {"trail": 0, "rows": 0, "picture": 0, "reports": 0, "settings": 0}
        self._lock = threading.Lock()
        self._rows: dict[int, EpisodeRow] = {}
        self._episode = -1
        self._points: deque[Point] = deque(maxlen=POINTS_KEPT)
        self._known = False
        self._moved = np.empty(0)

    # --- told by who listens to the graph --------------------------------------------------------------------------

    def step_made(self, step: Step) -> None:
        """Add a step to the trail."""
        with self._lock:
            if step.episode != self._episode:
                self._episode, self._moved = step.episode, np.zeros(step.action.size)
                self._known = step.position.size > 0
                self._points.clear()
            place = step.position if self._known else self._moved
            point = Point(
                step.index, tuple(place.tolist()), tuple(step.observation.tolist()), -step.reward, step.source
            )
            self._points.append(point)
            self._moved = self._moved + step.action
        self.touch("trail")

    def episode_ended(self, end: EpisodeEnd) -> None:
        """Add an episode to the table."""
        self.add_rows([EpisodeRow.of(end)])

    def add_rows(self, rows: Iterable[EpisodeRow]) -> None:
        """Add episodes to the table; whatever is known of the same ones gives way."""
        with self._lock:
            self._rows.update((row.index, row) for row in rows)
        self.touch("rows")

    def heard(self, status: RunStatus, reports: Mapping[str, Report]) -> None:
        """Take over how the run goes."""
        self.status, self.reports = replace(status), dict(reports)
        self.touch("reports")

    def set_to(self, settings: Mapping[str, object]) -> None:
        """Take over parameters of the arbiter."""
        self.settings = {**self.settings, **settings}
        self.touch("settings")

    def show(self, picture: Picture | None) -> None:
        """Show a picture."""
        self.picture = picture
        self.touch("picture")

    def looked_at(self, more: int) -> None:
        """Note that browsers came or went."""
        with self._lock:
            self.lookers += more

    def end(self) -> None:
        """Say that the graph has ended."""
        self.ended = True
        self.touch("reports")

    def touch(self, part: str) -> None:
        """Note that a part has changed."""
        self.versions[part] += 1

    # --- read by browsers ------------------------------------------------------------------------------------------

    def trail(self) -> Trail:
        """Return the episode under way as it is now."""
        with self._lock:
            return Trail(self._episode, tuple(self._points), self._known)

    def rows(self) -> list[EpisodeRow]:
        """Return the episodes, ascending."""
        with self._lock:
            return [self._rows[index] for index in sorted(self._rows)]

    def report(self, node: str) -> Report | None:
        """Return what a node last said."""
        return self.reports.get(node)

    def value(self, node: str, key: str) -> str:
        """Return a value that a node reports, empty where it does not."""
        report = self.reports.get(node)
        return "" if report is None else report.values.get(key, "")
