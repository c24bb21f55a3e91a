"""The table of episodes as all pages show it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nicegui import ui

from lift_ros.collection.records import Outcome
from lift_ros.page.live import EpisodeRow

_TEXTS = ("outcome", "who")
COLUMNS = {
    "index": "episode",
    "outcome": "outcome",
    "who": "who",
    "steps": "steps",
    "augmented": "augmented",
    "seconds": "time [s]",
}
_SLOT = """
<q-td :props="props"><span :class="props.row.reached ? 'lift-good' : 'lift-bad'">{{ props.value }}</span></q-td>
"""


def table_row(row: EpisodeRow) -> dict[str, object]:
    """Return an episode as a row of the table."""
    words = row.outcome.name.lower().replace("_", " ")
    return {
        "index": row.index,
        "outcome": f"{words}: {row.reason}" if row.reason else words,
        "reached": row.outcome is Outcome.REACHED,
        "who": row.phase.value,
        "steps": row.steps,
        "augmented": row.augmentations,
        "seconds": f"{row.seconds:.2f}",
    }


def episode_table(rows: Sequence[EpisodeRow] = (), *, sortable: bool = False, **options: Any) -> ui.table:
    """Add the table."""
    columns = [
        {"name": name, "label": label, "field": name, "align": "left" if name in _TEXTS else "right"}
        | ({"sortable": True} if sortable else {})
        for name, label in COLUMNS.items()
    ]
    table = ui.table(columns=columns, rows=[table_row(row) for row in rows], row_key="index", **options)
    table.classes("lift-table").props("dense flat")
    table.add_slot("body-cell-outcome", _SLOT)
    return table
