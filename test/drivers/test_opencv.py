"""A picture folder and a video file stand in for a camera."""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from collections import deque
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from lift_ros.drivers.protocol import Camera, DriverFault
from lift_ros.drivers.table import make_camera


def camera_of(source: Path, **more: Any) -> Camera:
    return make_camera({"driver": "opencv", "source": str(source), **more})


def write(path: Path, level: int, kind: str = "uint8", size: tuple[int, ...] = (6, 8, 3)) -> None:
    picture = np.zeros(size, dtype=kind)
    picture[..., -1] = level  # red, since OpenCV begins with blue
    assert cv2.imwrite(str(path), picture)


def look(camera: Camera) -> np.ndarray:
    return camera.frame(time.monotonic(), 5.0)


def test_folder_is_shown_by_name_round_and_round(tmp_path: Path) -> None:
    for name, level in (("b.png", 20), ("a.png", 10)):
        write(tmp_path / name, level)
    (tmp_path / "notes.txt").write_text("no picture")
    camera = camera_of(tmp_path)
    camera.connect()
    assert [int(look(camera)[0, 0, 0]) for _ in range(3)] == [10, 20, 10]
    assert str(camera.format) == "8×6 rgb8"
    camera.close()


@pytest.mark.parametrize(("kind", "encoding"), [("uint8", "mono8"), ("uint16", "mono16")])
def test_grey(tmp_path: Path, kind: str, encoding: str) -> None:
    write(tmp_path / "a.png", 100, kind)
    camera = camera_of(tmp_path, grey=True)
    camera.connect()
    assert (camera.format.encoding, look(camera).shape) == (encoding, (6, 8))


def test_picture_of_another_size_is_a_fault(tmp_path: Path) -> None:
    write(tmp_path / "a.png", 10)
    write(tmp_path / "b.png", 10, size=(6, 9, 3))
    camera = camera_of(tmp_path)
    camera.connect()
    look(camera)
    with pytest.raises(DriverFault, match="9×6 rgb8; allowed: 8×6 rgb8"):
        look(camera)


def test_video_begins_anew_at_its_end(tmp_path: Path) -> None:
    path = tmp_path / "clip.avi"
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter_fourcc(*"MJPG"), 10, (32, 32))
    for level in (40, 200):
        writer.write(np.full((32, 32, 3), level, dtype=np.uint8))
    writer.release()
    camera = camera_of(path, grey=True)
    camera.connect()
    assert np.allclose([look(camera).mean() for _ in range(3)], [40, 200, 40], atol=5)
    camera.close()


@pytest.mark.parametrize(("file", "said"), [("none.avi", "allowed: a number"), ("empty.png", "cannot|no picture")])
def test_bad_source_is_named(tmp_path: Path, file: str, said: str) -> None:
    (tmp_path / "empty.png").touch()
    with pytest.raises(DriverFault, match=said):
        camera_of(tmp_path / file).connect()


def test_empty_folder_and_broken_picture(tmp_path: Path) -> None:
    with pytest.raises(DriverFault, match="holds no picture"):
        camera_of(tmp_path).connect()
    (tmp_path / "a.png").write_bytes(b"no picture")
    with pytest.raises(DriverFault, match="a.png is no picture"):
        camera_of(tmp_path).connect()


class Stream:
    """A network camera: sends numbered grey pictures on and on, each `delay` after its exposure, until it is `off`."""

    def __init__(self, delay: float = 0.0) -> None:
        self.off = threading.Event()
        self.exposed: dict[int, float] = {}  # when each level was exposed last
        stream = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "multipart/x-mixed-replace; boundary=picture")
                self.end_headers()
                with contextlib.suppress(OSError):
                    stream.send(self.wfile, delay)

            def log_message(self, *_: object) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.address = f"http://127.0.0.1:{self._server.server_port}/stream.mjpg"

    def send(self, file: Any, delay: float) -> None:
        waiting: deque[tuple[float, bytes]] = deque()
        for number in itertools.count():
            if self.off.is_set():
                threading.Event().wait(60)
            level = 10 * (number % 25)
            self.exposed[level] = time.monotonic()
            picture = cv2.imencode(".jpg", np.full((32, 32), level, np.uint8))[1].tobytes()
            waiting.append((time.monotonic() + delay, picture))
            while waiting and waiting[0][0] <= time.monotonic():
                part = waiting.popleft()[1]
                head = f"--picture\r\nContent-Type: image/jpeg\r\nContent-Length: {len(part)}\r\n\r\n"
                file.write(head.encode() + part + b"\r\n")
            time.sleep(0.04)

    def exposure_of(self, picture: np.ndarray) -> float:
        return self.exposed[10 * round(float(picture.mean()) / 10)]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def late() -> Iterator[Stream]:
    stream = Stream(delay=0.3)
    yield stream
    stream.close()


def test_pictures_that_were_exposed_before_are_dropped_for_as_long_as_they_may_be_on_their_way(late: Stream) -> None:
    told, untold = (
        make_camera({"driver": "opencv", "source": late.address, "grey": True, "latency_seconds": seconds})
        for seconds in (0.6, 0.0)
    )
    for camera in (told, untold):
        camera.connect()
    for _ in range(3):
        wanted = time.monotonic()
        assert late.exposure_of(told.frame(wanted, 10.0)) >= wanted
    wanted = time.monotonic()
    assert late.exposure_of(untold.frame(wanted, 10.0)) < wanted  # so the time above is what keeps old ones out
    for camera in (told, untold):
        camera.close()


def test_stream_that_stops_is_a_fault_and_returns(late: Stream) -> None:
    camera = make_camera({"driver": "opencv", "source": late.address, "grey": True})
    camera.connect()
    late.off.set()
    with pytest.raises(DriverFault, match="delivered no picture"):
        while True:
            camera.frame(time.monotonic(), 0.5)
    camera.close()


def test_address_that_nobody_serves_is_named() -> None:
    camera = make_camera({"driver": "opencv", "source": "http://127.0.0.1:9/stream.mjpg"})
    with pytest.raises(DriverFault, match="cannot be opened"):
        camera.connect()


def test_exposure_too_far_ahead_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "a.png", 10)
    camera = camera_of(tmp_path)
    camera.connect()
    with pytest.raises(DriverFault, match="time limit of 1 s"):
        camera.frame(time.monotonic() + 100, 1.0)
