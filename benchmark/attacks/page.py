"""What came of attacks, as a table in docs/results.md: one row per kind, each replaced when it is measured anew."""

from __future__ import annotations

from pathlib import Path

from benchmark.timing import RESULTS, markdown_table, replace_section

SECTION = "attacks"
TITLES = ("attack", "cases", "seed", "what came of them", "bad")


def note(kind: str, cases: int, seed: int, outcome: str, bad: int, page: Path = RESULTS) -> None:
    """Put a row on the page."""
    rows = {row[0]: row for row in _rows(page)}
    rows[kind] = (kind, str(cases), str(seed), outcome, str(bad))
    replace_section(page, SECTION, markdown_table(TITLES, list(rows.values())))


def _rows(page: Path) -> list[tuple[str, ...]]:
    """Return the rows that are there."""
    text = page.read_text(encoding="utf-8").split(f"<!-- begin {SECTION} -->")[-1].split(f"<!-- end {SECTION} -->")[0]
    lines = [line for line in text.splitlines() if line.startswith("|")][2:]
    return [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in lines]
