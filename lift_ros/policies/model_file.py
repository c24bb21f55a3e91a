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

from lift_ros.console import print_warning
from lift_ros.errors import UserError
from lift_ros.untrusted import LARGEST_MODEL, brief, check_path, parse_json, read_regular

Tensors = dict[str, npt.NDArray[Any]]

DESCRIPTION_KEY = "lift_ros"
LARGEST = {"model": LARGEST_MODEL}  # [bytes], by kind
LARGEST_OTHER = 2**30  # a checkpoint holds what the optimisers remember, too
# The checksum stands first in a header of ours, so that it is found in bytes of which nothing is known yet.
_BEGINNING = b'{"__metadata__":{'
_CHECKSUM_KEY = "checksum"
_BEFORE_CHECKSUM = _BEGINNING + f'"{_CHECKSUM_KEY}":"'.encode()
_NO_CHECKSUM = b"0" * 64
_ALIGNMENT = 8  # [bytes] of a header, as safetensors pads it
_said: set[str] = set()  # files without a checksum that the user was told of


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
    data = _sealed(safetensors_numpy.save(ordered, metadata={DESCRIPTION_KEY: text}))
    return data, hashlib.sha256(data).hexdigest()


def _sealed(data: bytes) -> bytes:
    """Return the file with the checksum of all its other bytes in its header."""
    length = int.from_bytes(data[:8], "little")
    header = _BEFORE_CHECKSUM + _NO_CHECKSUM + b'",' + data[8 + len(_BEGINNING) : 8 + length].rstrip(b" ")
    header += b" " * (-len(header) % _ALIGNMENT)
    blank = len(header).to_bytes(8, "little") + header + data[8 + length :]
    return _with_checksum(blank, hashlib.sha256(blank).hexdigest().encode())


def _with_checksum(data: bytes, checksum: bytes) -> bytes:
    start = 8 + len(_BEFORE_CHECKSUM)
    return data[:start] + checksum + data[start + len(checksum) :]


def write_bytes(path: str | Path, data: bytes) -> None:
    """Write a file so that readers see the old one or the whole new one."""
    target = Path(path)
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    try:
        check_path(target).parent.mkdir(parents=True, exist_ok=True)
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
    description = _description(source, data, kind)
    try:
        tensors = safetensors_numpy.load(data)
    except (SafetensorError, ValueError, KeyError, TypeError, OverflowError) as error:
        raise _bad(source, kind, f"its tensors cannot be read ({error})") from error
    for name, tensor in tensors.items():
        if np.issubdtype(tensor.dtype, np.floating) and not np.isfinite(tensor).all():
            raise _bad(source, kind, f"tensor {name!r} holds NaN or infinity")
    return TensorFile(tensors, description, hashlib.sha256(data).hexdigest())


def _read_bytes(source: Path, kind: str) -> bytes:
    try:
        return read_regular(source, LARGEST.get(kind, LARGEST_OTHER))
    except IsADirectoryError as error:
        raise UserError(f"{source} is a folder, not a {kind} file; name the file itself") from error
    except FileNotFoundError as error:
        raise UserError(f"there is no {kind} file {source}; check the path, or write one with `lift train`") from error
    except OSError as error:
        raise UserError(
            f"cannot read the {kind} file {source}: {error.strerror}; name a file that `lift train` wrote"
        ) from error


def file_hash(path: str | Path) -> str:
    """Return the SHA-256 of a model file."""
    return hashlib.sha256(_read_bytes(Path(path), "model")).hexdigest()


def _description(source: Path, data: bytes, kind: str) -> dict[str, Any]:
    """Return what the header says, after the checksum was checked."""
    length = int.from_bytes(data[:8], "little")
    if 8 + length > len(data):
        raise _bad(source, kind, f"its header claims {length} bytes and {max(0, len(data) - 8)} are left")
    known = {DESCRIPTION_KEY, _CHECKSUM_KEY} if _is_sealed(source, data, kind) else {DESCRIPTION_KEY}
    try:
        metadata = parse_json(data[8 : 8 + length])["__metadata__"]
        description = parse_json(metadata[DESCRIPTION_KEY])
        if not isinstance(description, dict):
            raise TypeError("the description is no JSON object")
        found = description["kind"]
    except (ValueError, KeyError, TypeError) as error:
        raise _bad(source, kind, "its header does not hold a description written by lift_ros") from error
    if found != kind:
        raise _bad(source, kind, f"it calls itself {brief(found)}")
    if metadata.keys() != known:
        raise _bad(source, kind, "its header holds something else than lift_ros writes, so it was changed or damaged")
    if len(known) == 1 and str(source) not in _said:
        _said.add(str(source))
        print_warning("", f"{source} has no checksum, as files of earlier versions: damage to it can go unnoticed")
    return description


def _is_sealed(source: Path, data: bytes, kind: str) -> bool:
    """Whether a file has a checksum, which early versions did not write; one that does not match is refused."""
    start = 8 + len(_BEFORE_CHECKSUM)
    if data[8:start] != _BEFORE_CHECKSUM:
        return False
    stated = data[start : start + len(_NO_CHECKSUM)]
    if hashlib.sha256(_with_checksum(data, _NO_CHECKSUM)).hexdigest().encode() != stated:
        raise _bad(source, kind, "its bytes do not match its checksum, so it was changed or damaged")
    return True


def _bad(source: Path, kind: str, reason: str) -> UserError:
    return UserError(f"{source} is not a valid {kind} file: {reason}; write it again with `lift train`")
