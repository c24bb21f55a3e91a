"""How commands speak: to people in tables of plain text and errors of one sentence, to programs in JSON values.

Rich is loaded where something is drawn: who only wants a number in words, as the trainer's process does, waits less.
"""

from __future__ import annotations

import io
import math
import os
import shutil
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import asdict
from operator import attrgetter
from typing import Any, Literal, TextIO

PLAIN_WIDTH = 80  # of what is written into files and pipes
LONGEST_WHOLE_WORD = 20  # longer ones, mostly paths, may be broken
_GAP = 2  # spaces between two columns
# Eight rows of left, fill, divider and right; only the third, below the header, has anything to draw.
_RULE_BELOW_HEADER = "    \n    \n -  \n    \n    \n    \n    \n    \n"


def shown(value: object, digits: int = 3) -> str:
    """Return a table's entry; what is unknown is a dash."""
    if not isinstance(value, float):
        return str(value)
    if not math.isfinite(value):
        return "–"
    value += 0.0  # no minus before 0
    return f"{value:.0f}" if abs(value) >= 10**digits else f"{value:.{digits}g}"


def output_width() -> int:
    """Return how many characters a line may have: the terminal's, or those of a plain page elsewhere."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else PLAIN_WIDTH


def format_table(header: Sequence[str], rows: Sequence[Sequence[object]], *, width: int | None = None) -> str:
    """Return a table as plain text: numbers to the right, words to the left.

    Where it is wider than `width` (default: that of the output), headers and phrases are folded, numbers never; where
    that is not enough, a table of few rows is turned upright, and the columns of a long one go into two, one below the
    other, each with the first column.
    """
    from rich.box import Box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    cells = [[shown(entry) for entry in row] for row in rows]
    columns = list(zip(header, *cells, strict=True))
    widths = [max(map(len, column)) for column in columns]
    body = [max(map(len, column[1:]), default=0) for column in columns]
    least = [max(map(_unbreakable, " ".join(column).split() or [""])) for column in columns]
    room = (output_width() if width is None else width) - _GAP * (len(header) - 1)
    if sum(least) > room and 0 < len(rows) < len(header) - 1:
        return format_table(columns[0], columns[1:], width=width)
    if sum(least) > room and len(header) > 2:
        fitting = [k for k in range(3, len(header)) if sum(least[:k]) <= room + _GAP * (len(header) - k)]
        first = max(fitting, default=2)
        parts = [list(range(first)), [0, *range(first, len(header))]]
        tables = [([header[k] for k in part], [[row[k] for k in part] for row in cells]) for part in parts]
        return "\n\n".join(format_table(*table, width=width) for table in tables)
    while sum(widths) > room and (wide := [k for k, narrow in enumerate(least) if widths[k] > narrow]):
        # Headers are folded before entries, and what is widest first.
        widths[max(wide, key=lambda k: (widths[k] > body[k], widths[k]))] -= 1
    rule = Box(_RULE_BELOW_HEADER, ascii=True)
    table = Table(box=rule, show_edge=False, pad_edge=False, padding=(0, _GAP - 1, 0, 0), header_style="")
    for column, wanted in zip(columns, widths, strict=True):
        justify: Literal["left", "right"] = "left" if any(map(_is_word, column[1:])) else "right"
        table.add_column(Text(column[0]), justify=justify, overflow="fold", width=wanted)
    for row in cells:
        table.add_row(*map(Text, row))
    page = io.StringIO()
    Console(file=page, width=sum(widths) + _GAP * len(widths), color_system=None).print(table)
    return "\n".join(line.rstrip() for line in page.getvalue().splitlines())


def attribute_table(columns: str, entries: Sequence[object]) -> str:
    """Return a table with a row per entry; `columns` are attributes and their headings: "run, rate as steps/s"."""
    pairs = [column.partition(" as ")[::2] for column in columns.split(", ")]
    header = [heading or attribute for attribute, heading in pairs]
    return format_table(header, [[attrgetter(attribute)(entry) for attribute, _ in pairs] for entry in entries])


def for_programs(value: Any) -> Any:
    """Return a summary as plain JSON values; what is unknown becomes null."""
    if hasattr(value, "__dataclass_fields__"):
        return for_programs(asdict(value))
    if isinstance(value, dict):
        return {str(key): for_programs(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [for_programs(entry) for entry in value]
    if hasattr(value, "tolist"):  # arrays and numbers of numpy
        return for_programs(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _is_word(entry: str) -> bool:
    return bool(entry) and not entry[0].isdigit() and entry[0] not in "-–"


def _unbreakable(word: str) -> int:
    return min(len(word), LONGEST_WHOLE_WORD) if _is_word(word) else len(word)


def fold(line: str, indent: str) -> str:
    """Return a line with what is too long for the output below it, indented; words and paths stay whole."""
    return textwrap.fill(line, output_width(), subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def can_redraw(stream: TextIO) -> bool:
    """Whether what was written to a stream can be drawn over: it is a terminal, and none that only takes lines."""
    return stream.isatty() and os.environ.get("TERM", "").lower() not in ("dumb", "unknown")


def print_error(command: str, error: object) -> None:
    """Print one sentence about what went wrong to stderr, where a terminal shows the command in red."""
    _print_sentence(f"lift {command}".rstrip() + ":", "bold red", error)


def print_warning(command: str, warning: object) -> None:
    """Print one sentence about what is likely to go wrong to stderr, where a terminal shows the command in yellow."""
    _print_sentence(f"lift {command}".rstrip() + ": warning:", "bold yellow", warning)


def _print_sentence(speaker: str, style: str, sentence: object) -> None:
    from rich.console import Console
    from rich.text import Text

    text = Text.assemble((speaker, style), f" {sentence}")
    Console(stderr=True, soft_wrap=True, highlight=False).print(text)
