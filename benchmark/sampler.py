"""Shortcut sampling against stock d3rlpy drawing plain transitions, in turns in the same run."""

from __future__ import annotations

import argparse
import logging
import statistics
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import structlog
from d3rlpy.dataset import Episode, InfiniteBuffer, ReplayBuffer

from benchmark.timing import RESULTS, interleaved, markdown_table, medians, replace_section
from lift_ros.shortcuts import STRATEGIES, ShortcutPicker, ShortcutSampler

BATCH = 500
BATCHES = 16  # per turn, since batches are drawn ahead some at a time
SIZE = 5
RADIUS = 0.3
GIVEN = 1 << 30
NOTHING = 0


class Walks:
    """Coordinate walks that arrive after a given number of steps, one axis after the other, with bent movements."""

    def __init__(self, episodes: int, steps: int) -> None:
        rng = np.random.default_rng(0)
        axis = np.arange(steps) * SIZE // steps
        legs = np.bincount(axis, minlength=SIZE)
        away = rng.choice((-1.0, 1.0), (episodes, SIZE)) * rng.uniform(0.2, 1.8, (episodes, SIZE))
        actions = np.zeros((episodes, steps, SIZE))
        actions[:, np.arange(steps), axis] = -(away / np.maximum(legs, 1))[:, axis]
        bent = np.eye(SIZE) + rng.normal(0, 0.1, (episodes, SIZE, SIZE))
        positions = away[:, None] + np.cumsum(actions @ bent, axis=1)
        before = np.concatenate((away[:, None], positions[:, :-1]), axis=1)
        self.episodes = episodes
        self.observations = before.astype(np.float32)
        self.actions = actions.astype(np.float32)
        self.rewards = -np.linalg.norm(positions, axis=2).astype(np.float32)
        self.final_observations = positions[:, -1].astype(np.float32)

    def sampler(self, memory_limit_bytes: int, **options: Any) -> ShortcutSampler:
        steps = self.rewards.shape[1]
        return ShortcutSampler(
            self.observations.reshape(-1, SIZE),
            self.actions.reshape(-1, SIZE),
            self.rewards.reshape(-1),
            np.arange(self.episodes + 1) * steps,
            np.ones(self.episodes, dtype=bool),
            self.final_observations,
            action_radius=RADIUS,
            memory_limit_bytes=memory_limit_bytes,
            **options,
        )

    def buffer(self, picker: Any = None) -> ReplayBuffer:
        fields = zip(self.observations, self.actions, self.rewards[..., None], strict=True)
        episodes = [Episode(*values, terminated=True) for values in fields]
        return ReplayBuffer(InfiniteBuffer(), transition_picker=picker, episodes=episodes)


def main(arguments: argparse.Namespace) -> int:
    """Measure and write the section of docs/results.md, unless only a quick look is asked for."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    repeats = 3 if arguments.quick else 25
    text = "\n\n".join(
        (
            f"Batches of {BATCH} shortcuts, {SIZE}-dimensional coordinate walks, λ = {RADIUS}, C = 0. Times are "
            f"medians over turns of {BATCHES} batches; the ratio is the median over turns of the time relative to "
            "stock d3rlpy drawing as many plain transitions in the same turn.",
            against_stock(repeats),
            by_length(repeats),
            building(max(3, repeats // 3)),
        )
    )
    print(text)
    if not arguments.quick:
        replace_section(RESULTS, "sampler", text)
    return 0


def against_stock(repeats: int) -> str:
    """Compare all ways to draw 500 shortcuts from 500 episodes of 200 steps with stock d3rlpy."""
    walks = Walks(500, 200)
    stock = walks.buffer()
    single = walks.buffer(ShortcutPicker(action_radius=RADIUS))
    for episode in single.episodes:
        single.transition_picker(episode, 0)
    jobs = {
        "stock d3rlpy, plain transitions": _draws(stock.sample_transition_batch),
        "ShortcutPicker, one by one": _draws(single.sample_transition_batch),
    }
    for strategy in STRATEGIES:
        jobs[f"{strategy}, precomputed pairs"] = _draws(walks.sampler(GIVEN, strategy=strategy).sample)
        if strategy != "best":
            jobs[f"{strategy}, on the fly"] = _draws(walks.sampler(NOTHING, strategy=strategy).sample)
    jobs["weighted, precomputed pairs, episodes first"] = _draws(walks.sampler(GIVEN, episodes_first=True).sample)
    return _table("500 episodes × 200 steps", interleaved(jobs, repeats, warm_up=3))


def by_length(repeats: int) -> str:
    """Compare draws from short and long episodes with as many steps in all."""
    jobs: dict[str, Callable[[], object]] = {}
    for steps in (50, 200, 1000, 3000):
        walks = Walks(150_000 // steps, steps)
        jobs[f"{steps} steps, precomputed pairs"] = _draws(walks.sampler(GIVEN).sample)
        jobs[f"{steps} steps, on the fly"] = _draws(walks.sampler(NOTHING).sample)
    seconds = interleaved(jobs, repeats, warm_up=3)
    middle = medians(seconds)
    rows = []
    for name in jobs:
        reference = f"50 steps,{name.split(',')[1]}"
        ratio = statistics.median(a / b for a, b in zip(seconds[name], seconds[reference], strict=True))
        rows.append((name, 1e6 * middle[name] / BATCHES, ratio))
    return markdown_table(("150,000 steps in all, episodes of", "µs per batch", "relative to 50 steps"), rows)


def building(repeats: int) -> str:
    """Time the computation of all pairs."""
    jobs: dict[str, Callable[[], object]] = {}
    for episodes, steps in ((500, 200), (50, 3000)):
        walks = Walks(episodes, steps)
        for name, limit in (("precomputed pairs", GIVEN), ("on the fly", NOTHING)):
            jobs[f"{episodes} episodes × {steps} steps, {name}"] = lambda walks=walks, limit=limit: walks.sampler(limit)
    middle = medians(interleaved(jobs, repeats))
    return markdown_table(("building a sampler", "seconds"), list(middle.items()))


def _draws(sample: Callable[[int], object]) -> Callable[[], None]:
    def job() -> None:
        for _ in range(BATCHES):
            sample(BATCH)

    return job


def _table(title: str, seconds: Mapping[str, list[float]]) -> str:
    """Return times and ratios to the first job; pairing turns takes out spells in which the machine is busy."""
    reference = next(iter(seconds.values()))
    rows = []
    for name, values in seconds.items():
        ratio = statistics.median(a / b for a, b in zip(values, reference, strict=True))
        rows.append((name, 1e6 * statistics.median(values) / BATCHES, ratio))
    return markdown_table((title, "µs per batch", "time / stock"), rows)
