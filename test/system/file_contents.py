"""All that can be read from runs and models, in a form that a JSON file keeps exactly: large arrays as checksums.

`python test/system/file_contents.py FOLDER` prints it for the runs and models in a folder.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterable
from dataclasses import fields
from enum import IntEnum
from pathlib import Path
from typing import Any

import numpy as np

from lift_ros.bags import EpisodeArrays, RunReader, load_arrays
from lift_ros.collection.records import Episode, Step
from lift_ros.policies.learned import LearnedPolicy, load_model

OBSERVATIONS = np.array([[0.0, 0.0], [0.5, -0.5], [-1.0, 0.25], [0.03, 0.97], [1.5, 2.5]])


def checksum(array: np.ndarray | None) -> str | None:
    """Return what tells shape, type and every bit of an array from any other's."""
    if array is None:
        return None
    digest = hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()
    return f"{array.dtype} {list(array.shape)} {digest}"


def run_contents(path: Path) -> dict[str, Any]:
    """Return the facts of a run and all of its episodes."""
    reader = RunReader(path)
    return {"facts": reader.facts, "episodes": [episode_contents(episode) for episode in reader]}


def episode_contents(episode: Episode) -> dict[str, Any]:
    """Return every field of an episode and of its steps."""
    found = {name: _plain(getattr(episode, name)) for name in Episode.__slots__ if name != "steps"}
    found["augmentations"] = episode.augmentations
    found["episode_return"] = episode.episode_return.hex()
    found["steps"] = len(episode.steps)
    found["of_steps"] = {name: _column(getattr(step, name) for step in episode.steps) for name in Step.__slots__}
    return found


def array_contents(arrays: EpisodeArrays) -> dict[str, str | None]:
    """Return checksums of what training gets of runs."""
    assert not arrays.left_out
    names = [field.name for field in fields(arrays) if field.name not in ("columns", "left_out")]
    return {name: checksum(getattr(arrays, name)) for name in names}


def model_contents(path: Path) -> dict[str, Any]:
    """Return what a model says of itself, its parameters, and its answers."""
    model = load_model(path)
    found: dict[str, Any] = {
        "hash": model.hash,
        "algorithm": model.algorithm,
        "sizes": [model.observation_size, model.action_size],
        "action_radius": model.action_radius,
        "description": model.description,
        "layers": [[checksum(weight), checksum(bias)] for weight, bias in model.actor_layers],
        "scaling": [vector.astype(np.float64).tolist() for vector in (model.inputs.mean, model.inputs.deviation)],
        "actions": answers(model).tolist(),
    }
    if model.description["critics"]:
        found["values"] = model.q_values(OBSERVATIONS, answers(model)).tolist()
    return found


def answers(model: LearnedPolicy) -> np.ndarray:
    """Return the model's actions for a few observations, asked one by one as the augmentor does."""
    return np.array([model.act(observation) for observation in OBSERVATIONS])


def _plain(value: Any) -> Any:
    return checksum(value) if isinstance(value, np.ndarray) else value


def _column(values: Iterable[Any]) -> str:
    """Return the checksum of one field over all steps; empty vectors and pictures that are missing count, too."""
    total = hashlib.sha256()
    for value in values:
        if isinstance(value, float):
            value = np.float64(value)
        if isinstance(value, IntEnum):
            value = int(value)
        content = value.tobytes() if isinstance(value, np.ndarray | np.float64) else str(value).encode()
        total.update(len(content).to_bytes(8, "little") + content)
    return total.hexdigest()


def folder_contents(folder: Path) -> dict[str, Any]:
    """Return the contents of all runs and models in a folder."""
    runs = sorted(path.parent for path in folder.glob("*/metadata.yaml"))
    models = sorted(path for path in folder.glob("*.safetensors") if ".checkpoint" not in path.name)
    return {
        "runs": {path.name: run_contents(path) for path in runs},
        "arrays": {path.name: array_contents(load_arrays([path], images=True)) for path in runs},
        "models": {path.stem: model_contents(path) for path in models},
    }


if __name__ == "__main__":
    print(json.dumps(folder_contents(Path(sys.argv[1])), indent=1, sort_keys=True))
