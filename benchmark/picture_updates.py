"""Learning from pictures: our updates and answers against those of stock d3rlpy's pixel CQL, and the loop's rate."""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmark.cql import DIM, EPISODES, RADIUS, make_walks
from benchmark.graph import graph
from benchmark.graph import measure as measure_run
from benchmark.timing import RESULTS, interleaved, markdown_table, medians, replace_section
from lift_ros.array_types import Float32Array, IntArray, Picture
from lift_ros.graph.table import GraphOptions
from lift_ros.policies.preprocessing import PictureSettings, Preprocessing
from lift_ros.positioning.pictures import PictureFormat
from lift_ros.scenario import load_scenario
from lift_ros.seeds import generator
from lift_ros.shortcuts import ShortcutSampler
from lift_ros.training import load_runs, preset, train
from lift_ros.training.learners import Learner
from lift_ros.training.options import TrainingOptions
from lift_ros.training.picture_batches import Changes, PictureBatches
from lift_ros.training.picture_learner import Lesson, PictureLearner
from lift_ros.training.stock import StockLearner

SIDE, CAMERA = 64, PictureFormat(64, 64, "rgb8")
CASES = ((64, 4), (64, 10), (128, 10))  # batch size and sampled actions; 10 is d3rlpy's default and the paper's
ANSWERS = 2000
LOOP = "lens"  # whose pictures go around the whole graph


class RandomPictures:
    """A store of pictures of which only the size matters."""

    def __init__(self, count: int) -> None:
        self._pictures = generator(0, "pictures").integers(0, 256, (1000, SIDE, SIDE, 3), dtype=np.uint8)
        self._count = count

    def __len__(self) -> int:
        return self._count

    def take(self, rows: IntArray) -> Picture:
        """Return one of a thousand pictures for each row."""
        return np.take(self._pictures, rows % len(self._pictures), axis=0)


def main(arguments: argparse.Namespace) -> int:
    """Measure and write the section of docs/results.md, unless only a quick look is asked for."""
    text = measure(quick=arguments.quick)
    print(text)
    if not arguments.quick:
        replace_section(RESULTS, "picture-updates", text)
    return 0


def measure(*, quick: bool) -> str:
    """Return the section."""
    rows = []
    for batch, samples in CASES[:1] if quick else CASES:
        seconds = medians(interleaved(_jobs(batch, samples), repeats=1 if quick else 7))
        lesson, update, stock = (1e3 * seconds[name] for name in ("lesson", "update", "stock"))
        rows.append((batch, samples, lesson, update, stock, stock / (lesson + update)))
    load = f"Load of the machine meanwhile: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores."
    header = (
        "batch",
        "sampled actions",
        "lesson [ms]",
        "update [ms]",
        "stock d3rlpy [ms]",
        "stock / (lesson + update)",
    )
    answers = markdown_table(("", "p50 [ms]", "p99 [ms]"), list(_answers(100 if quick else ANSWERS)))
    drawing = _drawing(20 if quick else 500)
    return (
        f"One update of CQL from {SIDE}×{SIDE}×3 pictures with two critics and the same layers (16, 32 and 32 maps, "
        "64 features), both with two threads, sampling and random changes of pictures included. Ours takes as many "
        "lessons of the encoder as updates of actor and critics, which see each picture encoded once. "
        f"{load}\n\n{markdown_table(header, rows)}\n\n"
        f"One answer to one picture, preparing it included, on one thread:\n\n{answers}\n\n"
        f"A step of {LOOP} that draws a {SIDE}×{SIDE} picture takes {drawing:.2f} ms (median).\n\n"
        f"The whole graph with {LOOP}, each step recorded with its picture:\n\n{_loop(2 if quick else 20)}"
    )


