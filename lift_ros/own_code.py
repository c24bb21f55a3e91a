"""What users wrote themselves, by name: a class or a function as "my_package.my_module:Name"."""

from __future__ import annotations

import importlib
from typing import Any

from lift_ros.configuration import nearest
from lift_ros.errors import UserError


def is_own(name: str) -> bool:
    """Whether a name stands for what a user wrote."""
    return ":" in name


def find_own(spec: str, what: str) -> Any:
    """Return the class or function that "module:Name" names, or say why it cannot be had."""
    module_name, _, attribute = spec.partition(":")
    if not module_name or not attribute.isidentifier():
        raise UserError(f'{what} {spec!r} is not of the form "my_package.my_module:Name"')
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise UserError(f"{what} {spec}: module {module_name!r} needs {error.name!r}: install it") from error
        raise UserError(
            f"{what} {spec}: there is no module {error.name!r} in this terminal: source the workspace that has it "
            f"(source install/setup.bash), check the spelling, or add its folder to PYTHONPATH"
        ) from error
    except Exception as error:
        raise UserError(f"{what} {spec}: importing {module_name!r} failed: {type(error).__name__}: {error}") from error
    if not hasattr(module, attribute):
        names = [name for name in vars(module) if not name.startswith("_")]
        raise UserError(f"{what} {spec}: module {module_name!r} has no {attribute!r}; {nearest(attribute, names)}")
    return getattr(module, attribute)
