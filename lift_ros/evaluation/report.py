"""The self-contained HTML page of a run: what was done, how well it went and how to repeat it."""

from __future__ import annotations

import base64
import html
import io
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from lift_ros.bags.reader import RunReader
from lift_ros.collection.records import Episode, Mode, Outcome
from lift_ros.console import format_table
from lift_ros.errors import UserError
from lift_ros.evaluation.foresight import Outlook
from lift_ros.evaluation.frames import Strip, make_strip, recorded_strips
from lift_ros.evaluation.guard_summary import Change, guard_changes
from lift_ros.evaluation.labelled import LabelledEpisodes, label_episodes
from lift_ros.evaluation.paths import with_unit
from lift_ros.evaluation.phases import Phase, finished_by_routine, split_phases
from lift_ros.evaluation.plots import theme
from lift_ros.evaluation.repeating import repeat_commands
from lift_ros.evaluation.report_figures import (
    Drawing,
    augmentations,
    convergence,
    frame_strip,
    steps_per_episode,
    trajectories,
)
from lift_ros.evaluation.run_facts import threshold_of, units_of
from lift_ros.evaluation.run_summary import summarise_run
from lift_ros.evaluation.scores import Scores, score_runs
from lift_ros.policies.learned import load_model
from lift_ros.scenario import Scenario, Units
from lift_ros.training.runs import load_runs, recorded_scenario

STYLE = """
:root { color-scheme: light dark; --back: #ffffff; --ink: #1f2937; --soft: #4b5563; --line: #e5e7eb; --tint: #f3f4f6; }
@media (prefers-color-scheme: dark) {
  :root { --back: #111827; --ink: #e5e7eb; --soft: #9ca3af; --line: #374151; --tint: #1f2937; }
}
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
body { color: var(--ink); background: var(--back); }
h1 { margin-bottom: 0; } h2 { margin-top: 2.5rem; border-bottom: 1px solid var(--line); }
table { border-collapse: collapse; margin: 1rem 0; } th, td { padding: .35rem .9rem; text-align: right; }
th:first-child, td:first-child, #guard :is(th, td):last-child { text-align: left; }
thead th { border-bottom: 2px solid var(--ink); }
tbody tr:nth-child(even) { background: var(--tint); } img { max-width: 100%; height: auto; }
figure { margin: 1rem 0; } figcaption { color: var(--soft); font-size: .9rem; }
pre { background: var(--tint); padding: .8rem; overflow-x: auto; } .lead { color: var(--soft); margin-top: .2rem; }
"""
_SCORES_NOTE = (
    "Trajectory quality is 1 for the best return and 0 for the worst; coverage counts distinct state–action cells "
    "relative to the logging policy's data."
)
_HINDSIGHT = (
    "Rewards of {} episodes were not measured: their steps are judged in hindsight, by the distance to the recorded "
    "goal or, where none was recorded, to where an episode that arrived ended."
)
_NO_RETURN = (
    "{} episodes have no return: their rewards were not measured, and without an arrival or without positions there is "
    "nothing to judge them by."
)
_GUARD_HEADER = ("from episode", "p", "budget", "why")
_GUARD_NOTE = (
    "While collecting, augmented episodes were compared with the routine's own. What p and budget this led to, and why:"
)
_SCORES_HEADER = ("data of", "trajectory quality", "state–action coverage", "pairs")
_PREDICTIONS = ("model", "predicted success", "steps", "the prediction", "measured success")


@dataclass(frozen=True)
class ReportContent:
    """All that the page shows; nothing is read while it is written."""

    title: str
    episodes: Sequence[Episode]
    threshold: float | None = None  # θ, where it is known
    units: Units = field(default_factory=Units)
    lead: str = ""  # what happened
    notes: Sequence[str] = ()  # on the table of results
    scores: Mapping[Phase, Scores] = field(default_factory=dict)  # of each phase, as a dataset
    predictions: Sequence[Sequence[str]] = ()  # of models, by the recorded runs; a row each
    guard: Sequence[Change] = ()
    strips: Sequence[Strip] = ()  # pictures along episodes
    parameters: Mapping[str, Any] = field(default_factory=dict)
    commands: Sequence[str] = ()  # how to repeat it


