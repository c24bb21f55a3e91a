"""Images of a MuJoCo scene without a display."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lift_ros.array_types import ByteArray
from lift_ros.errors import UserError

_BACKENDS = {"egl": "mujoco.egl", "osmesa": "mujoco.osmesa", "glfw": "mujoco.glfw"}
_AUTOMATIC = ("egl", "osmesa")
LARGEST_SIDE = 4096  # of an image


def _make_context(size: int) -> Any:
    """Return a GL context of the backend that MUJOCO_GL names, or of the first that works here."""
    chosen = os.environ.get("MUJOCO_GL", "").strip().lower()
    if chosen and chosen not in _BACKENDS:
        raise UserError(f"MUJOCO_GL is {chosen!r}; allowed: {', '.join(_BACKENDS)}, or unset")
    failures = []
    for name in (chosen,) if chosen else _AUTOMATIC:
        try:
            context = importlib.import_module(_BACKENDS[name]).GLContext(size, size)
            context.make_current()
        except Exception as error:  # each backend fails in its own way where its library or device is missing
            failures.append(f"{name}: {type(error).__name__}: {error}")
        else:
            return context
    raise UserError(
        f"images need an OpenGL library without display: install libegl1 and libgl1, or libosmesa6, "
        f"or go without pictures ({'; '.join(failures)})"
    )


class OffscreenCamera:
    """Cameras whose square images stand side by side; takes hold of the GL library only when made."""

    def __init__(self, model: Any, size: int, views: Sequence[Mapping[str, Any]], field_of_view: float = 45.0) -> None:
        """Look at `model` as each of `views` says in the terms of MuJoCo's camera; free ones see so many degrees."""
        import mujoco

        self._mujoco = mujoco
        self._model = model
        model.vis.global_.offwidth = model.vis.global_.offheight = size
        model.vis.global_.fovy = field_of_view
        self._gl = _make_context(size)
        self._context = mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_100)
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, self._context)
        self._scene = mujoco.MjvScene(model, maxgeom=1000)
        self._options, self._perturbation = mujoco.MjvOption(), mujoco.MjvPerturb()
        self._viewport = mujoco.MjrRect(0, 0, size, size)
        self._cameras = [self._camera(view) for view in views]
        self._size = size

    def image(self, data: Any) -> ByteArray:
        """Return what the cameras see as (height, width, 3) rgb8."""
        self._gl.make_current()
        return np.ascontiguousarray(np.hstack([self._seen_by(camera, data)[::-1] for camera in self._cameras]))

    def _camera(self, view: Mapping[str, Any]) -> Any:
        camera = self._mujoco.MjvCamera()
        camera.type = self._mujoco.mjtCamera.mjCAMERA_FREE
        for name, value in view.items():
            setattr(camera, name, value)
        return camera

    def _seen_by(self, camera: Any, data: Any) -> ByteArray:
        mujoco = self._mujoco
        everything = mujoco.mjtCatBit.mjCAT_ALL
        mujoco.mjv_updateScene(self._model, data, self._options, self._perturbation, camera, everything, self._scene)
        mujoco.mjr_render(self._viewport, self._scene, self._context)
        pixels = np.empty((self._size, self._size, 3), dtype=np.uint8)
        mujoco.mjr_readPixels(pixels, None, self._viewport, self._context)
        return pixels

    def close(self) -> None:
        """Give the GL context back."""
        self._gl.make_current()
        self._context.free()
        self._gl.free()
