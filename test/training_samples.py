"""Small recorded episodes and models that several tests share."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lift_ros.collection.records import Episode, Mode, Outcome, Source, Step
from lift_ros.policies.model_file import Tensors, write_tensor_file
from lift_ros.training.options import TrainingOptions

RADIUS = 0.5


def make_episodes(count: int = 6, steps: int = 8, size: int = 2, seed: int = 0) -> list[Episode]:
    """Return walks towards the origin, every third of them cut off."""
    rng = np.random.default_rng(seed)
    episodes = []
    for index in range(count):
        position = rng.uniform(-1, 1, size)
        records = []
        for number in range(steps):
            action = -0.2 * position + rng.normal(scale=0.01, size=size)
            reward = -float(np.linalg.norm(position + action))
            records.append(
                Step(
                    index,
                    number,
                    0,
                    position.copy(),
                    action,
                    Source.LOGGING_POLICY,
                    position=position.copy(),
                    reward=reward,
                )
            )
            position = position + action
        outcome = Outcome.STEP_LIMIT if index % 3 == 2 else Outcome.REACHED
        episodes.append(Episode(index, index, Mode.COLLECT, outcome, records, position, final_position=position.copy()))
    return episodes


def tiny(**changes: Any) -> TrainingOptions:
    """Return options of a training that takes a moment."""
    small = {"hidden": (8, 8), "batch_size": 16, "action_samples": 2, "updates": 12}
    return TrainingOptions().replaced({**small, **changes})


def network(prefix: str, inputs: int, outputs: int, rng: np.random.Generator, width: int = 6) -> Tensors:
    """Return random layers as a model file names them."""
    tensors: Tensors = {}
    for index, (size, wide) in enumerate([(inputs, width), (width, width), (width, outputs)]):
        tensors[f"{prefix}.{index}.weight"] = rng.normal(size=(wide, size)).astype(np.float32)
        tensors[f"{prefix}.{index}.bias"] = rng.normal(size=wide).astype(np.float32)
    return tensors


def model_content(seed: int = 0, scaled: bool = True, switches: Sequence[int] = ()) -> tuple[Tensors, dict[str, Any]]:
    """Return tensors and description of a valid model with 3 observations and 2 actions."""
    rng = np.random.default_rng(seed)
    inputs = 3 + len(switches)
    tensors = network("actor", inputs, 2, rng)
    for index in range(2):
        tensors |= network(f"critics.{index}", inputs + 2, 1, rng)
    if switches:
        tensors["observation.switches"] = np.array(switches, dtype=np.float32)
    tensors["observation.mean"] = rng.normal(size=3).astype(np.float32) * scaled
    tensors["observation.deviation"] = (1 + rng.random(3) * scaled).astype(np.float32)
    description = {
        "kind": "model",
        "version": 1,
        "algorithm": "CQL",
        "observation_size": 3,
        "action_size": 2,
        "action_radius": RADIUS,
        "critics": 2,
    }
    return tensors, description


def write_model(path: Path, seed: int = 0, **changes: Any) -> str:
    """Write a valid model, or one with a changed description, and return its hash."""
    tensors, description = model_content(seed)
    return write_tensor_file(path, tensors, {**description, **changes})
