"""The lens as the ray tracer `relign` of the paper's authors draws it: slow, so that pictures are kept by position."""

from __future__ import annotations

import os
import warnings
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np

from lift_ros.array_types import ByteArray, FloatArray, Picture
from lift_ros.errors import UserError
from lift_ros.lazy import quietly
from lift_ros.positioning.dynamics import Beginning
from lift_ros.positioning.pictured import with_noise
from lift_ros.positioning.pictures import PictureFormat
from lift_ros.seeds import derive_seed, generator

SPECS = ("od", "l2", "l3")  # objectives that relign knows
REMEDY = "pip install 'lift_ros[optics]'"
_ALIGNED = 0.5  # in relign's positions, which reach from 0 to 1 where displacements reach from −2 to 2
_TRAVEL = 4.0
_DIGITS = 6  # of positions that tell pictures apart
_KEPT = 20_000  # pictures in memory
_WHITE, _BRIGHT_SHARE = 0.9, 99.0  # this percentile of the aligned picture becomes this brightness


def _import_lens() -> Any:
    try:
        with quietly():
            from relign.generator import LensEnv
    except ImportError as error:
        raise UserError(f"renderer relign needs the ray tracer relign: {REMEDY}; or choose renderer: fast") from error
    return LensEnv


class RelignLens:
    """Renders the star through a real objective, in grey; the same position always gives the same picture."""

    def __init__(self, picture_size: int, noise: float, spec: str, samples: int, cache: str | None) -> None:
        self.format = PictureFormat(picture_size, picture_size, "mono8")
        self._noise = noise
        self._lens = _make_lens(picture_size, spec, samples)
        self._folder = None if cache is None else _make_folder(cache, f"relign-{spec}-{samples}-{picture_size}")
        self._kept: OrderedDict[tuple[float, ...], ByteArray] = OrderedDict()
        self._gain = 1.0
        self._gain = _WHITE / float(np.percentile(self._render(np.zeros(5)), _BRIGHT_SHARE))
        self._seed = 0
        self._goal = np.zeros(5)

    def begin(self, seed: int, start: Beginning) -> None:
        """Aim at the optimum of this episode."""
        self._seed, self._goal = seed, start.goal

    def picture(self, position: FloatArray, step: int) -> Picture:
        """Return what the sensor sees at a position."""
        levels = self._look_up(np.round(position - self._goal, _DIGITS) + 0.0)
        return with_noise(levels.astype(np.float32) / np.float32(255), self._noise, self._seed, step)

    def close(self) -> None:
        """Forget the pictures in memory."""
        self._kept.clear()

    def _look_up(self, displacement: FloatArray) -> ByteArray:
        key = tuple(displacement.tolist())
        if key not in self._kept:
            self._kept[key] = self._read_or_draw(displacement)
            if len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        self._kept.move_to_end(key)
        return self._kept[key]

    def _read_or_draw(self, displacement: FloatArray) -> ByteArray:
        if self._folder is None:
            return self._draw(displacement)
        path = self._folder / f"{derive_seed(0, *displacement.tobytes()):016x}.npy"
        if path.is_file():
            kept: ByteArray = np.load(path, allow_pickle=False)
            if kept.shape == self.format.shape and kept.dtype == self.format.dtype:
                return kept
        drawn = self._draw(displacement)
        unfinished = path.with_suffix(f".{os.getpid()}.tmp")  # others may write the same picture
        with unfinished.open("wb") as file:
            np.save(file, drawn)
        unfinished.replace(path)
        return drawn

    def _draw(self, displacement: FloatArray) -> ByteArray:
        levels = np.clip(255 * self._gain * self._render(displacement) + 0.5, 0, 255)
        return np.asarray(levels, dtype=np.uint8)

    def _render(self, displacement: FloatArray) -> FloatArray:
        self._lens.random = generator(0, "relign")  # rays are drawn anew for each picture
        position = np.clip(_ALIGNED + displacement / _TRAVEL, 0, 1)
        return np.asarray(self._lens._make_image(position)[..., 0], dtype=np.float64)


def _make_lens(picture_size: int, spec: str, samples: int) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # there is no reference picture of this size, and none is needed
        lens = _import_lens()(
            spec=spec,
            ref_pattern="siemens",
            n_actions=5,
            sample_count=samples,
            width=picture_size,
            height=picture_size,
            seed=0,
        )
        scene = dict(lens.config["lens_scene_specs"])
        scene["emitter_distance"] = float(np.ravel(scene["emitter_distance"])[0])  # numpy converts no list of one
        lens.config["lens_scene_specs"] = scene
        lens.reset()
    return lens


def _make_folder(cache: str, name: str) -> Path:
    folder = Path(cache).expanduser() / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"plant.cache is {cache!r}, which cannot be made ({error.strerror}); name a folder") from error
    return folder
