"""How the policy of a cell comes about: by the product's own training, or by a baseline that only studies need."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lift_ros.policies.protocol import Policy
from lift_ros.scenario import Scenario
from lift_ros.training.options import TrainingOptions
from lift_ros.training.runs import RecordedRuns


@dataclass(frozen=True)
class Trained:
    """A policy, and what its training tells."""

    policy: Policy
    facts: Mapping[str, Any] = field(default_factory=dict)


Trainer = Callable[[RecordedRuns, TrainingOptions, float, Scenario | None], Trained]


def train_policy(
    recorded: RecordedRuns, options: TrainingOptions, action_radius: float, scenario: Scenario | None
) -> Trained:
    """Train by the algorithm that the options name."""
    return _OWN.get(options.algorithm, _train)(recorded, options, action_radius, scenario)


def _train(
    recorded: RecordedRuns, options: TrainingOptions, action_radius: float, scenario: Scenario | None
) -> Trained:
    from lift_ros.training.trainer import train

    policy = train(recorded, options, action_radius=action_radius, threads=1, scenario=scenario).policy
    return Trained(policy, {"model": policy.hash})


_OWN: Mapping[str, Trainer] = {}
