"""The producer in genicam's wheel: three cameras that show one colour each."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from lift_ros.drivers.protocol import Camera, DriverFault
from lift_ros.drivers.table import make_camera
from lift_ros.errors import UserError

pytest.importorskip("harvesters", reason="pip install 'lift_ros[genicam]'")
pytest.importorskip("genicam", reason="pip install 'lift_ros[genicam]'")

WAIT = 20.0


def camera_of(**more: Any) -> Camera:
    return make_camera({"driver": "genicam", "producer": "demo", "device": "0", **more})


@pytest.fixture
def camera(request: pytest.FixtureRequest) -> Iterator[Camera]:
    made = camera_of(**request.param)
    made.connect()
    yield made
    made.close()


@pytest.mark.parametrize(
    ("camera", "encoding"),
    [({}, "rgb8"), ({"properties": {"PixelFormat": "Mono8"}}, "mono8")],
    indirect=["camera"],
)
def test_frames_have_the_format_that_is_told(camera: Camera, encoding: str) -> None:
    for _ in range(2):
        picture = camera.frame(time.monotonic(), WAIT)
        assert camera.format.encoding == encoding
        assert (picture.shape, picture.dtype) == (camera.format.shape, camera.format.dtype)
    assert picture.shape[:2] == (400, 400)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"device": "7"}, "camera.device is '7'; allowed: one of 0, 1, 2"),
        ({"device": ""}, "allowed: one of 0, 1, 2"),
        ({"properties": {"PixelFormat": "Pink"}}, "PixelFormat cannot be 'Pink'"),
        ({"producer": "/nowhere.cti"}, "which is no file"),
    ],
)
def test_bad_settings_are_named(more: dict[str, Any], said: str) -> None:
    camera = camera_of(**more)
    try:
        with pytest.raises(UserError, match=said):
            camera.connect()
    finally:
        camera.close()


def test_closed_camera_gives_no_picture() -> None:
    camera = camera_of()
    camera.close()
    with pytest.raises(DriverFault, match="not connected"):
        camera.frame(time.monotonic(), WAIT)
