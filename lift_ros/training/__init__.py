"""From runs to a model: `train` what `load_runs` gives, with a `preset` of `TrainingOptions`; `export_onnx` of a model.

Names are imported when they are first used, since torch takes a while.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lift_ros.lazy import lazily

if TYPE_CHECKING:
    from lift_ros.policies.learned import LearnedPolicy, load_model
    from lift_ros.training.onnx_export import export_onnx
    from lift_ros.training.options import TrainingOptions, preset
    from lift_ros.training.runs import load_runs
    from lift_ros.training.trainer import TrainingResult, train

__all__ = [
    "LearnedPolicy",
    "TrainingOptions",
    "TrainingResult",
    "export_onnx",
    "load_model",
    "load_runs",
    "preset",
    "train",
]

__getattr__ = lazily(
    __name__,
    {
        "lift_ros.policies.learned": "LearnedPolicy load_model",
        "lift_ros.training.onnx_export": "export_onnx",
        "lift_ros.training.options": "TrainingOptions preset",
        "lift_ros.training.runs": "load_runs",
        "lift_ros.training.trainer": "TrainingResult train",
    },
)
