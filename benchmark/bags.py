"""Writing and loading bags next to plain `rosbags`, the cost of fsync, and how loading grows with episodes."""

from __future__ import annotations

import argparse
import functools
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from mcap.opcode import Opcode
from rosbags.rosbag2 import Reader, StoragePlugin, Writer
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from benchmark.timing import RESULTS, interleaved, markdown_table, medians, replace_section
from lift_ros.bags import RunReader, RunWriter, load_arrays
from lift_ros.bags.files import EPISODE, STEP
from lift_ros.bags.mcap_records import CHUNK_HEAD, HEAD, INDEX_HEAD, MESSAGE_HEAD
from lift_ros.collection.records import Episode, Mode, Outcome, Source, Step
from lift_ros.messages.layout import prefix_dtype
from lift_ros.seeds import generator

SIZE = 5
SIZES = dict.fromkeys(("observation", "position", "action"), SIZE)
START = 1_700_000_000_000_000_000
COLUMNS = ("observation", "position", "action", "reward", "source")
STEP_TYPE, EPISODE_TYPE = STEP.type_name, EPISODE.type_name


def main(arguments: argparse.Namespace) -> int:
    """Measure and write the section of docs/results.md, unless only a quick look is asked for."""
    quick = arguments.quick
    directory = Path(tempfile.mkdtemp(prefix="lift_bags_"))
    try:
        text = "\n\n".join(
            (
                f"Steps with {SIZE}-dimensional observation, position, action and proposal, or with a 64×64 rgb8 image "
                "besides; episodes of 50 steps. Times are medians, taken in turns; files are in the page cache.",
                writing(directory, quick),
                syncing(directory, quick),
                loading(directory, quick),
                growth(directory, quick),
            )
        )
    finally:
        shutil.rmtree(directory)
    print(text)
    if not quick:
        replace_section(RESULTS, "bags", text)
    return 0


def make_episode(index: int, steps: int = 50, image: bool = False) -> Episode:
    """Return an episode with random values."""
    rng = generator(1, index)
    values = rng.normal(size=(steps + 1, 3, SIZE))
    images = rng.integers(0, 256, (steps, 64, 64, 3), dtype=np.uint8) if image else [None] * steps
    start = START + index * 10**10
    records = [
        Step(
            episode=index,
            index=i,
            time_ns=start + i * 10**8,
            observation=values[i, 0],
            position=values[i, 1],
            action=values[i, 2],
            source=Source.LOGGING_POLICY,
            reward=-1.0,
            logging_proposal=values[i, 2],
            draw=0.5,
            p=0.3,
            augmentations_left=20,
            image=images[i],
        )
        for i in range(steps)
    ]
    return Episode(
        index=index,
        seed=index,
        mode=Mode.COLLECT,
        outcome=Outcome.REACHED,
        steps=records,
        final_observation=values[-1, 0],
        final_position=values[-1, 1],
        goal=values[-1, 1],
        start_time_ns=start,
        end_time_ns=start + steps * 10**8,
    )


class Plain:
    """The same data as `rosbags` alone handles it."""

    def __init__(self) -> None:
        self.store = get_typestore(Stores.ROS2_KILTED)
        types: dict[str, Any] = {}
        for name, definition in ((STEP_TYPE, STEP.definition), (EPISODE_TYPE, EPISODE.definition)):
            types.update(get_types_from_msg(definition.split("=" * 80)[0], name))
        self.store.register(types)

    def messages(self, episodes: list[Episode]) -> list[tuple[str, int, Any]]:
        """Return all messages, ready to be serialised."""
        types = self.store.types
        time, header = types["builtin_interfaces/msg/Time"], types["std_msgs/msg/Header"]
        picture, empty = types["sensor_msgs/msg/Image"], np.empty(0, np.uint8)
        result = []
        for episode in episodes:
            for step in episode.steps:
                head = header(time(*divmod(step.time_ns, 10**9)), "")
                pixels = empty if step.image is None else step.image.ravel()
                size, row, encoding = (64, 192, "rgb8") if pixels.size else (0, 0, "")
                values = (step.observation, step.position, step.action, step.reward, int(step.source))
                values += (step.logging_proposal, step.augmentor_proposal, 0, step.draw, step.p)
                values += (step.augmentations_left, "", picture(head, size, size, encoding, 0, row, pixels))
                result.append((STEP_TYPE, step.time_ns, types[STEP_TYPE](head, episode.index, step.index, *values)))
            stop = time(*divmod(episode.end_time_ns, 10**9))
            end = types[EPISODE_TYPE](
                header(stop, ""),
                time(*divmod(episode.start_time_ns, 10**9)),
                *(episode.index, episode.seed, int(episode.mode), int(episode.outcome), ""),
                *(len(episode.steps), 0, episode.episode_return),
                *(episode.final_observation, episode.final_position, episode.goal, episode.context),
                picture(header(stop, ""), 0, 0, "", 0, 0, empty),
            )
            result.append((EPISODE_TYPE, episode.end_time_ns, end))
        return result

    def write(self, path: Path, messages: list[tuple[str, int, Any]]) -> None:
        """Write a bag of one file, without any promise about a crash."""
        with Writer(path, version=9, storage_plugin=StoragePlugin.MCAP) as writer:
            connections = {
                STEP_TYPE: writer.add_connection("/lift/step", STEP_TYPE, typestore=self.store),
                EPISODE_TYPE: writer.add_connection("/lift/episode", EPISODE_TYPE, typestore=self.store),
            }
            for name, time, message in messages:
                writer.write(connections[name], time, self.store.serialize_cdr(message, name))

    def read(self, path: Path) -> list[Any]:
        """Return the columns of all steps."""
        steps = []
        with Reader(path) as reader:
            for connection, _, data in reader.messages():
                message = self.store.deserialize_cdr(data, connection.msgtype)
                if connection.msgtype == STEP_TYPE:
                    steps.append(message)
        return [np.array([getattr(step, name) for step in steps]) for name in COLUMNS]


