"""Gathers from recorded runs what the report shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lift_ros.bags.reader import RunReader
from lift_ros.collection.records import Episode, Outcome
from lift_ros.errors import UserError
from lift_ros.evaluation.frames import Frame, render_episode
from lift_ros.evaluation.phases import Phase, split_phases
from lift_ros.evaluation.report import ReportContent
from lift_ros.evaluation.scores import Scores, score_runs
from lift_ros.scenario import Scenario, parse_scenario


def collect_content(
    runs: Sequence[Path], *, parameters: Mapping[str, Any] | None = None, commands: Sequence[str] = ()
) -> ReportContent:
    """Read runs of one scenario (collected and evaluated ones) and return the content of their report."""
    readers = [RunReader(run) for run in runs]
    scenario = _common_scenario(readers, runs)
    episodes = [episode for reader in readers for episode in reader]
    if not episodes:
        raise UserError(
            f"{', '.join(map(str, runs))}: no episodes to report on; collect some with lift collect or lift run"
        )
    facts = {str(run.name): reader.facts for run, reader in zip(runs, readers, strict=True)}
    return ReportContent(
        title=f"LIFT on {scenario.name}",
        episodes=episodes,
        threshold=float(scenario.plant.parameters["threshold"]),
        scores=_scores(episodes, scenario),
        frames=_frames(episodes, scenario),
        parameters={"runs": facts, **(parameters or {})},
        commands=commands or [f"lift report {' '.join(map(str, runs))}"],
    )


def _common_scenario(readers: Sequence[RunReader], runs: Sequence[Path]) -> Scenario:
    names = {str(reader.facts.get("scenario", "")) for reader in readers}
    if len(names) != 1 or "" in names:
        raise UserError(
            f"{', '.join(map(str, runs))} come from the scenarios {sorted(names)}; a report needs runs of one scenario"
        )
    return parse_scenario(readers[0].facts["parameters"], names.pop(), str(runs[0]))


def _scores(episodes: Sequence[Episode], scenario: Scenario) -> dict[Phase, Scores]:
    phases = split_phases(episodes)
    return dict(zip(phases, score_runs(list(phases.values()), radius=scenario.action_radius), strict=True))


def _frames(episodes: Sequence[Episode], scenario: Scenario) -> list[Frame]:
    """Render the first arrival of the learned policy where the plant can be seen."""
    shown = [episode for episode in episodes if episode.outcome == Outcome.REACHED]
    learned = split_phases(shown).get(Phase.LEARNED_POLICY, [])
    if not learned or not scenario.plant.kind.startswith("fetch"):
        return []
    return render_episode(scenario, learned[0])
