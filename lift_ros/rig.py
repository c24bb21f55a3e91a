"""All that the author of a rig imports: what a plant node derives from and returns, what a routine has to be, models.

ROS is loaded when `PlantNode` or `run` is first used, so that routines can be tried without it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lift_ros.errors import UserError
from lift_ros.graph.parameters import PLANT_PARAMETERS, Parameter
from lift_ros.lazy import lazily
from lift_ros.nodes.sourced import require_ros
from lift_ros.policies.protocol import Policy, SeededPolicy
from lift_ros.positioning.problem import Limits, Observed

if TYPE_CHECKING:
    from lift_ros.nodes.base import run
    from lift_ros.nodes.plant import PlantNode
    from lift_ros.policies.learned import load_model

__all__ = [
    "PLANT_PARAMETERS",
    "Limits",
    "Observed",
    "Parameter",
    "PlantNode",
    "Policy",
    "SeededPolicy",
    "UserError",
    "load_model",
    "run",
]

_WITH_ROS = {"lift_ros.nodes.plant": "PlantNode", "lift_ros.nodes.base": "run"}
_lazy = lazily(__name__, {**_WITH_ROS, "lift_ros.policies.learned": "load_model"})


def __getattr__(name: str) -> Any:
    if name in _WITH_ROS.values():
        require_ros()  # a sentence instead of what Python says of a module that is missing
    return _lazy(name)
