"""Attacks with model files: damaged bytes, and well-formed files that say what cannot be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from benchmark.attacks.damage import damaged, nasty, twisted
from lift_ros.policies.learned import MODEL_KIND, MODEL_VERSION, load_model
from lift_ros.policies.model_file import Tensors, pack

_OBSERVATION, _ACTION, _WIDTH = 3, 2, 6
_RADIUS = 0.5


def _content() -> tuple[Tensors, dict[str, Any]]:
    rng = np.random.default_rng(0)
    tensors: Tensors = {
        "observation.mean": np.zeros(_OBSERVATION, dtype=np.float32),
        "observation.deviation": np.ones(_OBSERVATION, dtype=np.float32),
    }
    for prefix, inputs, outputs in (("actor", _OBSERVATION, _ACTION), ("critics.0", _OBSERVATION + _ACTION, 1)):
        for layer, (size, wide) in enumerate([(inputs, _WIDTH), (_WIDTH, outputs)]):
            tensors[f"{prefix}.{layer}.weight"] = rng.normal(size=(wide, size)).astype(np.float32)
            tensors[f"{prefix}.{layer}.bias"] = rng.normal(size=wide).astype(np.float32)
    sizes = {"observation_size": _OBSERVATION, "action_size": _ACTION, "action_radius": _RADIUS, "critics": 1}
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
