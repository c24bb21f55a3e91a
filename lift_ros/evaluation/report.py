"""The self-contained HTML page of a run: what was done, how well it went and how to repeat it."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lift_ros.collection.records import Episode
from lift_ros.console import format_table
from lift_ros.evaluation import report_figures
from lift_ros.evaluation.frames import Frame
from lift_ros.evaluation.phases import Phase, PhaseSummary, split_phases, summarise
from lift_ros.evaluation.scores import Scores

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


_HEADER = ("who acts", "episodes", "steps to goal", "success", "return")
ALONE = (Phase.LOGGING_POLICY, Phase.SHADOW)  # phases in which the logging policy alone moves the plant


@dataclass(frozen=True)
class ReportContent:
    """All that the page shows; nothing is read while it is written."""

    title: str
    episodes: Sequence[Episode]
    threshold: float
    scores: Mapping[Phase, Scores] = field(default_factory=dict)  # of each phase, as a dataset
    frames: Sequence[Frame] = ()
    parameters: Mapping[str, Any] = field(default_factory=dict)
    commands: Sequence[str] = ()  # how to repeat it


def phase_summaries(episodes: Sequence[Episode]) -> list[PhaseSummary]:
    """Return one summary per phase that has episodes, in the order of the method."""
    return [summarise(phase, items) for phase, items in split_phases(episodes).items()]


def text_table(summaries: Sequence[PhaseSummary]) -> str:
    """Return the result as a table for a terminal."""
    return format_table(_HEADER, [_row(summary) for summary in summaries])


def write_report(content: ReportContent, path: Path) -> None:
    """Write the page; it needs no network and no further files."""
    phases = split_phases(content.episodes)
    parts = [
        f"<h1>{html.escape(content.title)}</h1>",
        "<p class=lead>A scripted routine was recorded, an augmentor was trained on shortcuts of its trajectories, "
        "better data were collected with both, and a policy was trained from the bags alone.</p>",
        _result_table(phase_summaries(content.episodes)),
        *_figure_sections(content, phases),
        _scores_section(content.scores),
        _details_section(content),
    ]
    page = (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(content.title)}</title><style>{_STYLE}</style></head>\n<body>\n"
        + "\n".join(parts)
        + "\n</body></html>\n"
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page, encoding="utf-8")


def _row(summary: PhaseSummary) -> tuple[str, str, str, str, str]:
    return (
        summary.phase.value,
        str(summary.episodes),
        f"{summary.mean_steps:.1f}",
        f"{summary.success:.0%}",
        f"{summary.mean_return:.2f}",
    )


def _result_table(summaries: Sequence[PhaseSummary]) -> str:
    return _table("result", _HEADER, [_row(summary) for summary in summaries])


def _table(name: str, header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    head = "".join(f"<th>{entry}</th>" for entry in header)
    body = "".join("<tr>" + "".join(f"<td>{entry}</td>" for entry in row) + "</tr>" for row in rows)
    return f"<table id={name}><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _figure_sections(content: ReportContent, phases: Mapping[Phase, Sequence[Episode]]) -> list[str]:
    learned = max(
        (len(item.steps) for phase, items in phases.items() if phase not in ALONE for item in items),
        default=max((len(item.steps) for item in content.episodes), default=1),
    )
    shown_steps = max(30, min(200, 2 * learned))
    sections = [
        _section(
            "Convergence",
            report_figures.convergence(phases, content.threshold, shown_steps),
            "Median distance to the goal over steps, with quartiles.",
        )
    ]
    paths = report_figures.trajectories(phases)
    if paths is not None:
        sections.append(
            _section("Trajectories", paths, "Steps of the routine are blue, steps of the learned policy are red.")
        )
    sections.append(
        _section("Steps per episode", report_figures.steps_per_episode(phases), "In the order in which they were made.")
    )
    if Phase.LIFT_COLLECTION in phases:
        sections.append(
            _section(
                "Augmentations",
                report_figures.augmentations(phases[Phase.LIFT_COLLECTION]),
                "How often the augmentor acted while collecting, and what became of its proposals.",
            )
        )
    if content.frames:
        strip = report_figures.frame_strip(
            [frame.picture for frame in content.frames], [f"step {frame.step}" for frame in content.frames]
        )
        sections.append(_section("The learned policy at work", strip, "One evaluation episode, rendered."))
    return sections


def _section(title: str, figure: Any, caption: str) -> str:
    return (
        f'<h2>{title}</h2><figure><img alt="{html.escape(caption)}" src="{report_figures.data_uri(figure)}">'
        f"<figcaption>{html.escape(caption)}</figcaption></figure>"
    )


def _scores_section(scores: Mapping[Phase, Scores]) -> str:
    if not scores:
        return ""
    rows = [
        (phase.value, f"{score.trajectory_quality:.3f}", f"{score.coverage:.3f}", score.pairs)
        for phase, score in scores.items()
    ]
    header = ("data of", "trajectory quality", "state–action coverage", "pairs")
    return (
        f"<h2>Dataset scores</h2>{_table('scores', header, rows)}"
        "<p class=lead>Trajectory quality is 1 for the best return and 0 for the worst; coverage counts distinct "
        "state–action cells relative to the logging policy's data.</p>"
    )


def _details_section(content: ReportContent) -> str:
    commands = html.escape("\n".join(content.commands))
    parameters = html.escape(json.dumps(content.parameters, indent=2, sort_keys=True, default=str))
    return (
        f"<h2>How to repeat it</h2><pre>{commands}</pre>"
        f"<h2>Every parameter and seed</h2><pre id=parameters>{parameters}</pre>"
    )
