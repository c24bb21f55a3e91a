"""What a run holds, as numbers for tables and programs: each episode, the run as a whole, and its dataset scores."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lift_ros.collection.records import Episode, Outcome
from lift_ros.evaluation.frames import PictureSummary, summarise_pictures
from lift_ros.evaluation.phases import phase_of, split_phases
from lift_ros.evaluation.scores import Scores, mean_return
from lift_ros.positioning.pictures import PictureFormat

SECOND = 1e9
# A pause between two steps is a gap when it is so many times the run's usual pause, and no mere hiccup of the system.
GAP_FACTOR = 5.0
GAP_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class EpisodeSummary:
    """One line of the table of episodes; NaN where something is unknown."""

    episode: int
    steps: int
    outcome: str
    reason: str
    phase: str  # who was acting
    augmentations: int
    episode_return: float
    duration: float  # [s]
    rate: float  # steps per second
    gaps: int
    longest_pause: float  # [s]

    @property
    def ending(self) -> str:
        """The outcome with its reason."""
        return f"{self.outcome}: {self.reason}" if self.reason else self.outcome


@dataclass(slots=True)
class RunSummary:
    """One line of the table of runs, or of other groups of episodes, with the episodes."""

    run: str
    episodes: int
    steps: int
    success: float  # share of episodes that reached the goal
    mean_steps: float
    augmented: float  # share of steps made by the augmentor
    rewards: str  # measured, hindsight or unknown
    mean_return: float  # of the episodes where it is known
    duration: float  # [s] in all episodes together
    rate: float  # steps per second
    gaps: int
    outcomes: dict[str, int]
    phases: dict[str, int]  # how many episodes of each
    left_out: list[str]
    facts: dict[str, Any]
    scores: Scores | None = None
    pictures: list[PictureSummary] = field(default_factory=list)
    table: list[EpisodeSummary] = field(default_factory=list)


def pauses(episode: Episode) -> list[float]:
    """Return the times between two steps in seconds, and that from the last step to the end."""
    times = [step.time_ns for step in episode.steps]
    if episode.steps and episode.end_time_ns >= times[-1]:
        times.append(episode.end_time_ns)
    return [(later - earlier) / SECOND for earlier, later in itertools.pairwise(times)]


def usual_pause(episodes: Sequence[Episode]) -> float:
    """Return the median time between two steps of a run; NaN without any."""
    found = [pause for episode in episodes for pause in pauses(episode)]
    return float(np.median(found)) if found else math.nan


def summarise_episode(episode: Episode, usual: float) -> EpisodeSummary:
    """Sum up one episode; `usual` is the pause against which gaps are counted."""
    between = pauses(episode)
    duration = sum(between)
    return EpisodeSummary(
        episode=episode.index,
        steps=len(episode.steps),
        outcome=episode.outcome.name.lower().replace("_", " "),
        reason=episode.reason,
        phase=phase_of(episode).value,
        augmentations=episode.augmentations,
        episode_return=episode.episode_return,
        duration=duration,
        rate=len(episode.steps) / duration if duration > 0 else math.nan,
        gaps=sum(pause > max(GAP_FACTOR * usual, GAP_SECONDS) for pause in between),
        longest_pause=max(between, default=math.nan),
    )


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else math.nan


def summarise_run(
    name: str,
    episodes: Sequence[Episode],
    *,
    rewards: str = "",
    facts: dict[str, Any] | None = None,
    left_out: Sequence[str] = (),
    pictures: Mapping[PictureFormat, int] | None = None,
) -> RunSummary:
    """Sum up a group of episodes; `rewards` tells where their rewards come from."""
    usual = usual_pause(episodes)
    table = [summarise_episode(episode, usual) for episode in episodes]
    steps = sum(line.steps for line in table)
    duration = sum(line.duration for line in table)
    return RunSummary(
        run=name,
        episodes=len(table),
        steps=steps,
        success=_mean([episode.outcome == Outcome.REACHED for episode in episodes]),
        mean_steps=_mean([line.steps for line in table]),
        augmented=sum(line.augmentations for line in table) / steps if steps else math.nan,
        rewards=rewards,
        mean_return=mean_return(episodes),
        duration=duration,
        rate=steps / duration if duration > 0 else math.nan,
        gaps=sum(line.gaps for line in table),
        outcomes=dict(Counter(line.outcome for line in table)),
        phases=dict(Counter(line.phase for line in table)),
        left_out=list(left_out),
        facts=facts or {},
        pictures=summarise_pictures(pictures or {}),
        table=table,
    )


def summarise_phases(run: RunSummary, episodes: Sequence[Episode]) -> list[RunSummary]:
    """Sum up routine, LIFT and others of a run apart; nothing where there is only one of them."""
    phases = split_phases(episodes)
    if len(phases) < 2:
        return []
    return [summarise_run(f"{run.run}: {phase.value}", items) for phase, items in phases.items()]


# Tables: which attribute stands under which heading.
EPISODE_COLUMNS = (
    "episode as no., phase, steps, ending as outcome, augmentations as augm., episode_return as return, "
    "duration as seconds, gaps, longest_pause as worst pause"
)
RUN_COLUMNS = (
    "run, episodes, steps, success as reached, mean_steps as steps/episode, augmented, rewards, "
    "duration as seconds, rate as steps/s, gaps"
)
PHASE_COLUMNS = "run as run and who acts, episodes, success as reached, mean_steps as steps/episode"
SCORE_COLUMNS = (
    "run, scores.mean_return as mean return, scores.trajectory_quality as trajectory quality, scores.pairs as pairs, "
    "scores.coverage as state-action coverage, scores.states as states, scores.exploration as exploration"
)