def _jobs(batch: int, samples: int) -> dict[str, Callable[[], None]]:
    options = TrainingOptions(batch_size=batch, action_samples=samples, shift=4)
    observations, actions, rewards, offsets = make_walks()
    ended = np.ones(EPISODES, dtype=bool)
    none = observations[:, :0]
    sampler = ShortcutSampler(none, actions, rewards, offsets, ended, action_radius=RADIUS, strategy="best")
    steps = len(actions)
    pictures = PictureBatches(RandomPictures(steps), np.arange(steps), _preprocessing(), Changes.of(options))
    lesson = Lesson(sampler.ways_left(), np.ones(steps, dtype=bool), observations.astype(np.float32))
    few, many = (options.replaced({"lessons": lessons}) for lessons in (1, 10**9))
    learners: dict[str, Learner] = {
        "lesson": PictureLearner(many, 0, DIM, 2, pictures, lesson),
        "update": PictureLearner(few, 0, DIM, 2, pictures, lesson),
        "stock": StockLearner(options, 0, DIM, pictures),
    }
    learners["update"].update(sampler.sample(batch))  # its only lesson

    def job(learner: Learner) -> Callable[[], None]:
        def update() -> None:
            torch.set_num_threads(2)
            drawn = sampler.sample(batch)
            for array in (drawn.actions, drawn.aims):
                np.divide(array, RADIUS, out=array)
            learner.update(drawn)

        return update

    return {name: job(learner) for name, learner in learners.items()}


def _loop(episodes: int) -> str:
    """Measure the graph without an augmentor, and with one that answers every query by its picture."""
    scenario = load_scenario(LOOP)
    rows = []
    with tempfile.TemporaryDirectory(prefix="lift-pictures-") as place:
        folder = Path(place)
        plain, shadow, model = folder / "plain", folder / "shadow", folder / "model.safetensors"
        graph(GraphOptions(scenario=LOOP, run=plain, episodes=episodes, p=0.0, train_after=0))
        options = preset("fast", scenario, lessons=10, updates=10)
        train(load_runs([plain]), options, action_radius=scenario.action_radius, out=model)
        graph(GraphOptions(scenario=LOOP, run=shadow, mode="shadow", episodes=episodes, model=model))
        for name, run in (("the routine alone", plain), ("an augmentor answers, too", shadow)):
            rows.append(measure_run(run).row(name))
    return markdown_table(("", "steps/s", "p50 [ms]", "p99 [ms]", "max [ms]"), rows)


def _drawing(steps: int) -> float:
    """Return how many milliseconds a step takes with a plant that draws its picture itself."""
    scenario = load_scenario(LOOP)
    with closing(scenario.make_problem()) as problem:
        problem.reset(0)
        times = []
        for _ in range(steps):
            started = time.perf_counter()
            problem.step(np.zeros(scenario.action_size))
            times.append(1e3 * (time.perf_counter() - started))
    return float(np.median(times))


def _preprocessing() -> Preprocessing:
    return Preprocessing(PictureSettings(), CAMERA)


def _answers(count: int) -> Iterator[tuple[str, float, float]]:
    from lift_ros.policies.encoder import PictureEncoder

    preprocessing = _preprocessing()
    options = TrainingOptions()
    steps = 100
    pictures = PictureBatches(RandomPictures(steps), np.arange(steps), preprocessing, Changes())
    lesson = Lesson(np.zeros((steps, DIM), np.float32), np.ones(steps, dtype=bool), None)
    ours = PictureLearner(options, 0, DIM, 1, pictures, lesson)
    tensors = ours.networks()

    def layers(name: str, size: int) -> list[tuple[Float32Array, Float32Array]]:
        return [(tensors[f"{name}.{k}.weight"], tensors[f"{name}.{k}.bias"]) for k in range(size)]

    encoder = PictureEncoder(ours.plan, layers("encoder", 3), layers("readout", 1))
    stock: Any = StockLearner(options, 0, DIM, pictures)
    torch.set_num_threads(1)
    given = RandomPictures(1).take(np.zeros(1, dtype=np.int64))

    def by_ours() -> None:
        encoder.read(encoder.features(preprocessing.scaled(preprocessing.of(given[0])[None])))

    def by_stock() -> None:
        seen = preprocessing.scaled(preprocessing.of(given[0])[None]).transpose(0, 3, 1, 2)
        stock.algorithm.predict(np.ascontiguousarray(seen))

    for name, answer in (("ours", by_ours), ("stock d3rlpy, `predict`", by_stock)):
        times = []
        for _ in range(count):
            started = time.perf_counter()
            answer()
            times.append(1e3 * (time.perf_counter() - started))
        middle, late = np.quantile(times, (0.5, 0.99)).tolist()
        yield name, middle, late
