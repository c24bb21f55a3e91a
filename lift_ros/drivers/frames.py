"""What all cameras share: waiting for the moment of exposure, and pictures of one known format."""

from __future__ import annotations

import time

import numpy as np

from lift_ros.array_types import Picture
from lift_ros.drivers.protocol import DriverFault
from lift_ros.errors import UserError
from lift_ros.positioning.pictures import PictureFormat


def wait_for_exposure(exposed_after: float, timeout: float) -> None:
    """Return when an exposure may begin."""
    ahead = exposed_after - time.monotonic()
    if ahead > timeout:
        raise DriverFault(
            f"a picture was asked for {ahead:.3g} s ahead, with a time limit of {timeout:.3g} s; raise the limit"
        )
    if ahead > 0:
        time.sleep(ahead)


def no_frame(camera: str, timeout: float, reason: object = "") -> DriverFault:
    """Return the fault of a camera that delivers nothing."""
    told = f" ({reason})" if str(reason) else ""
    return DriverFault(
        f"camera {camera} delivered no picture, time limit {timeout:.3g} s{told}; check its cable and its trigger"
    )


class KnownFormat:
    """The format that the first picture had, which every later one must have."""

    def __init__(self, camera: str) -> None:
        self._camera = camera
        self._format: PictureFormat | None = None

    @property
    def value(self) -> PictureFormat:
        """The format; DriverFault before there was a picture."""
        if self._format is None:
            raise DriverFault(f"camera {self._camera} is not connected; connect it first")
        return self._format

    def forget(self) -> None:
        """Take the format of the next picture."""
        self._format = None

    def checked(self, picture: Picture) -> Picture:
        """Return the picture in memory of its own; DriverFault where it has another format."""
        try:
            found = PictureFormat.of(picture)
        except UserError as error:
            raise DriverFault(f"camera {self._camera}: {error}; choose another pixel format") from error
        self._format = self._format or found
        if found != self._format:
            raise DriverFault(
                f"camera {self._camera} delivered a picture of {found}; allowed: {self._format}, as when it was "
                "connected; connect it again after changing its settings"
            )
        return np.array(picture, order="C")
