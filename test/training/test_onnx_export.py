"""The ONNX graph answers like the model."""

from __future__ import annotations

import builtins
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from training_samples import make_episodes, model_content, tiny

from lift_ros.bags import RunWriter
from lift_ros.errors import UserError
from lift_ros.policies.learned import load_model
from lift_ros.policies.model_file import write_tensor_file
from lift_ros.scenario import load_scenario
from lift_ros.training import export_onnx, load_runs, train
from lift_ros.training.onnx_export import metadata


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


def test_metadata_tell_what_a_runtime_without_python_must_know(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    scenario = load_scenario("fetch-reach")
    with RunWriter(tmp_path / "run", {"scenario": scenario.name, "parameters": scenario.as_dict()}) as writer:
        for episode in make_episodes(size=scenario.action_size):
            writer.write_episode(episode)
    options = tiny(scale_observations=True, held_out=0.0)
    train(load_runs([tmp_path / "run"]), options, action_radius=0.05, out=tmp_path / "m.safetensors")
    export_onnx(tmp_path / "m.safetensors", tmp_path / "m.onnx")
    facts = {entry.key: entry.value for entry in onnx.load(tmp_path / "m.onnx").metadata_props}
    policy = load_model(tmp_path / "m.safetensors")
    assert float(facts["action_radius"]) == 0.05
    assert facts["action_unit"] == "m"
    assert facts["scenario"] == "fetch-reach"
    assert json.loads(facts["scenario_parameters"])["plant"]["kind"] == "fetch_reach"
    scaling = json.loads(facts["observation_scaling"])
    assert scaling["mean"] == policy.inputs.mean.tolist()
    assert scaling["deviation"] == policy.inputs.deviation.tolist() != [1.0] * 3


def test_a_model_that_knows_no_scenario_says_nothing_of_it(tmp_path: Path) -> None:
    write_tensor_file(tmp_path / "m.safetensors", *model_content())
    facts = metadata(load_model(tmp_path / "m.safetensors"))
    assert (facts["scenario"], facts["action_unit"], facts["scenario_parameters"]) == ("", "", "{}")
    assert facts["action_radius"] == "0.5"


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
