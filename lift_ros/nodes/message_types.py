"""From the name of a message type to its class, where its package is installed."""

from __future__ import annotations

import importlib
import re
from typing import Any

_NAME = re.compile(r"([a-z][a-z0-9_]*)/(msg)/([A-Za-z][A-Za-z0-9_]*)")


def message_class(type_name: str) -> Any:
    """Return the class of `package/msg/Name`; ImportError where it is not installed here."""
    match = _NAME.fullmatch(type_name)
    if match is None:
        raise ImportError(f"{type_name!r} is no message type of the form package/msg/Name")
    package, kind, name = match.groups()
    try:
        return getattr(importlib.import_module(f"{package}.{kind}"), name)
    except AttributeError as error:
        raise ImportError(f"package {package} has no message {name}") from error
