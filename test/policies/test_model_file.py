"""A model file is read whole or refused; nothing in it is executed."""

from __future__ import annotations

import json
import os
import pickle
import re
from pathlib import Path

import numpy as np
import pytest
from training_samples import model_content, write_model

from lift_ros.errors import UserError
from lift_ros.policies.learned import load_model
from lift_ros.policies.model_file import pack, read_tensor_file, write_tensor_file


def test_reads_back_what_was_written(tmp_path: Path) -> None:
    tensors, description = model_content()
    digest = write_tensor_file(tmp_path / "deep" / "m.safetensors", tensors, description)
    file = read_tensor_file(tmp_path / "deep" / "m.safetensors", "model")
    assert file.description == description and file.hash == digest
    assert all(np.array_equal(file.tensors[name], tensors[name]) for name in tensors)


def test_the_same_content_gives_the_same_bytes() -> None:
    tensors, description = model_content()
    reordered = {name: tensors[name] for name in reversed(tensors)}
    assert pack(tensors, description) == pack(reordered, dict(reversed(description.items())))


def test_leaves_nothing_behind_but_the_file(tmp_path: Path) -> None:
    write_model(tmp_path / "m.safetensors")
    write_model(tmp_path / "m.safetensors", seed=1)
    assert [path.name for path in tmp_path.iterdir()] == ["m.safetensors"]


def test_refuses_every_truncation(tmp_path: Path) -> None:
    whole, part = tmp_path / "m.safetensors", tmp_path / "part.safetensors"
    write_model(whole)
    data = whole.read_bytes()
    for length in [0, 1, 7, 8, 9, 100, len(data) // 2, len(data) - 1]:
        part.write_bytes(data[:length])
        with pytest.raises(UserError, match="not a valid model file"):
            load_model(part)


def test_refuses_every_changed_byte(tmp_path: Path) -> None:
    whole, damaged = tmp_path / "m.safetensors", tmp_path / "damaged.safetensors"
    write_model(whole)
    data = whole.read_bytes()
    rng = np.random.default_rng(0)
    for position in [*range(150), *rng.integers(0, len(data), 150)]:
        changed = bytearray(data)
        changed[position] ^= 1 << int(rng.integers(8))
        damaged.write_bytes(bytes(changed))
        with pytest.raises(UserError):
            load_model(damaged)


def without_checksum(data: bytes) -> bytes:
    """Return a model as early versions wrote it."""
    length = int.from_bytes(data[:8], "little")
    header = re.sub(rb'"checksum":"[0-9a-f]{64}",', b"", data[8 : 8 + length])
    return len(header).to_bytes(8, "little") + header + data[8 + length :]


def test_a_model_without_checksum_loads_and_that_is_said_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "m.safetensors"
    write_model(path)
    new = load_model(path)
    assert not capsys.readouterr().err
    path.write_bytes(without_checksum(path.read_bytes()))
    old = load_model(path)
    assert np.array_equal(old.act(np.ones(3)), new.act(np.ones(3)))
    assert capsys.readouterr().err.count("has no checksum") == 1
    load_model(path)
    assert not capsys.readouterr().err


def test_takes_regular_files_of_bounded_size_alone(tmp_path: Path) -> None:
    pipe, sparse, nul = tmp_path / "pipe", tmp_path / "sparse", f"{tmp_path}/a\0b"
    os.mkfifo(pipe)
    with sparse.open("wb") as file:
        file.truncate(1_900_000_000)
    reasons = {pipe: "no regular file", "/dev/zero": "no regular file", sparse: "more than the limit", nul: "NUL"}
    for path, reason in reasons.items():
        with pytest.raises(UserError, match=reason):
            load_model(path)


@pytest.mark.parametrize(
    "content",
    [b"hello world, this is text", pickle.dumps({"actor": [1, 2, 3]}), b"\x00" * 64, b"\xff" * 64, b"PK\x03\x04" * 20],
)
def test_refuses_foreign_files(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "m.safetensors"
    path.write_bytes(content)
    with pytest.raises(UserError, match="not a valid model file"):
        load_model(path)


def test_refuses_safetensors_of_others(tmp_path: Path) -> None:
    from safetensors.numpy import save_file

    save_file({"weight": np.zeros(3, dtype=np.float32)}, tmp_path / "m.safetensors")
    with pytest.raises(UserError, match="does not hold a description"):
        load_model(tmp_path / "m.safetensors")


def test_refuses_a_huge_header_without_reading_it(tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    path.write_bytes((2**40).to_bytes(8, "little") + b"{}")
    with pytest.raises(UserError, match="header claims 1099511627776 bytes and 2 are left"):
        load_model(path)


def test_refuses_a_deeply_nested_header(tmp_path: Path) -> None:
    header = b"[" * 200_000
    path = tmp_path / "m.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header)
    with pytest.raises(UserError):
        load_model(path)


def test_refuses_weights_that_are_not_finite(tmp_path: Path) -> None:
    tensors, description = model_content()
    tensors["actor.1.weight"][0, 0] = np.nan
    write_tensor_file(tmp_path / "m.safetensors", tensors, description)
    with pytest.raises(UserError, match="'actor.1.weight' holds NaN"):
        load_model(tmp_path / "m.safetensors")


def test_refuses_another_kind_of_file(tmp_path: Path) -> None:
    write_model(tmp_path / "m.safetensors", kind="checkpoint")
    with pytest.raises(UserError, match="calls itself 'checkpoint'"):
        load_model(tmp_path / "m.safetensors")


def test_names_a_missing_file_and_a_folder(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no model file"):
        load_model(tmp_path / "nothing.safetensors")
    with pytest.raises(UserError, match="is a folder"):
        load_model(tmp_path)


def test_says_where_it_cannot_write(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot write"):
        write_tensor_file(tmp_path / "file" / "m.safetensors", *model_content())


def test_the_description_stays_readable_by_others(tmp_path: Path) -> None:
    from safetensors import safe_open

    write_model(tmp_path / "m.safetensors")
    with safe_open(tmp_path / "m.safetensors", "numpy") as file:
        assert json.loads(file.metadata()["lift_ros"])["action_radius"] == 0.5
        assert "actor.0.weight" in set(file.keys())
