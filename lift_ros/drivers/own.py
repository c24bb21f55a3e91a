"""Devices of a user's own classes, which a scenario names as "my_package.my_module:Name"."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lift_ros.configuration import nearest
from lift_ros.drivers.protocol import Axes, Axis, Camera
from lift_ros.errors import UserError
from lift_ros.own_code import find_own

_METHODS_OF_AXES = ("connect", "home", "position", "start", "busy", "stop", "close")
_METHODS_OF_CAMERA = ("connect", "frame", "close")


def arguments_of(data: Mapping[str, Any], known: Iterable[str]) -> dict[str, Any]:
    """Return the keys of a mapping that are arguments of the class which its `driver` names."""
    others = set(known)
    return {name: value for name, value in data.items() if name not in others}


def own_axes(read: Mapping[str, Any], layout: tuple[Axis, ...], where: str) -> Axes:
    """Return axes of the class that `driver` names, made of the layout and of the keys that are its own."""
    arguments = arguments_of(read, ("driver", "axes", "motion"))
    made: Axes = _make(read["driver"], (layout,), arguments, _METHODS_OF_AXES, where)
    if tuple(getattr(made, "layout", ())) != layout:
        raise UserError(
            f"{where}.driver {read['driver']} has another layout than it was made with; set self.layout = layout"
        )
    return made


def own_camera(data: Mapping[str, Any], where: str) -> Camera:
    """Return a camera of the class that `driver` names, made of the keys beside it."""
    camera: Camera = _make(data["driver"], (), arguments_of(data, ("driver",)), _METHODS_OF_CAMERA, where)
    return camera


def _make(
    name: str, first: tuple[object, ...], arguments: Mapping[str, Any], methods: Sequence[str], where: str
) -> Any:
    what = f"{where}.driver {name}"
    target = find_own(name, f"{where}.driver")
    if not inspect.isclass(target):
        raise UserError(f"{what} is no class; write one with the methods {', '.join(methods)}")
    for method in methods:
        if not callable(getattr(target, method, None)):
            raise UserError(f"{what} has no method {method}; lift_ros/drivers/protocol.py says what it must do")
    _check_arguments(inspect.signature(target), first, arguments, what)
    return target(*first, **arguments)


def _check_arguments(
    signature: inspect.Signature, first: tuple[object, ...], arguments: Mapping[str, Any], what: str
) -> None:
    parameters = list(signature.parameters.values())
    named = [each.name for each in parameters[len(first) :] if each.kind is not each.VAR_KEYWORD]
    if not any(each.kind is each.VAR_KEYWORD for each in parameters):
        for name in arguments:
            if name not in named:
                raise UserError(f"{what} takes no key {name!r}; {nearest(name, named)}")
    try:
        signature.bind(*first, **arguments)
    except TypeError as error:
        raise UserError(f"{what} cannot be made of the keys {', '.join(arguments) or '(none)'}: {error}") from error
