"""Which observations a model's training data cover: fitted in training, kept in its file, asked in microseconds."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lift_ros.array_types import Float32Array
from lift_ros.policies.model_file import Tensors

MEAN, WHITENING = "coverage.mean", "coverage.whitening"
MARGIN = 1.5
_SMALLEST_VARIANCE = 1e-4  # along a principal axis, where the variance of an entry is 1


def fit_coverage(observations: npt.NDArray[np.floating], most_axes: int | None = None) -> Tensors:
    """Return the region that `observations` (one per row) cover, as tensors of a model file.

    It is the ellipsoid of their covariance around their mean, as large as to hold all of them, and half as large again.
    An ellipsoid, because it is convex: a policy that cuts across between the axis-parallel ways of a routine stays in
    it, and so do fresh starts, of which few are farther out than the farthest of the data. Along axes in which the data
    hardly vary it is given some width, and entries that never vary are not watched: they tell no scale. Where entries
    are many, the `most_axes` principal axes along which they vary most are watched alone.
    """
    values = observations.astype(np.float64)
    mean, deviation = values.mean(axis=0), values.std(axis=0)
    varies = deviation > np.finfo(np.float32).eps * (1.0 + np.abs(mean))
    scale = np.divide(1.0, deviation, out=np.zeros_like(deviation), where=varies)
    standard = (values - mean) * scale
    variances, axes = np.linalg.eigh(standard.T @ standard / len(standard))
    if most_axes is not None:
        variances, axes = variances[-most_axes:], axes[:, -most_axes:]
    whitening = scale[:, None] * axes / np.sqrt(np.maximum(variances, _SMALLEST_VARIANCE))
    farthest = np.sqrt(np.square((values - mean) @ whitening).sum(axis=1).max())
    whitening /= MARGIN * max(farthest, 1.0)
    return {MEAN: mean.astype(np.float32), WHITENING: whitening.astype(np.float32)}


def is_covered(observation: Float32Array, mean: Float32Array, whitening: Float32Array) -> bool:
    """Whether an observation lies in the region that these tensors describe."""
    whitened = (observation - mean) @ whitening
    return bool(np.dot(whitened, whitened) <= 1.0)
