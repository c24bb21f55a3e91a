"""Device libraries come as extras: where one is missing, a sentence says what installs it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from lift_ros.errors import UserError
from lift_ros.lazy import quietly


@contextlib.contextmanager
def needed_by(driver: str, remedy: str = "") -> Iterator[None]:
    """Import what a driver needs; `remedy` where it is not the extra of the driver's own name."""
    try:
        with quietly():
            yield
    except ImportError as error:
        missing = error.name or str(error)
        remedy = remedy or f"pip install 'lift_ros[{driver}]'"
        raise UserError(f"driver {driver} needs {missing}, which this Python does not have: {remedy}") from error
