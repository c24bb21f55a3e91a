"""Runs as datasets of LeRobot (format v3.0), written with pyarrow alone: LeRobot itself is not needed."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lift_ros.array_types import Picture
from lift_ros.bags.exporting.minari import IMAGE, VECTOR, measure, seen_by, usable_episodes
from lift_ros.bags.reader import RunReader
from lift_ros.collection.records import Episode, Outcome
from lift_ros.errors import UserError
from lift_ros.positioning.pictures import for_eyes

VERSION = "v3.0"
FPS = 10
STATE, PICTURE, ACTION = "observation.state", "observation.image", "action"
REWARD, DONE, SUCCESS = "next.reward", "next.done", "next.success"
_FILE_BYTES = 100 * 2**20  # as LeRobot's own files
_FILES_PER_CHUNK = 1000
_PLACE = "chunk-{chunk_index:03d}/file-{file_index:03d}.parquet"
_COUNTERS = ("frame_index", "episode_index", "index", "task_index")


@dataclass(slots=True)
class LeRobotExport:
    """What was written, and what was left out for which reason."""

    folder: Path
    episodes: int = 0
    steps: int = 0
    left_out: Counter[str] = field(default_factory=Counter)


class _Statistics:
    """Minimum, maximum, mean and deviation of each entry of a feature, taken in as it is written."""

    def __init__(self) -> None:
        self.count = 0
        self._low: Any = np.inf
        self._high: Any = -np.inf
        self._sum: Any = 0.0
        self._squares: Any = 0.0

    def add(self, values: npt.NDArray[Any]) -> None:
        rows = np.asarray(values, dtype=np.float64)
        self.count += len(rows)
        self._low = np.minimum(self._low, rows.min(axis=0))
        self._high = np.maximum(self._high, rows.max(axis=0))
        self._sum = self._sum + rows.sum(axis=0)
        self._squares = self._squares + (rows**2).sum(axis=0)

    def as_dict(self, shape: tuple[int, ...]) -> dict[str, Any]:
        mean = self._sum / self.count
        deviation = np.sqrt(np.maximum(self._squares / self.count - mean**2, 0.0))
        found = {"min": self._low, "max": self._high, "mean": mean, "std": deviation}
        return {name: np.reshape(value, shape).tolist() for name, value in found.items()} | {"count": [self.count]}


class _Files:
    """The data files: episodes one after the other, a new file where one is large enough."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._writer: Any = None
        self._written = 0
        self.number = 0

    @property
    def place(self) -> dict[str, int]:
        """Number of the chunk and of the file in it."""
        chunk, file = divmod(self.number, _FILES_PER_CHUNK)
        return {"chunk_index": chunk, "file_index": file}

    def write(self, table: Any) -> dict[str, int]:
        """Add an episode and return where it lies."""
        import pyarrow.parquet as parquet

        if self._writer is not None and self._written + table.nbytes > _FILE_BYTES:
            self.close()
            self.number += 1
        if self._writer is None:
            path = self._folder / _PLACE.format(**self.place)
            path.parent.mkdir(parents=True, exist_ok=True)
            self._writer, self._written = parquet.ParquetWriter(path, table.schema), 0
        self._writer.write_table(table)
        self._written += table.nbytes
        return self.place

    def close(self) -> None:
        """Complete the file under way."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None


def export_lerobot(
    runs: Sequence[Path], out: Path, *, kind: str = VECTOR, fps: int = FPS, skip_bad: bool = False
) -> LeRobotExport:
    """Write runs as one dataset in the folder `out`; one episode is in memory at a time.

    `fps` is what LeRobot is told: its frames are evenly spaced in time, while steps are as long as they are. Vectors
    become 32-bit floats and pictures RGB, as its policies take them; steps carry rewards, measured or in hindsight.
    """
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise UserError(f"exporting needs pyarrow: pip install 'lift_ros[export]' ({error})") from error
    if out.exists():
        raise UserError(f"{out} exists already; choose another --out or remove it")
    readers = [RunReader(path, skip_bad=skip_bad) for path in runs]
    sizes, action_size, _ = measure(usable_episodes(readers, Counter()), kind)
    report = LeRobotExport(out)
    partial = out.with_name(f".{out.name}.partial")  # a dataset that exists is a whole one
    shutil.rmtree(partial, ignore_errors=True)
    try:
        partial.mkdir(parents=True)
        task = ", ".join(sorted({str(reader.facts.get("scenario") or reader.path.name) for reader in readers}))
        _write(partial, usable_episodes(readers, report.left_out), kind, fps, f"position {task}", report)
        features = _features({name: shape for name, (shape, _) in sizes.items()}, action_size)
        _write_info(partial, features, report, fps, task)
        partial.rename(out)
    except OSError as error:
        raise UserError(f"{out} cannot be written: {error}") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return report


def _write(folder: Path, episodes: Iterator[Episode], kind: str, fps: int, task: str, report: LeRobotExport) -> None:
    """Write data, the list of episodes, tasks and statistics."""
    import pyarrow
    import pyarrow.parquet as parquet

    files, statistics, rows = _Files(folder / "data"), dict[str, _Statistics](), []
    try:
        for episode in episodes:
            columns = episode_columns(episode, kind, number=report.episodes, first=report.steps, fps=fps)
            for name, values in columns.items():
                statistics.setdefault(name, _Statistics()).add(_pixels(values) if name == PICTURE else values)
            place = files.write(_table(columns))
            begin, report.steps = report.steps, report.steps + len(episode.steps)
            rows.append(
                {
                    "episode_index": report.episodes,
                    "tasks": [task],
                    "length": len(episode.steps),
                    "dataset_from_index": begin,
                    "dataset_to_index": report.steps,
                    **{f"data/{name}": number for name, number in place.items()},
                    "meta/episodes/chunk_index": 0,
                    "meta/episodes/file_index": 0,
                }
            )
            report.episodes += 1
    finally:
        files.close()
    listed = folder / "meta/episodes" / _PLACE.format(chunk_index=0, file_index=0)
    listed.parent.mkdir(parents=True)
    parquet.write_table(pyarrow.Table.from_pylist(rows), listed)
    parquet.write_table(_tasks(task), folder / "meta/tasks.parquet")
    shapes = {PICTURE: (3, 1, 1)}
    found = {name: each.as_dict(shapes.get(name, (-1,))) for name, each in statistics.items()}
    (folder / "meta/stats.json").write_text(json.dumps(found, indent=2))


def episode_columns(episode: Episode, kind: str, *, number: int, first: int, fps: int) -> dict[str, npt.NDArray[Any]]:
    """Return the frames of an episode by feature: one per step, with what was seen before it."""
    count = len(episode.steps)
    seen = {name: part[:count] for name, part in seen_by(episode, kind).items()}
    columns: dict[str, npt.NDArray[Any]] = {}
    if VECTOR in seen:
        columns[STATE] = seen[VECTOR].astype(np.float32)
    if IMAGE in seen:
        columns[PICTURE] = np.stack([_coloured(picture) for picture in seen[IMAGE]])
    last = np.arange(count) == count - 1
    frame = np.arange(count)
    return columns | {
        ACTION: np.vstack([step.action for step in episode.steps]).astype(np.float32),
        REWARD: np.array([step.reward for step in episode.steps], dtype=np.float32),
        DONE: last,
        SUCCESS: last & (episode.outcome is Outcome.REACHED),
        "timestamp": (frame / fps).astype(np.float32),
        "frame_index": frame,
        "episode_index": np.full(count, number),
        "index": first + frame,
        "task_index": np.zeros(count, dtype=np.int64),
    }


def _pixels(pictures: npt.NDArray[np.uint8]) -> npt.NDArray[Any]:
    """Return the values of each channel, from 0 to 1."""
    return pictures.reshape(-1, 3) / 255.0


def _coloured(picture: Picture) -> npt.NDArray[np.uint8]:
    """Return a picture as LeRobot takes it: three channels of bytes."""
    shown = np.asarray(for_eyes(picture))
    if shown.dtype == np.uint16:
        shown = (shown >> 8).astype(np.uint8)
    return np.repeat(shown[:, :, None], 3, axis=2) if shown.ndim == 2 else shown


def _table(columns: dict[str, npt.NDArray[Any]]) -> Any:
    import pyarrow

    arrays = []
    for name, values in columns.items():
        if name == PICTURE:
            kind = pyarrow.struct([("bytes", pyarrow.binary()), ("path", pyarrow.string())])
            arrays.append(pyarrow.array([{"bytes": _png(picture), "path": None} for picture in values], kind))
        elif values.ndim == 2 and values.shape[1] > 1:
            flat = pyarrow.array(values.ravel())
            arrays.append(pyarrow.FixedSizeListArray.from_arrays(flat, values.shape[1]))
        else:
            arrays.append(pyarrow.array(values.ravel()))
    return pyarrow.Table.from_arrays(arrays, names=list(columns))


def _png(picture: npt.NDArray[np.uint8]) -> bytes:
    import cv2

    return bytes(cv2.imencode(".png", np.ascontiguousarray(picture[:, :, ::-1]))[1].tobytes())


def _tasks(task: str) -> Any:
    """Return the table of tasks, whose index is the task itself, as pandas writes and reads it."""
    import pyarrow

    texts = {"name": "task", "field_name": "task", "pandas_type": "unicode", "numpy_type": "object", "metadata": None}
    numbers = {**texts, "name": "task_index", "field_name": "task_index", "pandas_type": "int64", "numpy_type": "int64"}
    names = {**texts, "name": None, "field_name": None, "metadata": {"encoding": "UTF-8"}}
    pandas = {
        "index_columns": ["task"],
        "column_indexes": [names],
        "columns": [numbers, texts],
        "creator": {"library": "pyarrow", "version": pyarrow.__version__},
        "pandas_version": "2.0.0",
    }
    table = pyarrow.table({"task_index": pyarrow.array([0]), "task": pyarrow.array([task])})
    return table.replace_schema_metadata({"pandas": json.dumps(pandas)})


def _features(shapes: dict[str, tuple[int, ...]], action_size: int) -> dict[str, Any]:
    features: dict[str, Any] = {}
    if VECTOR in shapes:
        features[STATE] = {"dtype": "float32", "shape": list(shapes[VECTOR]), "names": None}
    if IMAGE in shapes:
        size = [*shapes[IMAGE][:2], 3]
        features[PICTURE] = {"dtype": "image", "shape": size, "names": ["height", "width", "channels"]}
    features[ACTION] = {"dtype": "float32", "shape": [action_size], "names": None}
    for name, kind in ((REWARD, "float32"), (DONE, "bool"), (SUCCESS, "bool"), ("timestamp", "float32")):
        features[name] = {"dtype": kind, "shape": [1], "names": None}
    return features | {name: {"dtype": "int64", "shape": [1], "names": None} for name in _COUNTERS}


def _write_info(folder: Path, features: dict[str, Any], report: LeRobotExport, fps: int, robot: str) -> None:
    info = {
        "codebase_version": VERSION,
        "robot_type": robot,
        "total_episodes": report.episodes,
        "total_frames": report.steps,
        "total_tasks": 1,
        "chunks_size": _FILES_PER_CHUNK,
        "data_files_size_in_mb": _FILE_BYTES // 2**20,
        "video_files_size_in_mb": 200,
        "fps": fps,
        "splits": {"train": f"0:{report.episodes}"},
        "data_path": f"data/{_PLACE}",
        "video_path": None,
        "features": features,
    }
    (folder / "meta/info.json").write_text(json.dumps(info, indent=4))
