"""Policies by name, and a user's own routines by "module:Name"."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lift_ros.configuration import Key, check_mapping, nearest
from lift_ros.errors import UserError
from lift_ros.policies.coordinate_walk import DEFAULT_STEP, STEP_FLOOR, CoordinateWalk
from lift_ros.policies.protocol import Policy

_WALK_ARGUMENTS = {
    "step": Key(float, DEFAULT_STEP, above=0),
    "floor": Key(float, STEP_FLOOR, above=0),
    "goal": Key(list, None, optional=True),
}
POLICY_ARGUMENTS: dict[str, dict[str, Key]] = {
    "coordinate_walk": _WALK_ARGUMENTS,
}
_POLICIES: dict[str, Callable[..., Policy]] = {
    "coordinate_walk": CoordinateWalk,
}


def is_routine(spec: str) -> bool:
    """Whether `spec` names a user's routine as "module:Name"."""
    return ":" in spec


def check_policy(spec: str, arguments: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return the arguments of a policy with defaults filled in; a user's routine takes any."""
    if is_routine(spec):
        return dict(arguments)
    if spec not in POLICY_ARGUMENTS:
        raise UserError(
            f"{where}: unknown policy {spec!r}; {nearest(spec, POLICY_ARGUMENTS)}; "
            f'a routine of your own is written as "my_package.my_module:MyRoutine"'
        )
    return check_mapping(dict(arguments), POLICY_ARGUMENTS[spec], f"{where}: arguments")


def load_policy(spec: str, arguments: Mapping[str, Any], observation_size: int, action_size: int) -> Policy:
    """Return the policy that `spec` names, for a plant with these sizes."""
    checked = check_policy(spec, arguments, f"policy {spec}")
    return _POLICIES[spec](action_size, **checked)
