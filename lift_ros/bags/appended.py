"""A file to which pieces are appended, each as a whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

from lift_ros.bags.files import write_all


class AppendedFile:
    """A file that grows; it is touched only once it is opened."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size = 0
        self._descriptor = -1

    def _open(self, flags: int) -> None:
        self._descriptor = os.open(self.path, os.O_RDWR | os.O_CLOEXEC | flags, 0o644)

    def _append(self, data: bytes | memoryview) -> None:
        """Write all of it or nothing."""
        size = len(data)
        try:
            write_all(self._descriptor, (data,), size)
        except OSError:
            self._cut(self.size)
            raise
        self.size += size

    def _cut(self, size: int) -> None:
        os.ftruncate(self._descriptor, size)
        os.lseek(self._descriptor, size, os.SEEK_SET)
        self.size = size

    def sync(self) -> None:
        """Make all that was written durable."""
        os.fdatasync(self._descriptor)

    def finish(self, end: bytes, name: str, *, sync: bool) -> None:
        """Append the end of the file, make it durable and give it its final name; after a failure it is as before."""
        before = self.size
        self._append(end)
        try:
            if sync:
                os.fsync(self._descriptor)
            os.rename(self.path, self.path.with_name(name))
        except OSError:
            self._cut(before)
            raise

    def discard(self) -> None:
        """Close and remove the file."""
        self.release()
        self.path.unlink(missing_ok=True)

    def release(self) -> None:
        """Close the file as it is."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
