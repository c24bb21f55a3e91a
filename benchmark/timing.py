"""Small helpers every benchmark shares: fair repeated timing, tables, and their place in docs/results.md."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

RESULTS = Path(__file__).parent.parent / "docs" / "results.md"


def interleaved(jobs: Mapping[str, Callable[[], object]], repeats: int = 5, warm_up: int = 1) -> dict[str, list[float]]:
    """Time every job `repeats` times in turns, so that a busy spell of the machine hits all of them alike."""
    for _ in range(warm_up):
        for job in jobs.values():
            job()
    seconds: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in range(repeats):
        for name, job in jobs.items():
            started = time.perf_counter()
            job()
            seconds[name].append(time.perf_counter() - started)
    return seconds


def medians(seconds: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """Return the median time of each job."""
    return {name: statistics.median(values) for name, values in seconds.items()}


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a markdown table; floats are shown with three significant digits."""
    lines = ["| " + " | ".join(header) + " |", "| " + " | ".join("---" for _ in header) + " |"]
    lines += ["| " + " | ".join(_cell(value) for value in row) + " |" for row in rows]
    return "\n".join(lines)


def ratio_table(seconds: Mapping[str, Sequence[float]], reference: str, work: float = 1.0, unit: str = "calls") -> str:
    """Return a table of rate (`work` units per job), median time and time relative to `reference`."""
    middle = medians(seconds)
    rows = [
        (name, work / middle[name], 1e3 * middle[name], 1e3 * min(values), middle[name] / middle[reference])
        for name, values in seconds.items()
    ]
    return markdown_table(("", f"{unit}/s", "median [ms]", "fastest [ms]", f"time / {reference}"), rows)


def replace_section(path: str | Path, name: str, text: str) -> None:
    """Replace what stands between `<!-- begin name -->` and `<!-- end name -->` in a file.

    Raises ValueError where the two marks are not there exactly once and in this order: results must not
    end up in a place nobody looks at.
    """
    path = Path(path)
    begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    content = path.read_text(encoding="utf-8")
    if content.count(begin) != 1 or content.count(end) != 1 or content.index(begin) > content.index(end):
        raise ValueError(f"{path} must hold the line {begin!r} once and after it {end!r} once; add both lines.")
    before, rest = content.split(begin)
    after = rest.split(end)[1]
    path.write_text(f"{before}{begin}\n{text.strip()}\n{end}{after}", encoding="utf-8")


def _cell(value: object) -> str:
    if not isinstance(value, float):
        return str(value)
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
