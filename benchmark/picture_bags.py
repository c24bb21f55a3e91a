"""Runs with many pictures: recording, loading and keeping them for training in bounded memory, and compressing them."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from benchmark.bags import make_episode, size_of
from benchmark.timing import RESULTS, interleaved, markdown_table, medians, replace_section
from lift_ros.array_types import Picture
from lift_ros.bags import RunWriter, load_arrays, store_pictures
from lift_ros.collection.records import COMPRESSIONS, Episode
from lift_ros.errors import UserError
from lift_ros.policies.preprocessing import PictureSettings, Preprocessing
from lift_ros.positioning.pictures import PictureFormat
from lift_ros.seeds import generator

STEPS = 50  # of an episode
CAMERA = PictureFormat(480, 640, "rgb8")
SEEN = PictureSettings(crop=[0, 80, 480, 480], size=[64, 64])
BATCH = 128
BYTES = 10 * 10**9  # of the run
QUICK_BYTES = 3 * 10**8
DIFFERENT = 64  # pictures; making 11 000 of them takes longer than all that is measured
_EVERYTHING = 2**62  # a limit that keeps all in memory


def main(arguments: argparse.Namespace) -> int:
    """Measure and write the section of docs/results.md, unless only a quick look is asked for."""
    text = measure(quick=arguments.quick)
    print(text)
    if not arguments.quick:
        replace_section(RESULTS, "picture-bags", text)
    return 0


def measure(*, quick: bool) -> str:
    """Return the section."""
    directory = Path(tempfile.mkdtemp(prefix="lift_picture_bags_"))
    try:
        return "\n\n".join((holding(directory, QUICK_BYTES if quick else BYTES), compressing(directory, quick)))
    finally:
        shutil.rmtree(directory)


def camera_picture(kind: PictureFormat, seed: int, noise: float) -> Picture:
    """Return a smooth picture of some spots, with the noise of a camera."""
    rng = generator(2, seed)
    rows, columns = np.mgrid[0.0 : kind.height, 0.0 : kind.width]
    light = np.zeros(kind.shape)
    for _ in range(4):
        place, width = rng.random(2) * (kind.height, kind.width), (0.05 + 0.2 * rng.random()) * kind.height
        spot = np.exp(-((rows - place[0]) ** 2 + (columns - place[1]) ** 2) / (2 * width**2))
        light += spot if kind.channels == 1 else spot[:, :, None] * rng.random(3)
    light = 0.2 + 0.7 * light / light.max()
    most = 1.0 if kind.dtype.kind == "f" else float(np.iinfo(kind.dtype).max)
    light += noise / 255 * rng.normal(size=kind.shape)
    return (most * light.clip(0, 1)).astype(kind.dtype)


def flat_picture(kind: PictureFormat, seed: int) -> Picture:
    """Return a picture of flat shapes, as a renderer without textures draws them."""
    rng = generator(3, seed)
    picture = np.full(kind.shape, 180, kind.dtype)
    for _ in range(8):
        top, left = rng.integers(0, kind.height), rng.integers(0, kind.width)
        picture[top : top + kind.height // 4, left : left + kind.width // 5] = rng.integers(0, 256, kind.channels)
    return picture


def with_pictures(index: int, pictures: list[Picture]) -> Episode:
    """Return an episode that has seen some of the pictures."""
    episode = make_episode(index, STEPS)
    for step in episode.steps:
        step.image = pictures[(7 * index + step.index) % len(pictures)]
    episode.final_image = pictures[(7 * index + STEPS) % len(pictures)]
    return episode


def record(run: Path, pictures: list[Picture], episodes: int, compression: str = "none") -> list[float]:
    """Write a run and return how long each episode took."""
    seconds = []
    with RunWriter(run, {"seed": 1}, sync=False, compression=compression) as writer:
        for index in range(episodes):
            episode = with_pictures(index, pictures)
            started = time.perf_counter()
            writer.write_episode(episode)
            seconds.append(time.perf_counter() - started)
    return seconds


def resident(name: str) -> float:
    """Return an entry of this process' memory in MB: VmHWM, the most it ever had, or RssAnon, which no file backs."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:")) * 1024 / 1e6


