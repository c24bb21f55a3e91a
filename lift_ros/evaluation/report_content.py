"""Gathers from recorded runs what the report shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lift_ros.bags.reader import RunReader
from lift_ros.collection.records import Episode, Outcome
from lift_ros.errors import UserError
from lift_ros.evaluation.phases import Phase, split_phases
from lift_ros.evaluation.scores import Scores, score_runs
from lift_ros.scenario import Scenario, parse_scenario

Frames = dict[int, npt.NDArray[np.uint8]]  # pictures by the number of steps made before them


@dataclass(frozen=True)
class ReportContent:
    """All that the page shows; nothing is read while it is written."""

    title: str
    episodes: Sequence[Episode]
    threshold: float
    scores: Mapping[Phase, Scores] = field(default_factory=dict)  # of each phase, as a dataset
    frames: Frames = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    commands: Sequence[str] = ()  # how to repeat it


def collect_content(
    runs: Sequence[Path], *, parameters: Mapping[str, Any] | None = None, commands: Sequence[str] = ()
) -> ReportContent:
    """Read runs of one scenario (collected and evaluated ones) and return the content of their report."""
    readers = {run: RunReader(run) for run in runs}
    words = " ".join(map(str, runs))
    names = {str(reader.facts.get("scenario", "")) for reader in readers.values()}
    if len(names) != 1 or "" in names:
        raise UserError(f"{words} come from the scenarios {sorted(names)}; a report needs runs of one scenario")
    scenario = parse_scenario(readers[runs[0]].facts["parameters"], names.pop(), str(runs[0]))
    episodes = [episode for reader in readers.values() for episode in reader]
    if not episodes:
        raise UserError(f"{words}: no episodes to report on; collect some with lift collect or lift run")
    phases = split_phases(episodes)
    scores = score_runs(list(phases.values()), radius=scenario.action_radius)
    arrived = [item for item in phases.get(Phase.LEARNED_POLICY, []) if item.outcome == Outcome.REACHED]
    seen = arrived and scenario.plant.kind.startswith("fetch")
    return ReportContent(
        title=f"LIFT on {scenario.name}",
        episodes=episodes,
        threshold=float(scenario.plant.parameters["threshold"]),
        scores=dict(zip(phases, scores, strict=True)),
        frames=render_episode(scenario, arrived[0]) if seen else {},
        parameters={"runs": {run.name: reader.facts for run, reader in readers.items()}, **(parameters or {})},
        commands=commands or [f"lift report {words}"],
    )


def render_episode(scenario: Scenario, episode: Episode, count: int = 8, size: int = 224) -> Frames:
    """Return evenly spread frames of an episode: its seed and actions repeat it exactly in the simulator."""
    wanted = set(np.linspace(0, len(episode.steps), count).round().astype(int).tolist())
    with closing(scenario.make_problem(render_size=size)) as problem:
        seen = [problem.reset(episode.seed), *(problem.step(step.action) for step in episode.steps)]
    return {step: image for step in sorted(wanted) if (image := seen[step].image) is not None}
