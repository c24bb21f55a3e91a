"""What is stored of a study as markdown: tables of medians, quartiles, seeds and intervals, and the paper's claims."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from lift_ros.progress import format_seconds
from lift_ros.studies.cell import SEED_AXES, Cell, Result
from lift_ros.studies.claims import Finding, Verdict, matches
from lift_ros.studies.metrics import METRICS, OF_DATA, OF_POLICIES, Row, Summary, summarise
from lift_ros.studies.running import labelled
from lift_ros.studies.study import Study

_NOTHING = "–"
_MOST_DOTS = 60  # comparisons that are listed one by one


def page_text(study: Study, found: Sequence[tuple[Cell, Result]]) -> str:
    """Return everything but plots: how much was run, tables, claims."""
    parts = [_head(study, found)]
    rows = labelled(found)
    for table in study.tables:
        text = _table(table, rows)
        if text:
            parts += [f"**{table['title']}**" if table["title"] else "", text]
    if study.claims:
        parts.append(claims_text([claim.examine(rows) for claim in study.claims]))
    parts += study.notes
    return "\n\n".join(part for part in parts if part)


def _head(study: Study, found: Sequence[tuple[Cell, Result]]) -> str:
    """Return what the study is and how much of it was run."""
    place = f" ({study.paper})" if study.paper else ""
    unique = study.unique
    known = {cell.fingerprint: result for cell, result in found}
    done = [known[cell.fingerprint] for cell in unique if cell.fingerprint in known]
    hours = sum(float(result.made.get("seconds", 0)) for result in done)
    seeds = {axis: sorted({cell.labels[axis] for cell, _ in found if axis in cell.labels}) for axis in SEED_AXES}
    told = [f"{axis} seeds {', '.join(map(str, values))}" for axis, values in seeds.items() if values]
    count = f"{len(done)} of {len(unique)} cells are computed"
    if not done:
        return f"{study.description}{place} {count}."
    made = {str(sorted(result.made.get("versions", {}).items())) for result in done}
    mixed = f" They were made with {len(made)} different sets of versions." if len(made) > 1 else ""
    effort = f"{format_seconds(hours)} of workers in all, one core each"
    return f"{study.description}{place} {count}{' with ' if told else ''}{' and '.join(told)} ({effort}).{mixed}"


def _table(table: Mapping[str, Any], rows: Sequence[Row]) -> str:
    """Return one table; nothing where no cell belongs to it."""
    chosen = [row for row in rows if matches(row[0], table["where"])]
    column = table["columns"]
    axes = table["rows"] or [axis for axis in _varying(chosen) if axis != column]
    groups = _grouped(chosen, axes)
    if not groups:
        return ""
    if column is not None:
        return _pivot(groups, axes, column, table["value"])
    metrics = _known_metrics(chosen)
    if not metrics:
        return ""
    header = [*axes, "seeds", *(METRICS[name].title for name in metrics)]
    body = []
    for key, members in groups.items():
        summaries = [summarise(members, METRICS[name]) for name in metrics]
        seeds = max((each.cells for each in summaries if each is not None), default=0)
        body.append([*map(_label, key), str(seeds), *map(_full, summaries)])
    return f"{markdown(header, body)}\n\nMedians (success: means) [quartiles], and bootstrap intervals of 95 %."


def _pivot(groups: Mapping[tuple[Any, ...], Sequence[Row]], axes: Sequence[str], column: str, value: str) -> str:
    columns = list(dict.fromkeys(labels[column] for rows in groups.values() for labels, _ in rows if column in labels))
    body = []
    for key, members in groups.items():
        summaries = [
            summarise([row for row in members if row[0].get(column) == name], METRICS[value]) for name in columns
        ]
        seeds = sorted({each.cells for each in summaries if each is not None})
        count = f"{seeds[0]}" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}" if seeds else "0"
        body.append([*map(_label, key), *map(_short, summaries), count])
    header = [*axes, *map(_label, columns), "seeds"]
    return f"{markdown(header, body)}\n\n{METRICS[value].title}: median [quartiles] over contexts and seeds."


def claims_text(findings: Sequence[Finding]) -> str:
    """Return the paper's claims beside what was found, and the comparisons that differ."""
    body = [
        [finding.claim.says, finding.claim.where or _NOTHING, finding.text, finding.claim.why or _NOTHING]
        for finding in findings
    ]
    parts = [markdown(["the paper says", "where", "found", "why"], body)]
    for finding in findings:
        told = [
            each for each in finding.comparisons if finding.claim.only is not None or each.verdict is Verdict.DIFFERS
        ]
        if told:
            parts.append(_dots(finding, told))
    return "\n\n".join(parts)


def _dots(finding: Finding, told: Sequence[Any]) -> str:
    claim = finding.claim
    sides = [" ".join(map(_label, side.values())) for side in (claim.better, claim.than)]
    axes = list(dict.fromkeys(axis for each in told for axis in each.labels))
    body = [
        [
            *(_label(each.labels.get(axis, _NOTHING)) for axis in axes),
            "yes" if each.expected else "no",
            _short(each.better),
            _short(each.than),
            each.verdict.value,
        ]
        for each in told[:_MOST_DOTS]
    ]
    left = f"\n\n… and {len(told) - _MOST_DOTS} more." if len(told) > _MOST_DOTS else ""
    title = f"{claim.says} One by one, by {claim.metric.title}:"
    return f"{title}\n\n{markdown([*axes, 'expected', *sides, 'found'], body)}{left}"


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(entry.replace('|', '∣') for entry in line)} |" for line in lines)


def _varying(rows: Sequence[Row]) -> list[str]:
    """Return the axes that have more than one value, or the method alone; seeds are never among them."""
    values: dict[str, set[Any]] = {}
    for labels, _ in rows:
        for axis, value in labels.items():
            values.setdefault(axis, set()).add(value)
    found = [axis for axis, known in values.items() if len(known) > 1 and axis not in SEED_AXES]
    return found or [axis for axis in ("scenario", "method") if axis in values]


def _grouped(rows: Sequence[Row], axes: Sequence[str]) -> dict[tuple[Any, ...], list[Row]]:
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for labels, result in rows:
        groups.setdefault(tuple(labels.get(axis) for axis in axes), []).append((labels, result))
    return groups


def _known_metrics(rows: Sequence[Row]) -> list[str]:
    known = (name for name in (*OF_POLICIES, *OF_DATA))
    return [name for name in known if any(METRICS[name].values(result) is not None for _, result in rows)]


def _label(value: Any) -> str:
    if value is None:
        return _NOTHING
    return f"{value:g}" if isinstance(value, float) else str(value)


def _short(summary: Summary | None) -> str:
    return (
        _NOTHING if summary is None else f"{_number(summary.middle)} [{_number(summary.low)}, {_number(summary.high)}]"
    )


def _full(summary: Summary | None) -> str:
    if summary is None:
        return _NOTHING
    low, high = map(_number, summary.interval)
    return f"{_short(summary)}, {low} to {high}"


def _number(value: float) -> str:
    return "∞" if math.isinf(value) else f"{value:.3g}"
