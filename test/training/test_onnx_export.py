"""The ONNX graph answers like the model."""

from __future__ import annotations

import builtins
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from training_samples import model_content

from lift_ros.errors import UserError
from lift_ros.policies.learned import load_model
from lift_ros.policies.model_file import write_tensor_file
from lift_ros.training import export_onnx


@pytest.mark.parametrize(("scaled", "switches"), [(True, ()), (False, ()), (True, (1,)), (False, (0, 2))])
def test_onnxruntime_gives_the_same_actions(tmp_path: Path, scaled: bool, switches: tuple[int, ...]) -> None:
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    digest = write_tensor_file(tmp_path / "m.safetensors", *model_content(scaled=scaled, switches=switches))
    export_onnx(tmp_path / "m.safetensors", tmp_path / "m.onnx")
    session = runtime.InferenceSession(str(tmp_path / "m.onnx"), providers=["CPUExecutionProvider"])
    observations = np.random.default_rng(0).normal(scale=2, size=(50, 3)) * np.array([[1], [0]] * 25)
    (actions,) = session.run(["action"], {"observation": observations.astype(np.float32)})
    assert actions == pytest.approx(load_model(tmp_path / "m.safetensors").act_batch(observations), abs=1e-5)
    assert session.get_modelmeta().custom_metadata_map["model_sha256"] == digest


def test_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_tensor_file(tmp_path / "m.safetensors", *model_content())
    original = builtins.__import__

    def without_onnx(name: str, *arguments: Any, **keywords: Any) -> Any:
        if name == "onnx":
            raise ImportError(name)
        return original(name, *arguments, **keywords)

    monkeypatch.setattr(builtins, "__import__", without_onnx)
    with pytest.raises(UserError, match="pip install onnx"):
        export_onnx(tmp_path / "m.safetensors", tmp_path / "m.onnx")