def record(path: Path, episodes: list[Episode], per_file: int = 1, sync: bool = False) -> None:
    """Write a run."""
    with RunWriter(path, {"seed": 1}, per_file, sync=sync) as writer:
        for episode in episodes:
            writer.write_episode(episode)


def into(directory: Path, write: Callable[[Path], None]) -> Callable[[], None]:
    """Return a job that writes into a new directory and removes it."""

    def job() -> None:
        path = directory / "written"
        write(path)
        shutil.rmtree(path)

    return job


def size_of(run: Path) -> int:
    """Return the bytes of all files of a run."""
    return sum(path.stat().st_size for path in run.iterdir())


def writing(directory: Path, quick: bool) -> str:
    """Compare writing with the plain writer, which keeps up to 1 MiB in memory and writes its index at the end."""
    plain, rows = Plain(), []
    for image in (False, True):
        episodes = [make_episode(index, image=image) for index in range((20 if image else 100) // (4 if quick else 1))]
        messages = plain.messages(episodes)
        jobs = {
            "`rosbags`": into(directory, lambda path, messages=messages: plain.write(path, messages)),
            "ours, 1 episode per file": into(directory, lambda path, episodes=episodes: record(path, episodes)),
            "ours, 100 episodes per file": into(directory, lambda path, episodes=episodes: record(path, episodes, 100)),
            "ours, 1 per file, fsync": into(directory, lambda path, episodes=episodes: record(path, episodes, 1, True)),
        }
        middle = medians(interleaved(jobs, 3 if quick else 15))
        record(directory / "measured", episodes, 100)
        megabytes = size_of(directory / "measured") / 1e6
        shutil.rmtree(directory / "measured")
        for name, seconds in middle.items():
            kind = "64×64 image" if image else "small"
            ratio = seconds / middle["`rosbags`"]
            rows.append((kind, name, len(messages) / seconds, megabytes / seconds, ratio))
    header = ("steps", "writer", "messages/s", "MB/s", "time / `rosbags`")
    return (
        "**Writing.** Ours hands every step to the kernel before it returns, so that a kill loses none; `rosbags` "
        "keeps up to 1 MiB of messages in memory.\n\n" + markdown_table(header, rows)
    )


def syncing(directory: Path, quick: bool) -> str:
    """Measure what making each episode durable costs."""
    episodes = [make_episode(index) for index in range(20 if quick else 100)]
    jobs = {
        f"{per_file}, {'fsync' if sync else 'none'}": into(
            directory, lambda path, per_file=per_file, sync=sync: record(path, episodes, per_file, sync)
        )
        for per_file in (1, 100)
        for sync in (False, True)
    }
    middle = medians(interleaved(jobs, 3 if quick else 9))
    rows = [
        (
            per_file,
            1e3 * middle[f"{per_file}, none"] / len(episodes),
            1e3 * middle[f"{per_file}, fsync"] / len(episodes),
            1e3 * (middle[f"{per_file}, fsync"] - middle[f"{per_file}, none"]) / len(episodes),
        )
        for per_file in (1, 100)
    ]
    header = ("episodes per file", "ms per episode without fsync", "with fsync", "cost of fsync")
    return "**Durability.** What it costs to have each episode on the disk.\n\n" + markdown_table(header, rows)


@functools.cache
def with_stride(stride: int) -> np.dtype[Any]:
    """Return the layout of step records that lie `stride` bytes apart."""
    layout = prefix_dtype("Step", SIZES, COLUMNS[-1])
    offsets = [MESSAGE_HEAD.size + layout.fields[name][1] for name in COLUMNS]
    formats = [layout[name] for name in COLUMNS]
    return np.dtype({"names": list(COLUMNS), "formats": formats, "offsets": offsets, "itemsize": stride})


class Views:
    """Reading a run's bytes and decoding them with numpy views, knowing beforehand where they are: the lower limit."""

    def __init__(self, run: Path) -> None:
        self.places: dict[str, list[tuple[int, int, int]]] = {}  # file: start, stride and count of each episode
        for path in sorted(run.glob("*.mcap")):
            self.places[str(path)] = _places(path.read_bytes())

    def load(self) -> list[Any]:
        """Return the columns of all steps."""
        tables = []
        for path, places in self.places.items():
            descriptor = os.open(path, os.O_RDONLY)
            data = os.read(descriptor, os.fstat(descriptor).st_size)
            os.close(descriptor)
            for start, stride, count in places:
                tables.append(np.frombuffer(data, with_stride(stride), count, start))
        return [np.concatenate([table[name] for table in tables]) for name in COLUMNS]


def _places(data: bytes) -> list[tuple[int, int, int]]:
    places = []
    offset = 8
    content = 0
    while offset < len(data) - 8:
        opcode, length = HEAD.unpack_from(data, offset)
        if opcode == Opcode.CHUNK:
            content = offset + CHUNK_HEAD.size
        if opcode == Opcode.MESSAGE_INDEX and data[offset + 9 : offset + 11] == b"\1\0":
            starts = np.frombuffer(data, "<u8", (length - 6) // 8, offset + INDEX_HEAD.size)[1::2]
            places.append((content + int(starts[0]), int(starts[1] - starts[0]), len(starts)))
        offset += 9 + length
    return places


def loading(directory: Path, quick: bool) -> str:
    """Compare loading with the lower limit and with the plain reader."""
    plain, rows = Plain(), []
    for image in (False, True):
        episodes = [make_episode(index, image=image) for index in range((20 if image else 400) // (4 if quick else 1))]
        plain.write(directory / "plain", plain.messages(episodes))
        count = sum(len(episode.steps) for episode in episodes)
        for per_file in (1, 100):
            run = directory / f"run{per_file}"
            record(run, episodes, per_file)
            views = Views(run)
            jobs: dict[str, Callable[[], object]] = {
                "bytes and numpy views": views.load,
                "`load_arrays`": lambda run=run: load_arrays(run),
                "`rosbags`": lambda: plain.read(directory / "plain"),
            }
            middle = medians(interleaved(jobs, 3 if quick else 9))
            for name, seconds in middle.items():
                ratio = seconds / middle["bytes and numpy views"]
                kind = "64×64 image" if image else "small"
                rows.append((kind, per_file, name, count / seconds, size_of(run) / 1e6 / seconds, ratio))
            shutil.rmtree(run)
        shutil.rmtree(directory / "plain")
    header = ("steps", "episodes per file", "reader", "steps/s", "MB/s", "time / limit")
    return (
        "**Loading** everything but the images. The limit reads the same bytes and decodes them with numpy views, "
        "knowing where they are and checking nothing; `load_arrays` checks checksums, numbering and values. `rosbags` "
        "reads a bag of one file.\n\n" + markdown_table(header, rows)
    )


def growth(directory: Path, quick: bool) -> str:
    """Measure loading of all and of ten episodes while the run grows."""
    rows = []
    counts = (100, 300, 1000) if quick else (100, 300, 1000, 3000, 10_000)
    for per_file in (1, 100):
        run = directory / "growing"
        episodes = 0
        for count in counts:
            with RunWriter(run, {"seed": 1}, per_file, sync=False) as writer:
                while writer.next_episode < count:
                    writer.write_episode(make_episode(writer.next_episode))
            episodes = count
            few = np.linspace(0, count - 1, 10).astype(int).tolist()
            jobs: dict[str, Callable[[], object]] = {
                "all": functools.partial(load_arrays, run),
                "few": functools.partial(load_arrays, run, few),
                "open": functools.partial(RunReader, run),
            }
            middle = medians(interleaved(jobs, 3 if quick else 7))
            rows.append(
                (
                    per_file,
                    episodes,
                    1e3 * middle["all"],
                    1e6 * middle["all"] / episodes,
                    1e3 * middle["few"],
                    1e3 * middle["open"],
                )
            )
        shutil.rmtree(run)
    header = ("episodes per file", "episodes", "load all [ms]", "µs per episode", "load 10 [ms]", "open [ms]")
    return "**Growth** of loading with the number of episodes.\n\n" + markdown_table(header, rows)
