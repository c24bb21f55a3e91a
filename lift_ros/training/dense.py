"""Dense ReLU networks in flat storage with a hand-written backward pass, and the Adam step over it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from lift_ros.policies.model_file import Tensors

# With the activations of one block near a core's L2 cache, element-wise passes cost next to nothing.
_BLOCK_BYTES = 2**20


class DenseParameters:
    """The weights of one network in one flat tensor; each layer's last row is its bias."""

    def __init__(self, sizes: Sequence[int]) -> None:
        """Lay out layers sizes[0] → sizes[1] → …; values start at zero."""
        self.sizes = tuple(sizes)
        self.values = torch.zeros(sum((i + 1) * o for i, o in itertools.pairwise(sizes)))
        self.layers = self.views(self.values)

    def views(self, flat: torch.Tensor) -> list[torch.Tensor]:
        """Return each layer's (inputs + 1, outputs) view of a flat tensor laid out like the values."""
        result, start = [], 0
        for inputs, outputs in itertools.pairwise(self.sizes):
            stop = start + (inputs + 1) * outputs
            result.append(flat[start:stop].view(inputs + 1, outputs))
            start = stop
        return result

    def initialise(self, generator: torch.Generator) -> None:
        """Draw weights and biases like `torch.nn.Linear`: uniform within 1/√inputs."""
        for layer in self.layers:
            bound = 1.0 / math.sqrt(layer.shape[0] - 1)
            layer.uniform_(-bound, bound, generator=generator)


class _Views(NamedTuple):
    """Views of one layer and its buffers for a number of rows; making them anew costs more than small products."""

    weight: torch.Tensor  # without the bias
    transposed: torch.Tensor
    bias: torch.Tensor
    before: torch.Tensor  # outputs of the layer before, after ReLU
    before_transposed: torch.Tensor
    delta: torch.Tensor  # derivative by `before`
    outputs: torch.Tensor


class DensePass:
    """Forward and backward through a network for up to `rows` rows, in buffers that are allocated once.

    Inputs carry a last column of ones, so that the first layer's bias needs no pass of its own.
    """

    def __init__(self, parameters: DenseParameters, rows: int) -> None:
        self._layers = parameters.layers
        widths = parameters.sizes[1:]
        self._outputs = [torch.empty(rows, width) for width in widths]
        self._deltas = [torch.empty(rows, width) for width in widths[:-1]]
        self._ones = torch.ones(rows)
        self._views: dict[int, list[_Views]] = {}

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Return the outputs for `inputs` (rows, size + 1); they stay valid until the next call."""
        views = self._for_rows(inputs.shape[0])
        torch.mm(inputs, self._layers[0], out=views[0].before)
        for layer in views:
            layer.before.relu_()
            torch.addmm(layer.bias, layer.before, layer.weight, out=layer.outputs)
        return views[-1].outputs

    def backward(self, inputs: torch.Tensor, delta: torch.Tensor, gradient: DenseGradient) -> None:
        """Add to `gradient` what `delta`, the loss's derivative by the last outputs, gives for `inputs`."""
        rows = inputs.shape[0]
        ones = self._ones[:rows]
        for layer, (weight, bias) in zip(reversed(self._for_rows(rows)), reversed(gradient.parts), strict=True):
            weight.addmm_(layer.before_transposed, delta)
            bias.addmv_(delta.t(), ones)
            delta = _through_relu(layer, delta)
        gradient.first.addmm_(inputs.t(), delta)

    def input_gradient(self, rows: int, delta: torch.Tensor, columns: slice) -> torch.Tensor:
        """Return the derivative by some columns of the inputs, given the one by the last outputs."""
        for layer in reversed(self._for_rows(rows)):
            delta = _through_relu(layer, delta)
        return delta @ self._layers[0][columns].t()

    def _for_rows(self, rows: int) -> list[_Views]:
        if rows not in self._views:
            outputs = [buffer[:rows] for buffer in self._outputs]
            self._views[rows] = [
                _Views(
                    weight=layer[:-1],
                    transposed=layer[:-1].t(),
                    bias=layer[-1],
                    before=before,
                    before_transposed=before.t(),
                    delta=delta[:rows],
                    outputs=after,
                )
                for layer, before, delta, after in zip(
                    self._layers[1:], outputs, self._deltas, outputs[1:], strict=False
                )
            ]
        return self._views[rows]


def _through_relu(layer: _Views, delta: torch.Tensor) -> torch.Tensor:
    if delta.shape[1] == 1:
        torch.mul(delta, layer.transposed, out=layer.delta)
    else:
        torch.mm(delta, layer.transposed, out=layer.delta)
    torch.ops.aten.threshold_backward.grad_input(layer.delta, layer.before, 0.0, grad_input=layer.delta)
    return layer.delta


class DenseGradient:
    """A gradient laid out like the parameters: one flat tensor and views of its layers."""

    def __init__(self, parameters: DenseParameters) -> None:
        self.values = torch.zeros_like(parameters.values)
        self.first, *rest = parameters.views(self.values)
        self.parts = [(layer[:-1], layer[-1]) for layer in rest]  # weight and bias


class Adam:
    """Adam over one flat tensor, step for step what `torch.optim.Adam` computes with its default betas."""

    def __init__(self, values: torch.Tensor) -> None:
        self._values = values
        self.first = torch.zeros_like(values)
        self.second = torch.zeros_like(values)
        self._scratch = torch.empty_like(values)
        self.steps = 0

    def step(self, gradient: torch.Tensor, learning_rate: float) -> None:
        """Move the values against `gradient`."""
        self.steps += 1
        self.first.lerp_(gradient, 0.1)
        self.second.mul_(0.999).addcmul_(gradient, gradient, value=0.001)
        correction = math.sqrt(1.0 - 0.999**self.steps)
        torch.sqrt(self.second, out=self._scratch).div_(correction).add_(1e-8)
        self._values.addcdiv_(self.first, self._scratch, value=-learning_rate / (1.0 - 0.9**self.steps))


@dataclass
class ScalarAdam:
    """Adam for a single number."""

    value: float
    first: float = 0.0
    second: float = 0.0
    steps: int = 0

    def step(self, gradient: float, learning_rate: float) -> None:
        """Move the number against `gradient`."""
        self.steps += 1
        self.first += 0.1 * (gradient - self.first)
        self.second += 0.001 * (gradient * gradient - self.second)
        deviation = math.sqrt(self.second / (1.0 - 0.999**self.steps)) + 1e-8
        self.value -= learning_rate / (1.0 - 0.9**self.steps) * self.first / deviation


def block_rows(widest: int) -> int:
    """Return how many rows of the widest layer fit the part of the cache that a block may fill."""
    return max(1, _BLOCK_BYTES // (4 * widest))


def name_layers(prefix: str, layers: Iterable[tuple[torch.Tensor, torch.Tensor]]) -> Tensors:
    """Return the weights (outputs, inputs) and biases of layers under the names of the model file."""
    tensors: Tensors = {}
    for index, (weight, bias) in enumerate(layers):
        tensors[f"{prefix}.{index}.weight"] = to_array(weight)
        tensors[f"{prefix}.{index}.bias"] = to_array(bias)
    return tensors


def to_array(tensor: torch.Tensor) -> npt.NDArray[Any]:
    """Return a contiguous copy of a tensor."""
    return np.ascontiguousarray(tensor.detach().numpy()).copy()
