"""A model file is read whole or refused; nothing in it is executed."""

from __future__ import annotations

import contextlib
import json
import pickle
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


def test_refuses_or_survives_every_changed_byte(tmp_path: Path) -> None:
    whole, damaged = tmp_path / "m.safetensors", tmp_path / "damaged.safetensors"
    digest = write_model(whole)
    data = whole.read_bytes()
    rng = np.random.default_rng(0)
    for position in [*range(60), *rng.integers(0, len(data), 150)]:
        changed = bytearray(data)
        changed[position] ^= 1 << int(rng.integers(8))
        damaged.write_bytes(bytes(changed))
        with contextlib.suppress(UserError):
            assert load_model(damaged).hash != digest


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
    with pytest.raises(UserError, match="(?i)header *too *large"):
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