def in_a_process(job: Callable[..., dict[str, float]], *arguments: Any) -> dict[str, float]:
    """Run a job in a new process, which has no memory of others."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(job, *arguments).result()


def load_job(run: Path) -> dict[str, float]:
    """Load everything but the pictures."""
    before, started = resident("VmHWM"), time.perf_counter()
    load_arrays(run)
    return {"seconds": time.perf_counter() - started, "before": before, "peak": resident("VmHWM")}


def store_job(run: Path, memory_limit: int, batches: int) -> dict[str, float]:
    """Fill a store of pictures and take batches of it."""
    arrays = load_arrays(run)
    seen = Preprocessing.make(SEEN, CAMERA)
    before, started = resident("VmHWM"), time.perf_counter()
    store = store_pictures([run], arrays, seen.of, seen.shape, seen.dtype, memory_limit=memory_limit, folder=run.parent)
    filled = time.perf_counter()
    rng = generator(4, "batches")
    for _ in range(batches):
        store.take(rng.integers(0, len(store), BATCH))
    return {
        "seconds": filled - started,
        "batch": (time.perf_counter() - filled) / batches,
        "before": before,
        "peak": resident("VmHWM"),
        "anonymous": resident("RssAnon"),
        "size": len(store) * float(np.prod(store.shape)) * store.dtype.itemsize / 1e6,
    }


def holding(directory: Path, size: int) -> str:
    """Measure what a large run takes: time to record, load and keep it, and memory."""
    run, per_episode = directory / "camera", (STEPS + 1) * int(np.prod(CAMERA.shape))
    episodes = -(-size // per_episode)
    status = os.statvfs(directory)
    free = status.f_bavail * status.f_frsize
    if free < 1.1 * size:
        raise UserError(f"{directory} has {free} bytes free and a run of {size} is to be written: free space")
    pictures = [camera_picture(CAMERA, number, noise=2.0) for number in range(DIFFERENT)]
    written = sum(record(run, pictures, episodes))
    megabytes = size_of(run) / 1e6
    jobs = {
        "load all but the pictures": (load_job, run),
        "fill a store in memory": (store_job, run, _EVERYTHING, 200),
        "fill a store in a file": (store_job, run, 0, 200),
    }
    rows: list[tuple[object, ...]] = [("record", megabytes / written, "", "", "")]
    for name, job in jobs.items():
        found = in_a_process(*job)
        batch = f"{1e3 * found['batch']:.2f}" if "batch" in found else ""
        anonymous = f"{found['anonymous']:.0f}" if "anonymous" in found else ""
        rows.append(
            (name, megabytes / found["seconds"], batch, f"{found['before']:.0f} → {found['peak']:.0f}", anonymous)
        )
    shutil.rmtree(run)
    header = ("", "MB/s of the run", f"ms per batch of {BATCH}", "most resident memory before → then [MB]", "RssAnon")
    return (
        f"**Memory.** A run of {megabytes:,.0f} MB: {episodes} episodes of {STEPS} steps with pictures of {CAMERA}, "
        f"which are cropped and resized to 64×64 ({found['size']:.0f} MB in all). Each row is a process of its own.\n\n"
        + markdown_table(header, rows)
    )


def compressing(directory: Path, quick: bool) -> str:
    """Measure size and time of runs with and without compression."""
    small, large, floats = PictureFormat(64, 64, "rgb8"), CAMERA, PictureFormat(64, 64, "32FC1")
    kinds: dict[str, tuple[PictureFormat, Callable[[int], Picture]]] = {
        f"rendered, {small}": (small, lambda seed: flat_picture(small, seed)),
        f"smooth, {small}": (small, lambda seed: camera_picture(small, seed, 0.0)),
        f"smooth with noise, {small}": (small, lambda seed: camera_picture(small, seed, 2.0)),
        f"smooth, {floats}": (floats, lambda seed: camera_picture(floats, seed, 0.0)),
        f"smooth with noise, {large}": (large, lambda seed: camera_picture(large, seed, 2.0)),
    }
    rows: list[tuple[object, ...]] = []
    for name, (kind, make) in kinds.items():
        pictures = [make(seed) for seed in range(STEPS + 1)]  # all of an episode differ
        episodes = (2 if quick else 6) if kind is large else (5 if quick else 40)
        sizes, ends = {}, {}
        for compression in COMPRESSIONS:
            ends[compression] = float(np.median(record(directory / compression, pictures, episodes, compression)))
            sizes[compression] = size_of(directory / compression) / 1e6
        loads: dict[str, Callable[[], object]] = {
            compression: lambda run=directory / compression: load_arrays(run, images=True)
            for compression in COMPRESSIONS
        }
        loaded = medians(interleaved(loads, 2 if quick else 5))
        times = [1e3 * ends[each] for each in COMPRESSIONS]
        rates = [sizes["none"] / loaded[each] for each in COMPRESSIONS]
        rows.append((name, sizes["none"] / episodes, sizes["none"] / sizes["zstd"], *times, *rates))
        for compression in COMPRESSIONS:
            shutil.rmtree(directory / compression)
    header = ("pictures", "MB per episode", "size none / zstd", "ms per episode", "with zstd", "load MB/s", "with zstd")
    return (
        f"**Compression.** Episodes of {STEPS} steps, one per file. How long an episode takes to write, without fsync, "
        "and at which rate all is loaded with pictures, in MB before compression.\n\n" + markdown_table(header, rows)
    )
