"""Whether what a rig's run records has happened: every position was taken, every action is the way between two."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchmark.attacks.rigs import Trace
from lift_ros.bags.reader import RunReader
from lift_ros.collection.records import Episode, Outcome

BEFORE_NS, AFTER_NS = 1_500_000_000, 300_000_000  # around a record, in which the axes must have been where it says
READS = 3.0  # tolerances by which a way may differ from its action: one arrival, and two within which it may begin


@dataclass
class RigTruth:
    """What was found in a run."""

    episodes: int = 0
    steps: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    numbers: set[int] = field(default_factory=set)
    recorded: set[tuple[int, int]] = field(default_factory=set)
    untrue: list[str] = field(default_factory=list)
    unwatched: int = 0  # positions that were not seen, while the thread that looks was kept waiting


def examine(run: Path, trace: Trace, tolerance: float) -> RigTruth:
    """Compare every episode of a run with what the axes did; actions are in units of the axes."""
    truth = RigTruth()
    for episode in RunReader(run):
        truth.episodes += 1
        truth.steps += len(episode.steps)
        truth.outcomes[episode.outcome.name.lower()] += 1
        truth.numbers.add(episode.index)
        truth.recorded |= {(episode.index, step.index) for step in episode.steps}
        _examine(episode, trace, tolerance, truth)
    return truth


def _examine(episode: Episode, trace: Trace, tolerance: float, truth: RigTruth) -> None:
    place = f"episode {episode.index} ({episode.outcome.name.lower()})"
    places = [(step.position, step.time_ns - BEFORE_NS, step.time_ns + AFTER_NS) for step in episode.steps]
    if episode.outcome is not Outcome.RECOVERED and episode.final_position.size:
        begun = episode.steps[-1].time_ns if episode.steps else episode.start_time_ns
        places.append((episode.final_position, begun, episode.end_time_ns + AFTER_NS))
    for i, (position, begin, end) in enumerate(places):
        off = trace.distance(position, begin, end)
        if off > tolerance and trace.was_looked_away(begin, end):
            truth.unwatched += 1
        elif off > tolerance:
            what = f"the axes came no nearer to {position.tolist()} than {off:.3g}"
            truth.untrue.append(f"{place}, observation {i}: {what}")
    for step, (after, _, _) in zip(episode.steps, places[1:], strict=False):
        off = np.abs(after - step.position - step.action).max()
        if off > READS * tolerance:
            truth.untrue.append(f"{place}, step {step.index}: its action and the way differ by {off:.3g}")
