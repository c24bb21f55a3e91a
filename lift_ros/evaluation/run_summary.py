"""What a run holds, as numbers for tables and programs: each episode, the run as a whole, and its dataset scores."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from lift_ros.collection.records import Episode, Outcome
from lift_ros.evaluation.scores import Scores, mean_return

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
    augmentations: int
    episode_return: float
    duration: float  # [s]
    rate: float  # steps per second
    gaps: int
    longest_pause: float  # [s]


@dataclass(frozen=True, slots=True)
class RunSummary:
    """One line of the table of runs, with its episodes."""

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
    left_out: list[str]
    facts: dict[str, Any]
    scores: Scores | None = None
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
    rewards: str,
    facts: dict[str, Any],
    left_out: Sequence[str] = (),
    scores: Scores | None = None,
) -> RunSummary:
    """Sum up a run; `rewards` tells where the episodes' rewards come from."""
    usual = usual_pause(episodes)
    table = [summarise_episode(episode, usual) for episode in episodes]
    steps = sum(line.steps for line in table)
    duration = sum(line.duration for line in table)
    return RunSummary(
        run=name,
        episodes=len(table),
        steps=steps,
        success=_mean([float(episode.outcome == Outcome.REACHED) for episode in episodes]),
        mean_steps=_mean([line.steps for line in table]),
        augmented=sum(line.augmentations for line in table) / steps if steps else math.nan,
        rewards=rewards,
        mean_return=mean_return(episodes),
        duration=duration,
        rate=steps / duration if duration > 0 else math.nan,
        gaps=sum(line.gaps for line in table),
        outcomes=dict(Counter(line.outcome for line in table)),
        left_out=list(left_out),
        facts=facts,
        scores=scores,
        table=table,
    )


def for_programs(value: Any) -> Any:
    """Return a summary as plain JSON values; what is unknown becomes null."""
    if hasattr(value, "__dataclass_fields__"):
        return for_programs(asdict(value))
    if isinstance(value, dict):
        return {str(key): for_programs(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [for_programs(entry) for entry in value]
    if isinstance(value, np.ndarray):
        return for_programs(value.tolist())
    if isinstance(value, float | np.floating):
        return float(value) if math.isfinite(value) else None
    return int(value) if isinstance(value, np.integer) else value


def shown(value: object, digits: int = 3) -> str:
    """Return a table's entry; what is unknown is a dash."""
    if not isinstance(value, float):
        return str(value)
    if not math.isfinite(value):
        return "–"
    return f"{value:.0f}" if abs(value) >= 10**digits else f"{value:.{digits}g}"


def format_table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a table with aligned columns: numbers to the right, words to the left."""
    cells = [[shown(entry) for entry in row] for row in rows]
    widths = [max(len(line[column]) for line in [list(header), *cells]) for column in range(len(header))]
    words = [any(isinstance(row[column], str) for row in rows) for column in range(len(header))]

    def line(entries: Sequence[str]) -> str:
        padded = [
            entry.ljust(width) if word else entry.rjust(width)
            for entry, width, word in zip(entries, widths, words, strict=True)
        ]
        return "  ".join(padded).rstrip()

    return "\n".join([line(header), line(["─" * width for width in widths]), *(line(row) for row in cells)])


def episode_table(episodes: Sequence[EpisodeSummary]) -> str:
    """Return the table of episodes."""
    header = ("episode", "steps", "outcome", "augmented", "return", "seconds", "steps/s", "gaps", "longest pause")
    rows = [
        (
            entry.episode,
            entry.steps,
            entry.outcome + (f": {entry.reason}" if entry.reason else ""),
            entry.augmentations,
            entry.episode_return,
            entry.duration,
            entry.rate,
            entry.gaps,
            entry.longest_pause,
        )
        for entry in episodes
    ]
    return format_table(header, rows)


def run_table(summaries: Sequence[RunSummary]) -> str:
    """Return the table of runs."""
    header = (
        "run",
        "episodes",
        "steps",
        "reached",
        "steps/episode",
        "augmented",
        "rewards",
        "seconds",
        "steps/s",
        "gaps",
    )
    rows = [
        (
            entry.run,
            entry.episodes,
            entry.steps,
            entry.success,
            entry.mean_steps,
            entry.augmented,
            entry.rewards,
            entry.duration,
            entry.rate,
            entry.gaps,
        )
        for entry in summaries
    ]
    return format_table(header, rows)


def score_table(summaries: Sequence[RunSummary]) -> str:
    """Return the table of dataset scores."""
    header = ("run", "mean return", "trajectory quality", "pairs", "state-action coverage", "states", "exploration")
    rows = [
        (
            entry.run,
            entry.scores.mean_return,
            entry.scores.trajectory_quality,
            entry.scores.pairs,
            entry.scores.coverage,
            entry.scores.states,
            entry.scores.exploration,
        )
        for entry in summaries
        if entry.scores is not None
    ]
    return format_table(header, rows)
