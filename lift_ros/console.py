"""How commands speak to people: tables of plain text, and errors in one sentence."""

from __future__ import annotations

import io
import math
import shutil
import sys
import textwrap
from collections.abc import Sequence

from rich.box import Box
from rich.console import Console
from rich.table import Table
from rich.text import Text

PLAIN_WIDTH = 80  # of what is written into files and pipes
NARROWEST_TEXT = 12  # columns of words are folded, but not further than this
_GAP = 2  # spaces between two columns
# Eight rows of left, fill, divider and right; only the third, below the header, has anything to draw.
_RULE_BELOW_HEADER = Box("    \n    \n -  \n    \n    \n    \n    \n    \n", ascii=True)


def shown(value: object, digits: int = 3) -> str:
    """Return a table's entry; what is unknown is a dash."""
    if not isinstance(value, float):
        return str(value)
    if not math.isfinite(value):
        return "–"
    return f"{value:.0f}" if abs(value) >= 10**digits else f"{value:.{digits}g}"


def output_width() -> int:
    """Return how many characters a line may have: the terminal's, or those of a plain page elsewhere."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else PLAIN_WIDTH


def format_table(header: Sequence[str], rows: Sequence[Sequence[object]], *, width: int | None = None) -> str:
    """Return a table as plain text: numbers to the right, words to the left.

    Where it is wider than `width` (default: that of the output), headers and words are folded; numbers never are.
    """
    cells = [[shown(entry) for entry in row] for row in rows]
    columns = list(zip(header, *cells, strict=True))
    of_words = [any(isinstance(row[column], str) for row in rows) for column in range(len(header))]
    natural = [max(map(len, column)) for column in columns]
    least = [
        min(wanted, NARROWEST_TEXT) if words else max(len(word) for entry in column for word in entry.split() or [""])
        for column, wanted, words in zip(columns, natural, of_words, strict=True)
    ]
    gaps = _GAP * (len(header) - 1)
    width = output_width() if width is None else width
    fits = sum(natural) + gaps <= width
    table = Table(box=_RULE_BELOW_HEADER, show_edge=False, pad_edge=False, padding=(0, _GAP - 1, 0, 0), header_style="")
    for title, words, narrow in zip(header, of_words, least, strict=True):
        table.add_column(
            Text(title),
            justify="left" if words else "right",
            overflow="fold",
            width=None if fits or words else narrow,
        )
    for row in cells:
        table.add_row(*map(Text, row))
    page = io.StringIO()
    Console(file=page, width=max(width, sum(least) + gaps), color_system=None).print(table)
    return "\n".join(line.rstrip() for line in page.getvalue().splitlines())


def fold(line: str, indent: str) -> str:
    """Return a line with what is too long for the output below it, indented; words and paths stay whole."""
    width = output_width()
    return textwrap.fill(line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def print_error(command: str, error: object) -> None:
    """Print one sentence about what went wrong to stderr, where a terminal shows the command in red."""
    sentence = Text.assemble((f"lift {command}:", "bold red"), f" {error}")
    Console(stderr=True, soft_wrap=True, highlight=False).print(sentence)
