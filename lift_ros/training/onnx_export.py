"""A model's actor as an ONNX graph, for runtimes without Python."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from lift_ros.errors import UserError
from lift_ros.policies.inputs import OFF
from lift_ros.policies.learned import LearnedPolicy, load_model
from lift_ros.policies.model_file import write_bytes

OPSET = 17
IR_VERSION = 8


def export_onnx(model: str | Path, out: str | Path) -> None:
    """Write the actor of a model file: input `observation` (batch, size), output `action` inside the action ball."""
    policy = load_model(model)
    if policy.sight.image:
        raise UserError(
            f"{model} sees {policy.sight}, and pictures are prepared by OpenCV, which ONNX has no words for; drive "
            "with `lift run --mode evaluate`, or in Python with lift_ros.rig.load_model"
        )
    try:
        import onnx
    except ImportError as error:
        raise UserError("ONNX is not installed; install it with `pip install onnx`") from error
    graph = _Graph(onnx)
    value = "observation"
    given = policy.inputs
    if given.is_scaled:
        value = graph.node("Sub", value, graph.constant("observation_mean", given.mean))
        value = graph.node("Div", value, graph.constant("observation_deviation", given.deviation))
    if given.switches.size:
        entries = graph.constant("observation_switches", given.switches, np.int64)
        chosen = graph.node("Gather", "observation", entries, axis=1)
        off = graph.node("Equal", chosen, graph.constant("zero", np.zeros(1)))
        told = graph.node("Mul", graph.node("Cast", off, to=onnx.TensorProto.FLOAT), graph.constant("off", [OFF]))
        value = graph.node("Concat", value, told, axis=1)
    layers = policy.actor_layers
    for index, (weight, bias) in enumerate(layers):
        inputs = [graph.constant(f"actor_{index}_weight", weight), graph.constant(f"actor_{index}_bias", bias)]
        value = graph.node("Gemm", value, *inputs)
        if index < len(layers) - 1:
            value = graph.node("Relu", value)
    value = graph.node("Tanh", value)
    norm = graph.node("ReduceL2", value, axes=[1], keepdims=1)
    norm = graph.node("Max", norm, graph.constant("one", np.ones(1, dtype=np.float32)))
    value = graph.node("Div", value, norm)
    radius = graph.constant("action_radius", np.array([policy.action_radius], dtype=np.float32))
    graph.node("Mul", value, radius, output="action")
    write_bytes(out, graph.serialise(policy))


def metadata(policy: LearnedPolicy) -> dict[str, str]:
    """Return what whoever runs the graph must know, as texts: what ONNX cannot say itself is JSON."""
    scenario = policy.description.get("scenario") or {}  # models of 0.1.0, or of runs without one, name none
    given, units = policy.inputs, scenario.get("units") or {}
    scaling = {
        "mean": given.mean.tolist(),
        "deviation": given.deviation.tolist(),
        "switches": given.switches.tolist(),
        "applied": "inside the graph: give observations as the plant reports them",
    }
    return {
        "model_sha256": policy.hash,
        "algorithm": policy.algorithm,
        "lift_ros": str(policy.description.get("lift_ros", "")),
        "action_radius": repr(policy.action_radius),
        "action_unit": str(units.get("length", "")),
        "observation_units": json.dumps(units.get("observations", [])),
        "observation_scaling": json.dumps(scaling),
        "scenario": str(scenario.get("name", "")),
        "scenario_parameters": json.dumps({name: value for name, value in scenario.items() if name != "name"}),
    }


class _Graph:
    """Collects nodes and constants; names of intermediate values are numbered."""

    def __init__(self, onnx: Any) -> None:
        self._onnx = onnx
        self._nodes: list[Any] = []
        self._constants: list[Any] = []

    def constant(self, name: str, array: Any, kind: Any = np.float32) -> str:
        self._constants.append(self._onnx.numpy_helper.from_array(np.ascontiguousarray(array, kind), name))
        return name

    def node(self, kind: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        name = output or f"value_{len(self._nodes)}"
        self._nodes.append(self._onnx.helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def serialise(self, policy: LearnedPolicy) -> bytes:
        helper, floats = self._onnx.helper, self._onnx.TensorProto.FLOAT
        graph = helper.make_graph(
            self._nodes,
            "lift_ros policy",
            [helper.make_tensor_value_info("observation", floats, ["batch", policy.observation_size])],
            [helper.make_tensor_value_info("action", floats, ["batch", policy.action_size])],
            self._constants,
        )
        model = helper.make_model(
            graph, producer_name="lift_ros", opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION
        )
        helper.set_model_props(model, metadata(policy))
        self._onnx.checker.check_model(model)
        return bytes(model.SerializeToString())
