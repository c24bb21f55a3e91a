"""One HTML page per study, and its tables between two marks of a markdown file."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from pathlib import Path

from lift_ros.errors import UserError
from lift_ros.evaluation.plots import save_figure, theme
from lift_ros.evaluation.report import STYLE, data_uri
from lift_ros.studies.cell import Cell, Result
from lift_ros.studies.figures import draw_all
from lift_ros.studies.running import labelled
from lift_ros.studies.store import write_whole
from lift_ros.studies.study import Study
from lift_ros.studies.tables import page_text

_BOLD = re.compile(r"\*\*(.+?)\*\*")


def write_page(study: Study, found: Sequence[tuple[Cell, Result]], folder: Path) -> Path:
    """Write a study's page, its tables as markdown and its plots as files; return the page."""
    text = page_text(study, found)
    write_whole(folder / f"{study.name}.md", text + "\n")
    rows = labelled(found)
    with theme(dark=False):
        figures = draw_all(study.plots, rows, study.name)
        for number, figure in enumerate(figures):
            save_figure(figure, folder / f"{study.name}-{number}.png")
        pictures = [
            f'<figure><img alt="{html.escape(study.name)}" src="{data_uri(each)}"></figure>' for each in figures
        ]
    body = f"<h1>{html.escape(study.name)}</h1>{to_html(text)}{''.join(pictures)}"
    page = folder / f"{study.name}.html"
    title = f"<title>Study {html.escape(study.name)}</title>"
    write_whole(page, f"<!doctype html><html lang=en><meta charset=utf-8>{title}<style>{STYLE}</style>{body}</html>\n")
    return page


def to_html(text: str) -> str:
    """Return our own markdown, of paragraphs and tables, as HTML."""
    return "".join(_table(part) if part.startswith("|") else f"<p>{_inline(part)}</p>" for part in text.split("\n\n"))


def _table(text: str) -> str:
    rows = [[entry.strip() for entry in line.strip("|").split("|")] for line in text.splitlines()]
    head = "".join(f"<th>{_inline(entry)}</th>" for entry in rows[0])
    body = "".join(f"<tr>{''.join(f'<td>{_inline(entry)}</td>' for entry in row)}</tr>" for row in rows[2:])
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _inline(text: str) -> str:
    return _BOLD.sub(r"<b>\1</b>", html.escape(text))


def write_section(path: Path, name: str, text: str) -> None:
    """Replace what stands between `<!-- begin name -->` and `<!-- end name -->` in a markdown file."""
    begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    try:
        content = path.read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror}); give a markdown file") from error
    if content.count(begin) != 1 or content.count(end) != 1 or content.index(begin) > content.index(end):
        raise UserError(f"{path} must hold the line {begin!r} once and after it {end!r} once; add both lines")
    before, rest = content.split(begin)
    write_whole(path, f"{before}{begin}\n{text.strip()}\n{end}{rest.split(end)[1]}")
