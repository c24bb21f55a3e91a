"""The model file: one safetensors file whose header carries a JSON description. No pickle, no code."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lift_ros.errors import UserError

Tensors = dict[str, npt.NDArray[Any]]

DESCRIPTION_KEY = "lift_ros"
FILE_LIMIT = 2 * 2**30


@dataclass(frozen=True)
class TensorFile:
    """What was read: the tensors, the JSON description and the SHA-256 of the very bytes they came from."""

    tensors: Tensors
    description: dict[str, Any]
    hash: str


def pack(tensors: Mapping[str, npt.NDArray[Any]], description: Mapping[str, Any]) -> tuple[bytes, str]:
    """Return the bytes of the file and their SHA-256; the same content always gives the same bytes."""
    from safetensors import numpy as safetensors_numpy  # only here, since collecting needs no models

    text = json.dumps(description, sort_keys=True, allow_nan=False)
    ordered = {name: np.ascontiguousarray(tensors[name]) for name in sorted(tensors)}
    data = safetensors_numpy.save(ordered, metadata={DESCRIPTION_KEY: text})
    return data, hashlib.sha256(data).hexdigest()


def write_bytes(path: str | Path, data: bytes) -> None:
    """Write a file so that readers see the old one or the whole new one."""
    target = Path(path)
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with open(partial, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(partial, target)
    except OSError as error:
        with contextlib.suppress(OSError):
            partial.unlink()
        raise UserError(f"cannot write {target}: {error.strerror}; choose a folder you may write to") from error


def write_tensor_file(path: str | Path, tensors: Mapping[str, npt.NDArray[Any]], description: Mapping[str, Any]) -> str:
    """Write tensors and description as one file and return its SHA-256."""
    data, digest = pack(tensors, description)
    write_bytes(path, data)
    return digest


def read_tensor_file(path: str | Path, kind: str) -> TensorFile:
    """Read and check a file of `kind`: its header, its JSON, its tensors; nothing in it is executed."""
    from safetensors import SafetensorError
    from safetensors import numpy as safetensors_numpy

    source = Path(path)
    data = _read_bytes(source, kind)
    try:
        tensors = safetensors_numpy.load(data)
    except (SafetensorError, ValueError, KeyError, TypeError, OverflowError) as error:
        raise _bad(source, kind, f"its tensors cannot be read ({error})") from error
    description = _description(source, data, kind)
    for name, tensor in tensors.items():
        if np.issubdtype(tensor.dtype, np.floating) and not np.isfinite(tensor).all():
            raise _bad(source, kind, f"tensor {name!r} holds NaN or infinity")
    return TensorFile(tensors, description, hashlib.sha256(data).hexdigest())


def _read_bytes(source: Path, kind: str) -> bytes:
    try:
        size = source.stat().st_size
        if size > FILE_LIMIT:
            raise _bad(source, kind, f"it has {size} bytes, more than the limit of {FILE_LIMIT}")
        return source.read_bytes()
    except IsADirectoryError as error:
        raise UserError(f"{source} is a folder, not a {kind} file; name the file itself") from error
    except FileNotFoundError as error:
        raise UserError(f"there is no {kind} file {source}; check the path, or write one with `lift train`") from error
    except OSError as error:
        raise UserError(f"cannot read the {kind} file {source}: {error.strerror}") from error


def _description(source: Path, data: bytes, kind: str) -> dict[str, Any]:
    length = int.from_bytes(data[:8], "little")  # of the header, which is whole where the tensors could be read
    try:
        header = json.loads(data[8 : 8 + length])
        description = json.loads(header["__metadata__"][DESCRIPTION_KEY])
        if not isinstance(description, dict):
            raise TypeError("the description is no JSON object")
        found = description["kind"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise _bad(source, kind, "its header does not hold a description written by lift_ros") from error
    if found != kind:
        raise _bad(source, kind, f"it calls itself {found!r}")
    return description


def _bad(source: Path, kind: str, reason: str) -> UserError:
    return UserError(f"{source} is not a valid {kind} file: {reason}; write it again with `lift train`")
