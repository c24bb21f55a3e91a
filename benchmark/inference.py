"""One question to a model: our policy against d3rlpy's `predict` with the same actor."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmark.timing import RESULTS, markdown_table, replace_section
from lift_ros.policies.learned import load_model
from lift_ros.policies.model_file import write_tensor_file
from lift_ros.training.options import TrainingOptions
from lift_ros.training.stock import StockLearner

SIZE = 5
WIDTHS = ((64, 64), (256, 256))


def measure(ask: Callable[[Any], Any], questions: int) -> tuple[float, float]:
    """Return p50 and p99 of the time of one question, in microseconds."""
    observations = np.random.default_rng(0).normal(size=(questions, SIZE))
    for observation in observations[: questions // 10]:
        ask(observation)
    seconds = np.empty(questions)
    for index, observation in enumerate(observations):
        started = time.perf_counter()
        ask(observation)
        seconds[index] = time.perf_counter() - started
    middle, high = np.quantile(seconds, (0.5, 0.99))
    return 1e6 * float(middle), 1e6 * float(high)


def main(arguments: argparse.Namespace) -> int:
    """Measure and write the section."""
    questions = 200 if arguments.quick else 20_000
    torch.set_num_threads(1)
    rows = []
    for hidden in WIDTHS:
        learner = StockLearner(TrainingOptions(algorithm="SAC", hidden=hidden), SIZE, SIZE)
        scaling = {"observation.mean": np.zeros(SIZE, np.float32), "observation.deviation": np.ones(SIZE, np.float32)}
        description = {
            "kind": "model",
            "version": 1,
            "algorithm": "SAC",
            "observation_size": SIZE,
            "action_size": SIZE,
            "action_radius": 0.5,
            "critics": 2,
        }
        with tempfile.TemporaryDirectory() as folder:
            write_tensor_file(Path(folder) / "model", {**learner.networks(), **scaling}, description)
            policy = load_model(Path(folder) / "model")
        stock = learner.algorithm
        ours = measure(policy.act, questions)
        theirs = measure(
            lambda observation, stock=stock: stock.predict(observation[None].astype(np.float32)), questions
        )
        value = measure(lambda observation, policy=policy: policy.q_value(observation, observation * 0.1), questions)
        name = "×".join(map(str, hidden))
        rows.append((name, "ours, `act`", *ours, theirs[0] / ours[0]))
        rows.append((name, "ours, `q_value`", *value, theirs[0] / value[0]))
        rows.append((name, "stock d3rlpy, `predict`", *theirs, 1.0))
    table = markdown_table(("hidden", "", "p50 [µs]", "p99 [µs]", "p50 of stock / p50"), rows)
    text = f"{questions} single questions to an actor with {SIZE} inputs and outputs, on one thread. "
    text += f"Load of the machine meanwhile: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores.\n\n{table}"
    print(text)
    if not arguments.quick:
        replace_section(RESULTS, "inference", text)
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmark.inference", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few questions; nothing is stored")
    sys.exit(main(parser.parse_args()))
