"""Where the first fields of a message lie in its bytes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from lift_ros.bags.definitions import EPISODE_MSG, STEP_MSG

_CODES = {"uint8": "u1", "uint32": "<u4", "uint64": "<u8", "float64": "<f8"}


def prefix_dtype(message: str, sizes: Mapping[str, int], upto: str) -> np.dtype[Any]:
    """Return the first fields of a message, up to and with `upto`, as a structured dtype for numpy."""
    names, formats, offsets = ["encapsulation"], ["<u4"], [0]
    end = 0

    def add(name: str, code: str, count: int | None = None) -> None:
        nonlocal end
        kind = np.dtype(code)
        end += -end % kind.itemsize if count != 0 else 0
        names.append(name)
        formats.append(kind if count is None else (kind, (count,)))  # type: ignore[arg-type]
        offsets.append(4 + end)
        end += kind.itemsize * (1 if count is None else count)

    for line in {"Step": STEP_MSG, "Episode": EPISODE_MSG}[message].splitlines():
        kind, name = line.split(" ", 1)
        if "=" in name:
            continue
        if kind in ("std_msgs/Header", "builtin_interfaces/Time"):
            add(name, "<u4", 2)
            if kind == "std_msgs/Header":
                add(f"{name}.frame_id_size", "<u4")
                add(f"{name}.frame_id", "u1", 1)
        elif kind.startswith("string"):
            add(f"{name}_size", "<u4")
            add(name, "u1", sizes.get(name, 1))
        elif "[" in kind:
            add(f"{name}_size", "<u4")
            add(name, _CODES[kind.split("[")[0]], sizes.get(name, 0))
        elif kind in _CODES:
            add(name, _CODES[kind])
        else:
            raise ValueError(f"{message}.{name} is a picture, which ends what has a fixed place")
        if name == upto:
            break
    return np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": 4 + end})
