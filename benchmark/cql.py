"""Updates of CQL: ours with shortcuts against stock d3rlpy with plain transitions, sampling included, in turns."""

from __future__ import annotations

import argparse
import itertools
import logging
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import structlog
import torch

from benchmark.timing import RESULTS, interleaved, markdown_table, medians, replace_section
from lift_ros.shortcuts import ShortcutSampler
from lift_ros.training.learners import CQLLearner
from lift_ros.training.options import TrainingOptions, preset

EPISODES, LENGTH, DIM, RADIUS = 100, 200, 5, 0.5


def make_walks(seed: int = 0) -> tuple[Any, Any, Any, Any]:
    """Return observations, actions, rewards and offsets of random walks home; only their sizes matter here."""
    rng = np.random.default_rng(seed)
    actions = rng.normal(scale=0.02, size=(EPISODES, LENGTH, DIM))
    positions = rng.uniform(-1, 1, (EPISODES, 1, DIM)) + np.cumsum(actions, axis=1)
    rewards = -np.linalg.norm(positions, axis=2)
    offsets = np.arange(EPISODES + 1) * LENGTH
    return positions.reshape(-1, DIM), actions.reshape(-1, DIM), rewards.reshape(-1), offsets


def our_job(options: TrainingOptions, threads: int) -> Callable[[], None]:
    """Return one update of ours: draw shortcuts, divide by the radius, learn."""
    observations, actions, rewards, offsets = make_walks()
    sampler = ShortcutSampler(
        observations,
        actions,
        rewards,
        offsets,
        np.ones(EPISODES, dtype=bool),
        action_radius=RADIUS,
        strategy=options.strategy,
    )
    learner = CQLLearner(options, DIM, DIM, threads)

    def job() -> None:
        torch.set_num_threads(1)
        batch = sampler.sample(options.batch_size)
        np.divide(batch.actions, RADIUS, out=batch.actions)
        learner.update(batch)

    return job


def stock_job(options: TrainingOptions, threads: int) -> Callable[[], None]:
    """Return one update of d3rlpy: draw transitions from its buffer, learn."""
    import d3rlpy

    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    observations, actions, rewards, offsets = make_walks()
    episodes = [
        d3rlpy.dataset.Episode(
            observations[start:stop].astype(np.float32),
            (actions[start:stop] / RADIUS).astype(np.float32),
            rewards[start:stop, None].astype(np.float32),
            True,
        )
        for start, stop in itertools.pairwise(offsets)
    ]
    buffer = d3rlpy.dataset.create_infinite_replay_buffer(episodes=episodes)
    encoder = d3rlpy.models.VectorEncoderFactory(hidden_units=list(options.hidden))
    algorithm = d3rlpy.algos.CQLConfig(
        actor_learning_rate=options.actor_learning_rate,
        critic_learning_rate=options.critic_learning_rate,
        actor_encoder_factory=encoder,
        critic_encoder_factory=encoder,
        batch_size=options.batch_size,
        n_action_samples=options.action_samples,
        conservative_weight=options.conservative_weight,
        alpha_threshold=options.alpha_threshold,
    ).create(device="cpu")
    algorithm.create_impl((DIM,), DIM)

    def job() -> None:
        torch.set_num_threads(threads)
        algorithm.update(buffer.sample_transition_batch(options.batch_size))

    return job


def matrix_flops(options: TrainingOptions) -> float:
    """Return the multiplications and additions in the matrix products that one update needs."""

    def row(inputs: int, outputs: int) -> float:
        sizes = (inputs, *options.hidden, outputs)
        return sum(2.0 * first * second for first, second in itertools.pairwise(sizes))

    batch = options.batch_size
    critic, actor = row(2 * DIM, 1), row(DIM, 2 * DIM)
    # Sampled actions and data: forward, backward by weights and by inputs; targets: forward; actor loss: two passes.
    critics = options.critics * critic * batch * (3 * (3 * options.action_samples + 1) + 1 + 2)
    return critics + actor * batch * (2 + 2)


def peak_flops(threads: int, repeats: int) -> float:
    """Return what a large product of matrices reaches on this machine, in operations per second."""
    torch.set_num_threads(threads)
    size = 2048
    first, second, out = torch.randn(size, size), torch.randn(size, size), torch.empty(size, size)
    best = 0.0
    for _ in range(repeats):
        started = time.perf_counter()
        torch.mm(first, second, out=out)
        best = max(best, 2.0 * size**3 / (time.perf_counter() - started))
    return best


def main(arguments: argparse.Namespace) -> int:
    """Measure both presets with one and two threads and write the section."""
    rounds = 3 if arguments.quick else 15
    rows = []
    for name in ("paper", "fast"):
        options = preset(name)
        inner = 1 if name == "paper" or arguments.quick else 10
        for threads in (1, 2):
            ours, stock = our_job(options, threads), stock_job(options, threads)
            seconds = medians(interleaved({"stock": _repeat(stock, inner), "ours": _repeat(ours, inner)}, rounds))
            times = {key: value / inner for key, value in seconds.items()}
            peak = peak_flops(threads, 2 * rounds)
            shares = [matrix_flops(options) / times[key] / peak for key in ("stock", "ours")]
            ratio = times["stock"] / times["ours"]
            shown = (f"{shares[0]:.0%}", f"{shares[1]:.0%}", f"{peak / 1e9:.0f} GFLOP/s")
            rows.append((name, threads, 1e3 * times["stock"], 1e3 * times["ours"], ratio, *shown))
            print(rows[-1], flush=True)
    header = ("preset", "threads", "stock d3rlpy [ms]", "ours [ms]", "stock / ours")
    table = markdown_table((*header, "stock: share of peak", "ours: share of peak", "peak"), rows)
    text = (
        f"One update with its mini-batch, observation and action of size {DIM}, {EPISODES} episodes of {LENGTH} steps: "
        "stock d3rlpy draws plain transitions from its buffer, ours draws shortcuts. Median over "
        f"{rounds} rounds in turns. The share is the update's matrix products over what one product of 2048×2048 "
        f"matrices reaches in the same run. Load of the machine meanwhile: {os.getloadavg()[0]:.1f} on "
        f"{os.cpu_count()} cores.\n\n" + table
    )
    print(text)
    if not arguments.quick:
        replace_section(RESULTS, "cql", text)
    return 0


def _repeat(job: Callable[[], None], times: int) -> Callable[[], None]:
    def repeated() -> None:
        for _ in range(times):
            job()

    return repeated


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmark.cql", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few repetitions; nothing is stored")
    sys.exit(main(parser.parse_args()))
