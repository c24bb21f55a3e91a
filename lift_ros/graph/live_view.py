"""The live terminal view of a run: what the monitor reports, as a few lines of text."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields
from typing import TYPE_CHECKING, Any, TextIO

from lift_ros.console import can_redraw

if TYPE_CHECKING:
    from rich.live import Live

UP = "is up"  # how a node's line ends that says that it is ready to take part
_BARS = "▁▂▃▄▅▆▇█"


def sparkline(values: list[float], width: int = 32) -> str:
    """Draw the last `width` values as bars between their smallest and largest."""
    shown = [value for value in values[-width:] if value == value]
    if not shown:
        return ""
    low, high = min(shown), max(shown)
    span = high - low or 1.0
    return "".join(_BARS[min(7, int(8 * (value - low) / span))] for value in shown)


@dataclass
class RunStatus:
    """What the monitor knows of a run; every field is optional in its reports."""

    episode: int = 0
    step: int = 0
    episodes_done: int = 0  # in the run
    episodes_seen: int = 0  # of these since the monitor listens
    episodes_reached: int = 0
    steps_done: int = 0
    augmented_steps: int = 0
    steps_per_second: float = 0.0
    mean_steps: float = float("nan")
    distances: list[float] = field(default_factory=list)
    model: str = ""
    training: str = ""
    guard: str = ""  # p and budget that it allows, and why
    trouble: str = ""

    @classmethod
    def from_json(cls, line: str) -> RunStatus | None:
        """Parse one line of the monitor; None for lines that are not reports."""
        try:
            values: Any = json.loads(line)
        except ValueError:
            return None
        if not isinstance(values, dict):
            return None
        known = {item.name for item in fields(cls)}
        return cls(**{key: value for key, value in values.items() if key in known})


def render(status: RunStatus, episodes_wanted: int | None, elapsed_s: float) -> str:
    """Return the view as text, one fact per line."""
    of = f" of {episodes_wanted}" if episodes_wanted else ""
    success = f"{status.episodes_reached / status.episodes_seen:.0%}" if status.episodes_seen else "–"
    share = f"{status.augmented_steps / status.steps_done:.0%}" if status.steps_done else "–"
    mean = f"{status.mean_steps:.1f}" if status.mean_steps == status.mean_steps else "–"
    left = ""
    if episodes_wanted and status.episodes_seen:
        remaining = max(0, episodes_wanted - status.episodes_done) * elapsed_s / status.episodes_seen
        left = f"about {remaining:.0f} s left"
    lines = [
        f"episodes {status.episodes_done}{of}   success {success}   steps per episode {mean}   {left}",
        f"episode {status.episode}, step {status.step}   {status.steps_per_second:.0f} steps/s   augmented {share}",
    ]
    if status.distances:
        lines.append(f"distance {status.distances[-1]:.4f}  {sparkline(status.distances)}")
    if status.training or status.model:
        model = f"model {status.model[:8]}" if status.model else "no model yet"
        lines.append(f"{model}   {status.training}".rstrip())
    if status.guard:
        lines.append(f"guard {status.guard}")
    if status.trouble:
        lines.append(f"! {status.trouble}")
    return "\n".join(lines)


def render_start(up: Sequence[str], starting: Sequence[str], elapsed_s: float) -> str:
    """Return how far the start of a graph is: processes that load Python and ROS take their time."""
    if missing := [name for name in starting if name not in up]:
        return f"starting: {len(up)} of {len(starting)} nodes are up after {elapsed_s:.0f} s, not {', '.join(missing)}"
    return f"all {len(starting)} nodes are up after {elapsed_s:.0f} s; they look for each other before the first step"


@dataclass(eq=False)
class LiveView:
    """Keeps the view at the bottom of a terminal with logs scrolling above; elsewhere prints one line now and then.

    Until the first step it shows which of the nodes in `starting` are up.
    """

    episodes_wanted: int | None = None
    _: KW_ONLY
    starting: Sequence[str] = ()
    stream: TextIO = field(default_factory=lambda: sys.stdout)
    plain_interval_s: float = 5.0
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self._live = _make_live(self.stream) if can_redraw(self.stream) else None
        self._began = self.clock()
        self._printed_at = float("-inf")
        self._up: list[str] = []
        self.status = RunStatus()
        self.reader_gone = False  # nobody reads what is printed any more

    def log(self, line: str) -> None:
        """Print a log line above the view."""
        if self._live is None:
            self._print(line)
        else:
            self._live.console.out(line, highlight=False)

    def node_up(self, name: str) -> None:
        """Note that a node is ready."""
        if name in self.starting and name not in self._up:
            self._up.append(name)
            if len(self._up) == len(self.starting):
                self._printed_at = float("-inf")

    def update(self, status: RunStatus) -> None:
        """Show a new status."""
        self.status = status
        self.refresh()

    def refresh(self) -> None:
        """Show what is known, on a terminal at once, elsewhere when it is time for a line."""
        if self._live is not None:
            self._live.start()
            self._live.update(self._text(), refresh=True)
        elif self.clock() - self._printed_at >= self.plain_interval_s:
            self._printed_at = self.clock()
            self._print_line()

    def close(self) -> None:
        """Leave the last view standing."""
        if self._live is not None:
            self._live.stop()
        else:
            self._print_line()

    def _text(self) -> str:
        elapsed = self.clock() - self._began
        if not self.starting or self.status.steps_done or self.status.episodes_seen:
            return render(self.status, self.episodes_wanted, elapsed)
        trouble = f"\n! {self.status.trouble}" if self.status.trouble else ""
        return render_start(self._up, self.starting, elapsed) + trouble

    def _print_line(self) -> None:
        self._print(self._text().replace("\n", "   "))

    def _print(self, line: str) -> None:
        if self.reader_gone:
            return
        try:
            print(line, file=self.stream, flush=True)
        except BrokenPipeError:
            self.reader_gone = True


def _make_live(stream: TextIO) -> Live:
    """Return what redraws in place; loaded here, since nodes know the status but show nothing."""
    from rich.console import Console
    from rich.live import Live

    console = Console(file=stream, markup=False, highlight=False)
    return Live(console=console, auto_refresh=False, redirect_stdout=False, redirect_stderr=False)
