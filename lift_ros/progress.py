"""One progress display for every long job: a bar on a terminal, a line every few seconds elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, TextIO

from lift_ros.console import can_redraw

if TYPE_CHECKING:
    import rich.progress

REDRAW_SECONDS = 0.1
LINE_SECONDS = 5.0
BAR_WIDTH = 20


def format_seconds(seconds: float) -> str:
    """Return a duration as m:ss or h:mm:ss."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


@dataclass(eq=False)
class Progress:
    """Shows how far a job is, at which rate, and how long it will still take; writes to stderr."""

    total: int
    label: str
    unit: str = "steps"
    _: KW_ONLY
    enabled: bool = True
    stream: TextIO = field(default_factory=lambda: sys.stderr)
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self.done = 0
        self._note = ""
        self._bar = _make_bar(self.stream) if self.enabled and can_redraw(self.stream) else None

    def __enter__(self) -> Progress:
        self._started = self._shown = self.clock()
        if self._bar is not None:
            self._bar.add_task(self.text(), total=self.total)
            self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self.enabled:
            self._show()
        if self._bar is not None:
            self._bar.stop()

    def advance(self, amount: int = 1, note: str | None = None) -> None:
        """Count `amount` more as done; `note` is shown behind the numbers until the next one replaces it."""
        self.done += amount
        if note is not None:
            self._note = note
        pause = LINE_SECONDS if self._bar is None else REDRAW_SECONDS
        if self.enabled and self.clock() - self._shown >= pause:
            self._show()

    def text(self) -> str:
        """Return label, count, rate, time left (time taken once complete) and note as one line."""
        elapsed = self.clock() - self._started
        parts = [f"{self.label} {self.done}/{self.total} {self.unit}"]
        if self.done and elapsed > 0:
            parts.append(f"{self.done / elapsed:.3g} {self.unit}/s")
            left = elapsed / self.done * (self.total - self.done)
            parts.append(f"{format_seconds(left)} left" if self.done < self.total else f"in {format_seconds(elapsed)}")
        if self._note:
            parts.append(self._note)
        return ", ".join(parts)

    def _show(self) -> None:
        self._shown = self.clock()
        if self._bar is None:
            print(self.text(), file=self.stream, flush=True)
        else:
            self._bar.update(self._bar.task_ids[0], completed=self.done, description=self.text(), refresh=True)


def _make_bar(stream: TextIO) -> rich.progress.Progress:
    """Return rich's bar; it is drawn when told to, since a thread of its own would not survive forks."""
    # Loaded here, since nodes and pipes draw no bar and rich takes a while.
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn
    from rich.table import Column

    console = Console(file=stream)
    return Progress(
        BarColumn(min(BAR_WIDTH, console.width // 4)),
        TextColumn("{task.description}", markup=False, table_column=Column(overflow="fold")),  # goes on below
        console=console,
        auto_refresh=False,
        redirect_stdout=sys.stdout.isatty(),  # what goes into a pipe must not end on the terminal
    )
