"""How the policy of a cell comes about: by the product's own training, or by a baseline that only studies need."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping

from lift_ros.scenario import Scenario
from lift_ros.studies.methods import DIFFUSION_QL, GTA, WARM_START
from lift_ros.studies.trained import Trained
from lift_ros.training.options import TrainingOptions
from lift_ros.training.runs import RecordedRuns

Trainer = Callable[[RecordedRuns, TrainingOptions, float, Scenario | None], Trained]
# By algorithm, in modules of their own, since d3rlpy takes long to load.
_BASELINES: Mapping[str, tuple[str, str]] = {
    WARM_START: ("lift_ros.studies.warm_start", "train_warm_start"),
    DIFFUSION_QL: ("lift_ros.studies.diffusion_ql", "train_diffusion_ql"),
    GTA: ("lift_ros.studies.gta", "train_gta"),
}


def train_policy(
    recorded: RecordedRuns, options: TrainingOptions, action_radius: float, scenario: Scenario | None
) -> Trained:
    """Train by the algorithm that the options name."""
    if options.algorithm in _BASELINES:
        module, name = _BASELINES[options.algorithm]
        trainer: Trainer = getattr(importlib.import_module(module), name)
        return trainer(recorded, options, action_radius, scenario)
    from lift_ros.training.trainer import train

    policy = train(recorded, options, action_radius=action_radius, threads=1, scenario=scenario).policy
    return Trained(policy, {"model": policy.hash})
