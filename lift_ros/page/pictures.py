"""Pictures of plants as browsers show them."""

from __future__ import annotations

import base64

import numpy as np

from lift_ros.array_types import Picture
from lift_ros.positioning.pictures import for_eyes

_QUALITY = 88
_SHORTEST_SIDE = 240  # smaller pictures are sent as they are and enlarged by the browser, pixel by pixel


def data_url(picture: Picture) -> str:
    """Return a picture as an address that holds it: JPEG where it is large, else without loss."""
    import cv2

    shown = np.asarray(for_eyes(picture))
    if shown.dtype == np.uint16:
        shown = (shown // 256 if shown.max() > 4095 else shown // 16).astype(np.uint8)  # cameras of 12 bits are usual
    if shown.ndim == 3:
        shown = shown[:, :, ::-1]  # OpenCV has blue first
    kind, options = ("png", [cv2.IMWRITE_PNG_COMPRESSION, 1])
    if min(shown.shape[:2]) > _SHORTEST_SIDE:
        kind, options = ("jpg", [cv2.IMWRITE_JPEG_QUALITY, _QUALITY])
    _, data = cv2.imencode(f".{kind}", np.ascontiguousarray(shown), options)
    return f"data:image/{'png' if kind == 'png' else 'jpeg'};base64,{base64.b64encode(data.tobytes()).decode()}"
