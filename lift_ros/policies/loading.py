"""Policies by name, and a user's own routines by "module:Name"."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lift_ros.configuration import Key, check_mapping, nearest
from lift_ros.errors import UserError
from lift_ros.policies.coordinate_walk import DEFAULT_STEP, MOST_NOISE, STEP_FLOOR, CoordinateWalk, NoisyCoordinateWalk
from lift_ros.policies.displacement import DirectPolicy
from lift_ros.policies.protocol import Policy
from lift_ros.policies.routines import load_routine
from lift_ros.policies.secant import SecantPolicy

_GOAL = {
    "goal": Key(list, None, optional=True, meaning="Position to go to; null where observations are displacements.")
}
_RADIUS = {"action_radius": Key(float, above=0, meaning="Longest action; the plant's unless given.")}
_WALK = {
    "step": Key(float, DEFAULT_STEP, above=0, meaning="Length of the first steps, halved after each round."),
    "floor": Key(float, STEP_FLOOR, above=0, meaning="Length below which steps are not halved any more."),
    **_GOAL,
}
_NOISE = "Deviation of the noise on each step, as a multiple of its length."
_GAIN = "First guess of how far an action of length 1 moves."

_POLICIES: dict[str, tuple[Callable[..., Policy], dict[str, Key]]] = {
    "coordinate_walk": (CoordinateWalk, _WALK),
    "coordinate_walk_generator": (CoordinateWalk, _WALK),
    "noisy_coordinate_walk": (
        NoisyCoordinateWalk,
        {**_WALK, **_RADIUS, "noise": Key(float, 1.0, low=0, high=MOST_NOISE, meaning=_NOISE)},
    ),
    "direct": (DirectPolicy, {**_RADIUS, **_GOAL}),
    "secant": (SecantPolicy, {**_RADIUS, **_GOAL, "gain": Key(float, 1.0, above=0, meaning=_GAIN)}),
}
POLICY_ARGUMENTS = {name: keys for name, (_, keys) in _POLICIES.items()}


def is_routine(spec: str) -> bool:
    """Whether `spec` names a user's routine as "module:Name"."""
    return ":" in spec


def check_policy(spec: str, arguments: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return the arguments of a policy with defaults filled in; a user's routine takes what it takes."""
    if is_routine(spec):
        return dict(arguments)
    if spec not in _POLICIES:
        raise UserError(
            f"{where}: unknown policy {spec!r}; {nearest(spec, _POLICIES)}; "
            f'a routine of your own is written as "my_package.my_module:MyRoutine"'
        )
    return check_mapping(dict(arguments), POLICY_ARGUMENTS[spec], f"{where}.arguments")


def load_policy(spec: str, arguments: Mapping[str, Any], observation_size: int, action_size: int) -> Policy:
    """Return the policy that `spec` names, for a plant with these sizes."""
    checked = check_policy(spec, arguments, f"policy {spec}")
    if is_routine(spec):
        return load_routine(spec, checked, action_size)
    if observation_size % action_size:
        raise UserError(
            f"policy {spec} reads displacements of {action_size} entries from an observation, "
            f"but it has {observation_size}: write a routine of your own for this plant"
        )
    return _POLICIES[spec][0](action_size, **checked)
