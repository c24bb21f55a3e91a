"""Attacks with model files: damaged bytes, and well-formed files that say what cannot be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from benchmark.attacks.damage import damaged, nasty, twisted
from lift_ros.policies.learned import MODEL_KIND, MODEL_VERSION, load_model
from lift_ros.policies.model_file import Tensors, pack, write_tensor_file
from lift_ros.scenario import load_scenario

_OBSERVATION, _ACTION, _WIDTH = 3, 2, 6
_RADIUS = 0.5


def write_small_model(path: Path, scenario: str) -> str:
    """Write a model that nobody trained, but that fits a scenario, and return its hash."""
    limits = load_scenario(scenario).limits
    return write_tensor_file(path, *_content(limits.observation_size, limits.action_size, limits.action_radius))


def _content(
    observation: int = _OBSERVATION, action: int = _ACTION, radius: float = _RADIUS
) -> tuple[Tensors, dict[str, Any]]:
    rng = np.random.default_rng(0)
    tensors: Tensors = {
        "observation.mean": np.zeros(observation, dtype=np.float32),
        "observation.deviation": np.ones(observation, dtype=np.float32),
    }
    for prefix, inputs, outputs in (("actor", observation, action), ("critics.0", observation + action, 1)):
        for layer, (size, wide) in enumerate([(inputs, _WIDTH), (_WIDTH, outputs)]):
            tensors[f"{prefix}.{layer}.weight"] = rng.normal(size=(wide, size)).astype(np.float32)
            tensors[f"{prefix}.{layer}.bias"] = rng.normal(size=wide).astype(np.float32)
    sizes = {"observation_size": observation, "action_size": action, "action_radius": radius, "critics": 1}
    return tensors, {"kind": MODEL_KIND, "version": MODEL_VERSION, "algorithm": "CQL", **sizes}


class Models:
    """Damaged models: changed bytes must be noticed, and an accepted model must keep its action within its radius."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "model.safetensors"
        self._tensors, self._description = _content()
        self._good, _ = pack(self._tensors, self._description)

    def case(self, rng: np.random.Generator) -> bool:
        """Load one and ask it for an action."""
        forged = rng.random() < 0.3
        content = self._forged(rng) if forged else damaged(self._good, rng)
        self._path.write_bytes(content)
        policy = load_model(self._path)
        action = policy.act(np.ones(policy.observation_size))
        within = bool(np.isfinite(action).all() and np.linalg.norm(action) <= policy.action_radius)
        return within and (forged or content == self._good)

    def _forged(self, rng: np.random.Generator) -> bytes:
        """Return a file with a right checksum and wrong content."""
        tensors, description = dict(self._tensors), self._description
        if rng.random() < 0.5:
            name = list(tensors)[int(rng.integers(len(tensors)))]
            value = np.asarray(_number(nasty(rng)), dtype=rng.choice(["f4", "f8", "i8", "u1"]))
            tensors[name] = np.resize(value, rng.integers(0, 9, int(rng.integers(0, 4))))
        else:
            description = twisted(description, rng)
        try:
            return pack(tensors, description)[0]
        except (ValueError, OverflowError):  # NaN cannot be written as JSON
            return damaged(self._good, rng)


def _number(value: Any) -> float:
    try:
        return float(np.nan_to_num(np.clip(float(value), 0, 255)))
    except (TypeError, ValueError, OverflowError):
        return 0.0