def collect_content(
    runs: Sequence[Path],
    *,
    models: Sequence[Path] = (),
    parameters: Mapping[str, Any] | None = None,
    commands: Sequence[str] = (),
    out: Path | None = None,
) -> ReportContent:
    """Read runs of one scenario, or imported ones, and return the content of their report.

    What the collected runs say of `models` before anything moves is shown beside what evaluated ones measured.
    `commands` are shown above those that the runs themselves tell.
    """
    readers = {run: RunReader(run) for run in runs}
    words = " ".join(map(str, runs))
    names = {str(reader.facts.get("scenario", "")) for reader in readers.values()}
    if len(names) != 1:
        raise UserError(f"{words} come from the scenarios {sorted(names)}; a report needs runs of one scenario")
    scenario = recorded_scenario(readers[runs[0]].facts, str(runs[0]))
    labelled = {run: label_episodes(reader) for run, reader in readers.items()}
    episodes = [episode for found in labelled.values() for episode in found.episodes]
    if not episodes:
        raise UserError(f"{words}: no episodes to report on; collect some with lift collect or lift run")
    phases = split_phases(episodes)
    scores = score_runs(list(phases.values()), radius=None if scenario is None else scenario.action_radius)
    arrived = [item for item in phases.get(Phase.LEARNED_POLICY, []) if item.outcome == Outcome.REACHED]
    facts = {run: reader.facts for run, reader in readers.items()}
    repeated = repeat_commands({run: (facts[run], len(labelled[run].episodes)) for run in runs}, models, out)
    strips = [strip for run, reader in readers.items() for strip in recorded_strips(reader, labelled[run].pictured)]
    strips = list({strip.phase: strip for strip in reversed(strips)}.values())[::-1]  # of each phase the first run's
    seen = any(strip.phase is Phase.LEARNED_POLICY for strip in strips)
    if scenario is not None and scenario.plant.kind.startswith("fetch") and arrived and not seen:
        strips.append(render_episode(scenario, arrived[0]))
    changes = [change for run in runs for change in guard_changes(facts[run], labelled[run].episodes)]
    return ReportContent(
        title=f"LIFT on {scenario.name if scenario else ', '.join(run.name for run in runs)}",
        episodes=episodes,
        threshold=_agreed([threshold_of(each) for each in facts.values()]),
        units=units_of(facts[runs[-1]]),
        lead=tell_story(episodes, imported=any("imported_from" in each for each in facts.values())),
        notes=[*(str(change) for change in changes[-1:] if change.warns), *_reward_notes(list(labelled.values()))],
        scores=dict(zip(phases, scores, strict=True)),
        predictions=predict_models(runs, models, phases.get(Phase.LEARNED_POLICY, [])),
        guard=changes,
        strips=strips,
        parameters={"runs": {run.name: each for run, each in facts.items()}, **(parameters or {})},
        commands=[*commands, "# or one by one:", *repeated] if commands else repeated,
    )


def _agreed(values: Sequence[float | None]) -> float | None:
    """Return what all runs say, if they agree."""
    return values[0] if len(set(values)) == 1 else None


def _reward_notes(runs: Sequence[LabelledEpisodes]) -> list[str]:
    counts = {_HINDSIGHT: sum(run.labelled for run in runs), _NO_RETURN: sum(run.unknown for run in runs)}
    return [sentence.format(count) for sentence, count in counts.items() if count]


def tell_story(episodes: Sequence[Episode], *, imported: bool = False) -> str:
    """Return in a few sentences who acted in these episodes: what they show, and no more."""
    routine = "A scripted routine was recorded" if not imported else "A routine's episodes were imported"
    words = {
        Phase.LOGGING_POLICY: f"{routine}: {{}} episodes.",
        Phase.SHADOW: "In {} episodes the routine acted alone, while an augmentor was asked and recorded.",
        Phase.LIFT_COLLECTION: "{} episodes were collected with LIFT: {} acted now and then instead of the routine.",
        Phase.ASSIST: "In {} episodes {} acted first, with the routine behind it, which finished {}.",
        Phase.LEARNED_POLICY: "In {} episodes {} acted alone.",
    }
    told = []
    for phase, items in split_phases(episodes).items():
        trained = any(step.model_hash for episode in items for step in episode.steps)
        kinds = ("a trained augmentor", "an untrained augmentor")
        if phase in (Phase.ASSIST, Phase.LEARNED_POLICY):
            kinds = ("a learned policy", "a policy that was not trained")
        finished = sum(map(finished_by_routine, items))
        told.append(words[phase].format(len(items), kinds[0] if trained else kinds[1], finished))
    return " ".join(told)


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


