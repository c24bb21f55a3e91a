"""A graph that runs for an hour, to see whether memory, file handles or the time of a step grow.

`python -m benchmark.soak [--minutes 60] [--step-time 0.01]`; not part of `python -m benchmark`, as it takes its time.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchmark.timing import RESULTS, markdown_table, replace_section
from lift_ros.bags.reader import RunReader
from lift_ros.collection.interruption import stop_on_signals
from lift_ros.graph.run import meeting_settings, process_specs
from lift_ros.graph.supervisor import Supervisor
from lift_ros.graph.table import GraphOptions, graph_nodes

SETTLING_SHARE = 0.1  # of the run: interpreters and allocators reach their size


@dataclass
class Usage:
    """What one process held over the run, sample by sample."""

    memory_mib: list[float] = field(default_factory=list)
    handles: list[int] = field(default_factory=list)

    def sample(self, pid: int) -> None:
        status = Path(f"/proc/{pid}/status").read_text()
        resident = next(line for line in status.splitlines() if line.startswith("VmRSS"))
        self.memory_mib.append(int(resident.split()[1]) / 1024)
        self.handles.append(len(os.listdir(f"/proc/{pid}/fd")))


def growth(values: list[float]) -> tuple[float, float]:
    """Return the medians of the first and the last quarter after settling."""
    settled = values[int(len(values) * SETTLING_SHARE) :]
    quarter = max(1, len(settled) // 4)
    return float(np.median(settled[:quarter])), float(np.median(settled[-quarter:]))


def run_graph_for(
    minutes: float, step_time: float, folder: Path, interval: float
) -> tuple[dict[str, Usage], Path, dict[str, int]]:
    """Run a collecting graph, sampling its processes; return usage by node, the run and restarts."""
    run = folder / "run"
    options = GraphOptions(
        scenario="po-blend-d2",
        run=run,
        episodes=0,
        p=0.0,
        parameters={"positioning_simulator": {"step_time": step_time}, "recorder": {"episodes_per_file": 100}},
    )
    with meeting_settings(options.plant) as settings, stop_on_signals() as interrupted:
        specs = process_specs(graph_nodes(options), options.namespace, folder, settings)
        usage = {spec.name: Usage() for spec in specs}
        supervisor = Supervisor(specs, log=lambda _: None, colour=False)
        _sample(supervisor, usage, minutes, interval, interrupted)
    return usage, run, supervisor.restarts


def _sample(
    supervisor: Supervisor, usage: dict[str, Usage], minutes: float, interval: float, interrupted: Callable[[], bool]
) -> None:
    with supervisor:
        began = time.monotonic()
        while time.monotonic() - began < 60 * minutes and not interrupted():
            due = time.monotonic() + interval
            supervisor.run(lambda due=due: interrupted() or time.monotonic() >= due)
            for name, item in usage.items():
                item.sample(supervisor.pid(name))


def step_times(run: Path) -> tuple[np.ndarray, int]:
    """Return milliseconds between the steps of each episode in order, and the number of steps."""
    reader = RunReader(run)
    gaps, steps = [], 0
    for episode in reader:
        times = np.array([step.time_ns for step in episode.steps])
        gaps.append(np.diff(times) / 1e6)
        steps += len(times)
    return np.concatenate(gaps), steps


def summarise(
    usage: dict[str, Usage], gaps: np.ndarray, steps: int, minutes: float, step_time: float, restarts: int
) -> str:
    """Return the section of docs/results.md."""
    rows = []
    for name, item in usage.items():
        (memory_first, memory_last), (handles_first, handles_last) = growth(item.memory_mib), growth(item.handles)
        rows.append(
            (name, memory_first, memory_last, memory_last / memory_first, int(handles_first), int(handles_last))
        )
    header = ("node", "first quarter [MiB]", "last quarter [MiB]", "ratio", "handles first", "handles last")
    settled = gaps[int(gaps.size * SETTLING_SHARE) :]
    first, last = settled[: settled.size // 4], settled[-(settled.size // 4) :]
    times = [
        (label, *np.percentile(part, [50, 99, 99.9]), part.max()) for label, part in (("first", first), ("last", last))
    ]
    return (
        f"One graph collecting po-blend-d2 for {minutes:g} minutes, its plant taking {1e3 * step_time:g} ms per move: "
        f"{steps} steps, every one recorded, {restarts} restarts of nodes. Medians of the first and the last quarter "
        "after a tenth for settling.\n\n"
        + markdown_table(header, rows)
        + "\n\nTime from step to step:\n\n"
        + markdown_table(("quarter", "p50 [ms]", "p99 [ms]", "p99.9 [ms]", "max [ms]"), times)
        + "\n"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--step-time", type=float, default=0.01)
    parser.add_argument("--interval", type=float, default=5.0, help="seconds between samples")
    parser.add_argument("--no-report", action="store_true", help="print only")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="lift-soak-") as place:
        measured, recorded, restarted = run_graph_for(
            arguments.minutes, arguments.step_time, Path(place), arguments.interval
        )
        intervals, count = step_times(recorded)
    text = summarise(measured, intervals, count, arguments.minutes, arguments.step_time, sum(restarted.values()))
    print(text)
    if not arguments.no_report:
        replace_section(RESULTS, "soak", text)
