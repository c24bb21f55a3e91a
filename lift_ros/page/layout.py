"""What all pages share to the eye: style, script, cards, light and dark."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import Any

from nicegui import ui

_FOLDER = Path(__file__).parent
STYLE = (_FOLDER / "page.css").read_text(encoding="utf-8")
SCRIPT = (_FOLDER / "page.js").read_text(encoding="utf-8")


def add_look() -> None:
    """Give the page that is being made the style and the script."""
    ui.add_css(STYLE)
    ui.add_body_html(f"<script>{SCRIPT}</script>")


def card(name: str, title: str) -> ui.element:
    """Return a titled part of the page, to be filled."""
    section = ui.element("section").classes(f"lift-card lift-{name}-card")
    with section:
        ui.label(title).classes("lift-heading").props("role=heading aria-level=2")
    return section


def add_theme_button() -> None:
    """Add the button that goes from what the browser prefers to light, to dark, and back."""
    theme = ui.dark_mode(None)
    order = {None: False, False: True, True: None}
    names = {None: "as the browser prefers", False: "light", True: "dark"}

    def change() -> None:
        theme.value = order[theme.value]
        ui.notify(names[theme.value], timeout=800)

    ui.button(icon="contrast", on_click=change).props('flat round dense id=theme aria-label="light or dark"')


def redraw(chart: ui.echart, options: dict[str, Any]) -> None:
    """Draw a chart anew."""
    chart.options.clear()
    chart.options.update(options)
    chart.update()


def html_table(
    head: Sequence[str], rows: Iterable[Sequence[str]], marks: Sequence[str] = (), *, numbers: bool = False
) -> str:
    """Return a small table; `marks` are classes of rows."""
    body = ""
    for place, row in enumerate(rows):
        mark = f" class={marks[place]}" if marks and marks[place] else ""
        body += f"<tr{mark}>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>"
    titles = "".join(f"<th>{escape(title)}</th>" for title in head)
    kind = "lift-small lift-numbers" if numbers else "lift-small"
    return f'<table class="{kind}"><tr>{titles}</tr>{body}</table>'
