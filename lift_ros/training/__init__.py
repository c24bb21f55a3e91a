"""Episodes to a policy: CQL and friends, and the model file; names are imported when first used, torch being slow."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lift_ros.policies.learned import LearnedPolicy, load_model
    from lift_ros.training.onnx_export import export_onnx
    from lift_ros.training.options import TrainingOptions, preset
    from lift_ros.training.trainer import TrainingResult, train

__all__ = ["LearnedPolicy", "TrainingOptions", "TrainingResult", "export_onnx", "load_model", "preset", "train"]

_HOMES = {
    "LearnedPolicy": "lift_ros.policies.learned",
    "load_model": "lift_ros.policies.learned",
    "TrainingOptions": "lift_ros.training.options",
    "preset": "lift_ros.training.options",
    "TrainingResult": "lift_ros.training.trainer",
    "train": "lift_ros.training.trainer",
    "export_onnx": "lift_ros.training.onnx_export",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
