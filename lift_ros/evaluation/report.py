"""The self-contained HTML page of a run: what was done, how well it went and how to repeat it."""

from __future__ import annotations

import base64
import html
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from lift_ros.array_types import ByteArray
from lift_ros.bags.reader import RunReader
from lift_ros.collection.records import Episode, Mode, Outcome
from lift_ros.console import format_table
from lift_ros.errors import UserError
from lift_ros.evaluation.foresight import Outlook
from lift_ros.evaluation.guard_summary import HEADER as _GUARD_HEADER
from lift_ros.evaluation.guard_summary import guard_rows
from lift_ros.evaluation.paths import goal_of, positions, trajectory
from lift_ros.evaluation.phases import Phase, augmentation_outcomes, distance_quartiles, split_phases
from lift_ros.evaluation.plots import AUGMENTED, LOGGED, draw_quartiles, draw_steps, make_figure
from lift_ros.evaluation.run_summary import summarise_run
from lift_ros.evaluation.scores import Scores, score_runs
from lift_ros.policies.learned import load_model
from lift_ros.scenario import Scenario, parse_scenario
from lift_ros.training.runs import load_runs

_STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; color: #1f2937; }
h1 { margin-bottom: 0; } h2 { margin-top: 2.5rem; border-bottom: 1px solid #e5e7eb; }
table { border-collapse: collapse; margin: 1rem 0; } th, td { padding: .35rem .9rem; text-align: right; }
th:first-child, td:first-child { text-align: left; } thead th { border-bottom: 2px solid #1f2937; }
tbody tr:nth-child(even) { background: #f3f4f6; } img { max-width: 100%; height: auto; }
figure { margin: 1rem 0; } figcaption { color: #4b5563; font-size: .9rem; }
pre { background: #f3f4f6; padding: .8rem; overflow-x: auto; } .lead { color: #4b5563; margin-top: .2rem; }
"""
_LEAD = (
    "A scripted routine was recorded, an augmentor was trained on shortcuts of its trajectories, better data were "
    "collected with both, and a policy was trained from the bags alone."
)
_SCORES_NOTE = (
    "Trajectory quality is 1 for the best return and 0 for the worst; coverage counts distinct state–action cells "
    "relative to the logging policy's data."
)
_GUARD_NOTE = (
    "While collecting, augmented episodes were compared with the routine's own. What p and budget this led to, and why:"
)
_HEADER = ("who acts", "episodes", "steps to goal", "success", "return")
_SCORES_HEADER = ("data of", "trajectory quality", "state–action coverage", "pairs")
_PREDICTIONS = ("model", "predicted success", "steps", "the prediction", "measured success")
ALONE = (Phase.LOGGING_POLICY, Phase.SHADOW)  # phases in which the logging policy alone moves the plant
Frames = dict[int, ByteArray]  # pictures by the number of steps made before them
COLOURS = {
    Phase.LOGGING_POLICY: "#2563eb",
    Phase.SHADOW: "#6b7280",
    Phase.LIFT_COLLECTION: "#d97706",
    Phase.ASSIST: "#0d9488",
    Phase.LEARNED_POLICY: "#16a34a",
}


@dataclass(frozen=True)
class ReportContent:
    """All that the page shows; nothing is read while it is written."""

    title: str
    episodes: Sequence[Episode]
    threshold: float
    scores: Mapping[Phase, Scores] = field(default_factory=dict)  # of each phase, as a dataset
    predictions: Sequence[Sequence[str]] = ()  # of models, by the recorded runs; a row each
    guard: Sequence[Sequence[str]] = ()  # its decisions
    frames: Frames = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    commands: Sequence[str] = ()  # how to repeat it


def collect_content(
    runs: Sequence[Path],
    *,
    models: Sequence[Path] = (),
    parameters: Mapping[str, Any] | None = None,
    commands: Sequence[str] = (),
) -> ReportContent:
    """Read runs of one scenario (collected and evaluated ones) and return the content of their report.

    What the collected runs say of `models` before anything moves is shown beside what evaluated ones measured.
    """
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
        predictions=predict_models(runs, models, phases.get(Phase.LEARNED_POLICY, [])),
        guard=[row for reader in readers.values() for row in guard_rows(reader.facts, reader)],
        frames=render_episode(scenario, arrived[0]) if seen else {},
        parameters={"runs": {run.name: reader.facts for run, reader in readers.items()}, **(parameters or {})},
        commands=commands or [f"lift report {words}"],
    )


def predict_models(runs: Sequence[Path], models: Sequence[Path], evaluated: Sequence[Episode]) -> list[list[str]]:
    """Return what the collected episodes of runs let expect of each model, and what its evaluation gave, if any."""
    if not models:
        return []
    recorded = load_runs(runs)
    recorded = replace(recorded, arrays=recorded.arrays.select(recorded.arrays.modes != int(Mode.EVALUATE)))
    outlook = Outlook(recorded, runs)
    rows = []
    for path in models:
        policy = load_model(path)
        foresight = outlook.judge(policy, str(path))
        predicted = foresight.prediction
        words = ("–", "–", foresight.no_prediction) if predicted is None else (*predicted.numbers(), predicted.verdict)
        own = [episode for episode in evaluated if episode.steps and episode.steps[0].model_hash == policy.hash]
        measured = f"{summarise_run('', own).success:.2f} of {len(own)}" if own else "–"
        rows.append([path.name, *words, measured])
    return rows


def render_episode(scenario: Scenario, episode: Episode, count: int = 8, size: int = 224) -> Frames:
    """Return evenly spread frames of an episode: its seed and actions repeat it exactly in the simulator."""
    wanted = set(np.linspace(0, len(episode.steps), count).round().astype(int).tolist())
    with closing(scenario.make_problem(render_size=size)) as problem:
        seen = [problem.reset(episode.seed), *(problem.step(step.action) for step in episode.steps)]
    return {step: image for step in sorted(wanted) if (image := seen[step].image) is not None}


def text_table(episodes: Sequence[Episode]) -> str:
    """Return the result as a table for a terminal."""
    return format_table(_HEADER, _result(episodes))


def write_report(content: ReportContent, path: Path) -> None:
    """Write the page; it needs no network and no further files."""
    title = html.escape(content.title)
    commands = html.escape("\n".join(content.commands))
    parameters = html.escape(json.dumps(content.parameters, indent=2, sort_keys=True, default=str))
    scores = [
        (phase.value, f"{score.trajectory_quality:.3f}", f"{score.coverage:.3f}", score.pairs)
        for phase, score in content.scores.items()
    ]
    page = [
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}</title><style>{_STYLE}</style></head>\n<body>",
        f"<h1>{title}</h1><p class=lead>{_LEAD}</p>",
        _table("result", _HEADER, _result(content.episodes)),
        *(_section(*figure) for figure in _figures(content)),
    ]
    if scores:
        page.append(
            f"<h2>Dataset scores</h2>{_table('scores', _SCORES_HEADER, scores)}<p class=lead>{_SCORES_NOTE}</p>"
        )
    if content.guard:
        page.append(f"<h2>Guard</h2><p>{_GUARD_NOTE}</p>{_table('guard', _GUARD_HEADER, content.guard)}")
    if content.predictions:
        page.append(f"<h2>Predicted from the bags alone</h2>{_table('predictions', _PREDICTIONS, content.predictions)}")
    page += [
        f"<h2>How to repeat it</h2><pre>{commands}</pre>",
        f"<h2>Every parameter and seed</h2><pre id=parameters>{parameters}</pre>",
        "</body></html>\n",
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(page), encoding="utf-8")


def _result(episodes: Sequence[Episode]) -> list[Sequence[str]]:
    """Return one row per phase that has episodes, in the order of the method."""
    phases = [summarise_run(phase.value, items) for phase, items in split_phases(episodes).items()]
    return [(p.run, str(p.episodes), f"{p.mean_steps:.1f}", f"{p.success:.0%}", f"{p.mean_return:.2f}") for p in phases]


def _table(name: str, header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    head = "".join(f"<th>{entry}</th>" for entry in header)
    body = "".join("<tr>" + "".join(f"<td>{entry}</td>" for entry in row) + "</tr>" for row in rows)
    return f"<table id={name}><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _figures(content: ReportContent) -> Iterator[tuple[str, Any, str]]:
    """Yield title, figure and caption of what there is to draw."""
    phases = split_phases(content.episodes)
    lengths = {phase: max(len(item.steps) for item in items) for phase, items in phases.items()}
    learned = [length for phase, length in lengths.items() if phase not in ALONE]
    shown = max(30, min(200, 2 * max(learned or lengths.values(), default=1)))
    curves = convergence(phases, content.threshold, shown)
    yield "Convergence", curves, "Median distance to the goal over steps, with quartiles."
    paths = trajectories(phases)
    if paths is not None:
        yield "Trajectories", paths, "Steps of the routine are blue, steps of the learned policy are red."
    yield "Steps per episode", steps_per_episode(phases), "In the order in which they were made."
    if Phase.LIFT_COLLECTION in phases:
        caption = "How often the augmentor acted while collecting, and what became of its proposals."
        yield "Augmentations", augmentations(phases[Phase.LIFT_COLLECTION]), caption
    if content.frames:
        yield "The learned policy at work", frame_strip(content.frames), "One evaluation episode, rendered."


def _section(title: str, figure: Any, caption: str) -> str:
    return (
        f'<h2>{title}</h2><figure><img alt="{html.escape(caption)}" src="{data_uri(figure)}">'
        f"<figcaption>{html.escape(caption)}</figcaption></figure>"
    )


def data_uri(figure: Any) -> str:
    """Render a figure as a PNG data URI."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()


def _panels(width: float, height: float, **layout: Any) -> tuple[Any, list[Any]]:
    """Return a figure and its axes side by side, with grids and without frames."""
    figure = make_figure(width, height)
    panels = list(figure.subplots(squeeze=False, **layout)[0])
    for axes in panels:
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25)
    return figure, panels


def convergence(phases: Mapping[Phase, Sequence[Episode]], threshold: float, steps: int) -> Any:
    """Draw the median distance over steps with its quartiles, one curve per phase."""
    figure, (axes,) = _panels(7.5, 4)
    curves = {phase.value: distance_quartiles(episodes, steps) for phase, episodes in phases.items()}
    draw_quartiles(axes, curves, {phase.value: colour for phase, colour in COLOURS.items()}, threshold)
    axes.legend(frameon=False)
    return figure


def steps_per_episode(phases: Mapping[Phase, Sequence[Episode]]) -> Any:
    """Draw how long each episode took, in the order in which they were made."""
    figure, (axes,) = _panels(7.5, 3.2)
    offset = 0
    for phase, episodes in phases.items():
        lengths = [len(episode.steps) for episode in episodes]
        axes.bar(offset + np.arange(len(lengths)), lengths, color=COLOURS[phase], width=0.85, label=phase.value)
        offset += len(lengths)
    axes.set(xlabel="episode", ylabel="steps")
    axes.legend(frameon=False)
    return figure


def augmentations(episodes: Sequence[Episode]) -> Any:
    """Draw the share of augmented steps per episode, and what became of all chances to augment."""
    figure, (left, right) = _panels(7.5, 3.2, ncols=2, width_ratios=[2, 1])
    shares = [episode.augmentations / max(1, len(episode.steps)) for episode in episodes]
    left.bar(np.arange(len(shares)), shares, color=AUGMENTED, width=0.85)
    left.set(xlabel="episode with an augmentor", ylabel="share of augmented steps", ylim=(0, 1))
    outcomes = augmentation_outcomes(episodes)
    right.barh(list(outcomes), list(outcomes.values()), color=[AUGMENTED, LOGGED] + ["grey"] * 8)
    right.set(xlabel="steps")
    return figure


def trajectories(phases: Mapping[Phase, Sequence[Episode]], shown: int = 12) -> Any | None:
    """Draw paths relative to the goal in the first two coordinates, logged steps blue and augmented ones red."""
    drawn = {phase: [item for item in episodes if _has_path(item)][:shown] for phase, episodes in phases.items()}
    drawn = {phase: episodes for phase, episodes in drawn.items() if episodes}
    if not drawn:
        return None
    figure, grid = _panels(3.4 * len(drawn) + 0.4, 3.6, ncols=len(drawn), sharex=True, sharey=True)
    for axes, (phase, episodes) in zip(grid, drawn.items(), strict=True):
        draw_steps(axes, episodes, [trajectory(episode)[:, :2] for episode in episodes])
        axes.plot(0, 0, marker="*", color="black", markersize=9)
        axes.set(title=phase.value, xlabel="offset from the goal, axis 1", aspect="equal")
    grid[0].set_ylabel("axis 2")
    return figure


def _has_path(episode: Episode) -> bool:
    return bool(episode.steps) and positions(episode).shape[1] == goal_of(episode).size >= 2


def frame_strip(frames: Frames) -> Any:
    """Put rendered frames side by side, each with its step."""
    figure, panels = _panels(1.6 * len(frames), 1.95, ncols=len(frames))
    for axes, (step, picture) in zip(panels, frames.items(), strict=True):
        axes.imshow(picture)
        axes.set_title(f"step {step}", fontsize=8)
        axes.axis("off")
    return figure