def render_episode(scenario: Scenario, episode: Episode, count: int = 8, size: int = 224) -> Strip:
    """Return evenly spread pictures of an episode: its seed and actions repeat it exactly in the simulator."""
    with closing(scenario.make_problem(render_size=size)) as problem:
        seen = [problem.reset(episode.seed), *(problem.step(step.action) for step in episode.steps)]
    pictures = {step: observed.image for step, observed in enumerate(seen) if observed.image is not None}
    return make_strip(Phase.LEARNED_POLICY, episode, pictures, count, rendered=True)


def text_table(episodes: Sequence[Episode], unit: str = "") -> str:
    """Return the result as a table for a terminal."""
    return format_table(_header(unit), _result(episodes))


def write_report(content: ReportContent, path: Path) -> None:
    """Write the page; it needs no network and no further files."""
    title = html.escape(content.title)
    commands = html.escape("\n".join(content.commands))
    parameters = html.escape(json.dumps(content.parameters, indent=2, sort_keys=True, default=str))
    scores = [
        (phase.value, _number(score.trajectory_quality, 3), _number(score.coverage, 3), score.pairs)
        for phase, score in content.scores.items()
    ]
    page = [
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}</title><style>{STYLE}</style></head>\n<body>",
        f"<h1>{title}</h1><p class=lead>{html.escape(content.lead)}</p>",
        _table("result", _header(content.units.length), _result(content.episodes)),
        *(f"<p class=lead>{html.escape(note)}</p>" for note in content.notes),
        *map(_section, _drawings(content)),
    ]
    if scores:
        page.append(
            f"<h2>Dataset scores</h2>{_table('scores', _SCORES_HEADER, scores)}<p class=lead>{_SCORES_NOTE}</p>"
        )
    if content.guard:
        page.append(f"<h2>Guard</h2><p>{_GUARD_NOTE}</p>{_table('guard', _GUARD_HEADER, _guard(content.guard))}")
    if content.predictions:
        page.append(f"<h2>Predicted from the bags alone</h2>{_table('predictions', _PREDICTIONS, content.predictions)}")
    page += [
        f"<h2>How to repeat it</h2><pre>{commands}</pre>",
        f"<h2>Every parameter and seed</h2><pre id=parameters>{parameters}</pre>",
        "</body></html>\n",
    ]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(page), encoding="utf-8")
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}; choose a place you may write to") from error


def _guard(changes: Sequence[Change]) -> list[tuple[object, ...]]:
    return [(change.episode, f"{change.p:g}", change.budget, change.why) for change in changes]


def _header(unit: str) -> tuple[str, ...]:
    return ("who acts", "episodes", "steps", "success", with_unit("return", unit))


def _result(episodes: Sequence[Episode]) -> list[Sequence[str]]:
    """Return one row per phase that has episodes, in the order of the method."""
    phases = [summarise_run(phase.value, items) for phase, items in split_phases(episodes).items()]
    return [
        (p.run, str(p.episodes), f"{p.mean_steps:.1f}", f"{p.success:.0%}", _number(p.mean_return, 2)) for p in phases
    ]


def _number(value: float, digits: int) -> str:
    return f"{value:.{digits}f}" if math.isfinite(value) else "–"


def _table(name: str, header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    head = "".join(f"<th>{entry}</th>" for entry in header)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(str(entry))}</td>" for entry in row) + "</tr>" for row in rows)
    return f"<table id={name}><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _drawings(content: ReportContent) -> Iterator[Drawing]:
    """Yield the figures, or why there is none."""
    phases = split_phases(content.episodes)
    yield convergence(phases, content.threshold, content.units.length)
    yield trajectories(phases, content.units)
    yield steps_per_episode(phases)
    if Phase.LIFT_COLLECTION in phases:
        yield augmentations(phases[Phase.LIFT_COLLECTION])
    for strip in content.strips:
        yield frame_strip(strip, content.units.length)


def _section(drawing: Drawing) -> str:
    """Return a figure for light and for dark pages with its caption, or the caption alone."""
    title, caption = html.escape(drawing.title), html.escape(drawing.caption)
    if drawing.draw is None:
        return f"<h2>{title}</h2><p class=lead>{caption}</p>"
    with theme(dark=False):
        light = data_uri(drawing.draw())
    with theme(dark=True):
        dark = data_uri(drawing.draw())
    return (
        f'<h2>{title}</h2><figure><picture><source media="(prefers-color-scheme: dark)" srcset="{dark}">'
        f'<img alt="{title}" src="{light}"></picture><figcaption>{caption}</figcaption></figure>'
    )


def data_uri(figure: Any) -> str:
    """Render a figure as a PNG data URI."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()
