"""Pictures through OpenCV: a capture device, a stream, a video file, or a folder that stands in for a camera."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from lift_ros.array_types import Picture
from lift_ros.configuration import Key
from lift_ros.drivers.frames import KnownFormat, no_frame, wait_for_exposure
from lift_ros.drivers.libraries import needed_by
from lift_ros.drivers.protocol import DriverFault
from lift_ros.positioning.pictures import PictureFormat

CAMERA_KEYS = {
    "source": Key(
        str, meaning="number of a capture device, address of a stream, a video file, or a folder of pictures"
    ),
    "grey": Key(bool, False, meaning="one value per pixel instead of three"),
    "latency_seconds": Key(
        float,
        0.2,
        low=0,
        high=10,
        meaning="longest time from exposure to arrival, buffers included (devices and streams)",
    ),
}
_STREAM_MS = 5000  # within which a stream opens, and brings each picture
_KINDS = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp")


class _Source(Protocol):
    """Where pictures come from."""

    def read(self, exposed_after: float, timeout: float) -> Picture | None:
        """Return the next picture, blue first, or None where there is none."""

    def close(self) -> None:
        """Release it."""


class OpenCvCamera:
    """Pictures of a source; of a file or a folder each is seen once per round, whenever it is asked for."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._settings, self._name = settings, settings["source"]
        self._format = KnownFormat(self._name)
        self._source: _Source | None = None

    @property
    def format(self) -> PictureFormat:
        """Of the picture that was taken on connecting."""
        return self._format.value

    def connect(self) -> None:
        """Open the source and look at one picture; files and folders begin anew after it."""
        self._format.forget()
        self._source = self._open()
        self.frame(time.monotonic(), 5.0)
        if not _is_live(self._name):
            self._source.close()
            self._source = self._open()

    def _open(self) -> _Source:
        if Path(self._name).expanduser().is_dir():
            return _Folder(Path(self._name).expanduser())
        return _Capture(self._name, self._settings["latency_seconds"])

    def frame(self, exposed_after: float, timeout: float) -> Picture:
        """Return the next picture that was exposed after the given time."""
        with needed_by("opencv", "pip install opencv-python-headless"):
            import cv2
        if self._source is None:
            raise DriverFault(f"camera {self._name} is not connected; connect it first")
        wait_for_exposure(exposed_after, timeout)
        pixels = self._source.read(exposed_after, timeout)
        if pixels is None:
            raise no_frame(self._name, timeout)
        if pixels.ndim == 3:
            pixels = cv2.cvtColor(pixels, cv2.COLOR_BGR2GRAY if self._settings["grey"] else cv2.COLOR_BGR2RGB)
        return self._format.checked(pixels)

    def close(self) -> None:
        """Release the source."""
        source, self._source = self._source, None
        self._format.forget()
        if source is not None:
            source.close()


def _is_live(source: str) -> bool:
    """Whether pictures come from a device or a stream, whether anybody wants them or not."""
    return source.isdecimal() or "://" in source


class _Folder:
    """The pictures of a folder by name, round and round."""

    def __init__(self, folder: Path) -> None:
        self._files = sorted(path for path in folder.iterdir() if path.suffix.lower() in _KINDS)
        if not self._files:
            raise DriverFault(f"camera.source {str(folder)!r} holds no picture; allowed: {', '.join(_KINDS)}")
        self._next = 0

    def read(self, exposed_after: float, timeout: float) -> Picture | None:
        """Return the next picture as it was stored."""
        import cv2

        path = self._files[self._next % len(self._files)]
        self._next += 1
        pixels: Picture | None = cv2.imread(str(path), cv2.IMREAD_ANYDEPTH | cv2.IMREAD_ANYCOLOR)
        if pixels is None:
            raise DriverFault(f"{path} is no picture that OpenCV can read; remove it")
        return pixels

    def close(self) -> None:
        """Do nothing: no file stays open."""


class _Capture:
    """A device or a stream, whose buffers may hold old pictures, or a video file, which begins anew at its end."""

    def __init__(self, source: str, latency: float) -> None:
        with needed_by("opencv", "pip install opencv-python-headless"):
            import cv2
        self._is_live, self._latency = _is_live(source), latency
        if not self._is_live and not Path(source).expanduser().is_file():
            raise DriverFault(
                f"camera.source is {source!r}; allowed: a number, an address such as rtsp://, a video file or a folder "
                "of pictures"
            )
        self._first_frame = cv2.CAP_PROP_POS_FRAMES
        if "://" in source:
            limits = [cv2.CAP_PROP_OPEN_TIMEOUT_MSEC, _STREAM_MS, cv2.CAP_PROP_READ_TIMEOUT_MSEC, _STREAM_MS]
            self._capture = cv2.VideoCapture(source, cv2.CAP_FFMPEG, limits)
        else:
            self._capture = cv2.VideoCapture(int(source) if self._is_live else str(Path(source).expanduser()))
        if not self._capture.isOpened():
            raise DriverFault(f"camera.source {source!r} cannot be opened; check the cable and who else uses it")

    def read(self, exposed_after: float, timeout: float) -> Picture | None:
        """Drop what may have been exposed too early: all that arrives within the latency."""
        deadline = time.monotonic() + timeout
        while self._grab():
            arrived = time.monotonic()
            if not self._is_live or arrived >= exposed_after + self._latency:
                there, pixels = self._capture.retrieve()
                return pixels if there else None
            if arrived > deadline:
                break
        return None

    def _grab(self) -> bool:
        if self._capture.grab():
            return True
        return not self._is_live and self._capture.set(self._first_frame, 0) and bool(self._capture.grab())

    def close(self) -> None:
        """Release the device or the file."""
        self._capture.release()
