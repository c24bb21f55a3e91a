"""A picture folder and a video file stand in for a camera."""

from __future__ import annotations

import time
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


def test_exposure_too_far_ahead_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "a.png", 10)
    camera = camera_of(tmp_path)
    camera.connect()
    with pytest.raises(DriverFault, match="time limit of 1 s"):
        camera.frame(time.monotonic() + 100, 1.0)
