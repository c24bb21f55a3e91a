"""Runs as recordings of Rerun: paths, readings, decisions and pictures along the time in which they were recorded."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lift_ros.array_types import FloatArray
from lift_ros.bags.contents import seen_part
from lift_ros.bags.reader import RunReader
from lift_ros.collection.records import Episode, Source
from lift_ros.errors import UserError
from lift_ros.positioning.pictures import for_eyes

SUFFIX = ".rrd"
# Colours of who moved: the routine blue, the augmentor amber.
_COLOURS = {Source.LOGGING_POLICY: (59, 130, 246), Source.AUGMENTOR: (245, 158, 11)}


@dataclass(slots=True)
class RerunExport:
    """What was written."""

    episodes: int = 0
    steps: int = 0
    without_steps: int = 0


def export_rerun(runs: Sequence[Path], out: Path, *, skip_bad: bool = False) -> RerunExport:
    """Write runs as one recording, each run below a name of its own; one episode is in memory at a time.

    Its timelines are `time`, when a command was given, and `step`, which counts the steps of each run.
    """
    try:
        import rerun
    except ImportError as error:
        raise UserError(f"exporting needs Rerun: pip install 'lift_ros[rerun]' ({error})") from error
    if out.suffix != SUFFIX:
        raise UserError(f"--out {out} does not end with {SUFFIX}; Rerun knows its recordings by that ending")
    if out.exists():
        raise UserError(f"{out} exists already; choose another --out or remove it")
    readers = [RunReader(path, skip_bad=skip_bad) for path in runs]
    report = RerunExport()
    partial = out.with_name(f".{out.name}.partial")  # a recording that exists is a whole one
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with rerun.RecordingStream("lift_ros", recording_id=out.stem) as stream:
            stream.save(partial)
            for number, reader in enumerate(readers):
                _write_run(stream, reader, _name(runs, number), report)
            stream.flush()
            stream.disconnect()
        os.replace(partial, out)
    except OSError as error:
        raise UserError(f"{out} cannot be written: {error}") from error
    finally:
        partial.unlink(missing_ok=True)
    return report


def _name(runs: Sequence[Path], number: int) -> str:
    """Return what a run is called in the recording: its own name, and its number where that is not unique."""
    name = runs[number].name or "run"
    return name if [path.name for path in runs].count(name) == 1 else f"{name}_{number}"


def _write_run(stream: Any, reader: RunReader, name: str, report: RerunExport) -> None:
    first = 0
    for episode in map(seen_part, reader):
        if not episode.steps:
            report.without_steps += 1
            continue
        _write_episode(stream, episode, name, first)
        first += len(episode.steps)
        report.episodes += 1
        report.steps += len(episode.steps)


def _write_episode(stream: Any, episode: Episode, name: str, first: int) -> None:
    import rerun

    steps = episode.steps
    when = np.array([step.time_ns for step in steps], dtype="datetime64[ns]")
    numbers = np.arange(first, first + len(steps))

    def columns(entity: str, parts: Any) -> None:
        times = [rerun.TimeColumn("time", timestamp=when), rerun.TimeColumn("step", sequence=numbers)]
        stream.send_columns(f"{name}/{entity}", times, parts)

    def scalars(entity: str, values: Any) -> None:
        table = np.asarray(values, dtype=np.float64)
        if table.size and np.isfinite(table).any():
            columns(entity, rerun.Scalars.columns(scalars=table.ravel()).partition([table.shape[1]] * len(table)))

    scalars("observation", [step.observation for step in steps])
    scalars("action", [step.action for step in steps])
    for entity, values in (
        ("reward", [step.reward for step in steps]),
        ("switch/u", [step.draw for step in steps]),
        ("switch/p", [step.p for step in steps]),
        ("switch/augmentor_acts", [step.source is Source.AUGMENTOR for step in steps]),
        ("switch/rejection", [int(step.rejection) for step in steps]),
        ("episode", [step.episode for step in steps]),
    ):
        scalars(entity, [[value] for value in values])
    if steps[0].position.size:
        points = _in_space(np.vstack([step.position for step in steps]))
        colours = np.array([_COLOURS[step.source] for step in steps], dtype=np.uint8)
        columns("position", rerun.Points3D.columns(positions=points, colors=colours))
        ends = np.vstack([points, _in_space(episode.final_position[None])]) if episode.final_position.size else points
        stream.set_time("time", timestamp=when[0])
        stream.set_time("step", sequence=first)
        stream.log(f"{name}/path", rerun.LineStrips3D(np.stack([ends[:-1], ends[1:]], axis=1), colors=colours))
        if episode.goal.size:
            stream.log(f"{name}/goal", rerun.Points3D(_in_space(episode.goal[None]), labels=["goal"]))
    for place, step in enumerate(steps):
        if step.image is not None:
            stream.set_time("time", timestamp=when[place])
            stream.set_time("step", sequence=first + place)
            stream.log(f"{name}/image", rerun.Image(for_eyes(step.image)))


def _in_space(points: FloatArray) -> FloatArray:
    """Return points with three coordinates: the first axes, zeros where there are fewer."""
    return np.pad(points[:, :3], ((0, 0), (0, max(0, 3 - points.shape[1]))))
