"""The kinds of arrays that travel through the package, each named once."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

FloatArray: TypeAlias = npt.NDArray[np.float64]
Float32Array: TypeAlias = npt.NDArray[np.float32]
IntArray: TypeAlias = npt.NDArray[np.int64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
ByteArray: TypeAlias = npt.NDArray[np.uint8]
Picture: TypeAlias = npt.NDArray[Any]  # uint8, uint16 or float32, (height, width) or (height, width, 3)
