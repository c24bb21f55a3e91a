"""The encoder of pictures as torch computes and learns it; `policies/encoder.py` says what it is."""

from __future__ import annotations

import math

import torch
from torch.nn import functional

from lift_ros.policies.encoder import DARK, SMALL, EncoderPlan, grid_cells, places
from lift_ros.policies.model_file import Tensors
from lift_ros.training.dense import name_layers


class TorchEncoder:
    """The layers of an encoder in one flat tensor, as our dense networks are, and what they make of pictures."""

    def __init__(self, plan: EncoderPlan, generator: torch.Generator) -> None:
        self.plan = plan
        self._shapes = [size for shape in self._weights() for size in (shape, shape[:1])]
        self.values = torch.zeros(sum(map(math.prod, self._shapes)))
        for weight, bias in self._layers(self.values):
            bound = 1.0 / math.sqrt(math.prod(weight.shape[1:]))
            weight.uniform_(-bound, bound, generator=generator)
            bias.uniform_(-bound, bound, generator=generator)
        self._places = torch.from_numpy(places(*plan.map_size))
        self._cells = torch.from_numpy(grid_cells(*plan.map_size, plan.grid)) if plan.grid else None

    def tensors(self, flat: torch.Tensor) -> Tensors:
        """Return layers of a flat tensor laid out like the values under the names of the model file."""
        layers, count = self._layers(flat), len(self.plan.maps)
        return name_layers("encoder", layers[:count]) | name_layers("readout", layers[count:])

    @torch.no_grad()
    def take(self, tensors: Tensors) -> None:
        """Fill the values from tensors under the names of the model file."""
        count = len(self.plan.maps)
        for number, (weight, bias) in enumerate(self._layers(self.values)):
            name = f"encoder.{number}" if number < count else f"readout.{number - count}"
            weight.copy_(torch.from_numpy(tensors[f"{name}.weight"].copy()))
            bias.copy_(torch.from_numpy(tensors[f"{name}.bias"].copy()))

    def read(self, features: torch.Tensor, flat: torch.Tensor) -> torch.Tensor:
        """Return what networks are given for features, one per row."""
        for number, (weight, bias) in enumerate(self._layers(flat)[len(self.plan.maps) :]):
            features = functional.linear(functional.relu(features) if number else features, weight, bias)
        return features

    def features(self, pictures: torch.Tensor, flat: torch.Tensor) -> torch.Tensor:
        """Return one row of features per picture (height, width · views, channels)."""
        plan = self.plan
        count = len(pictures)
        views = pictures.view(count, plan.height, plan.views, plan.width, plan.channels).transpose(1, 2)
        # Channels last in memory, as pictures are: convolutions take a quarter less time so.
        maps = views.reshape(-1, plan.height, plan.width, plan.channels).permute(0, 3, 1, 2)
        for number, (weight, bias) in enumerate(self._layers(flat)[: len(plan.maps)]):
            border = plan.kernels[number] // 2
            maps = functional.conv2d(
                functional.relu(maps) if number else maps, weight, bias, stride=plan.strides[number], padding=border
            )
        return self._summary(maps.contiguous().flatten(start_dim=2)).view(count, -1)

    def _summary(self, maps: torch.Tensor) -> torch.Tensor:
        """Return column, row, spread and mass of each map, then the grid of masses; maps are (rows, n, pixels)."""
        weights = maps.softmax(dim=2)
        place = self._places @ weights.transpose(1, 2)
        square = weights @ self._places.square().sum(dim=0)
        spread = torch.sqrt((square - place.square().sum(dim=1)).clamp(min=0.0) + SMALL)
        bright = functional.relu(maps)
        parts = [place.flatten(start_dim=1), spread, torch.log(bright.mean(dim=2) + DARK)]
        if self._cells is not None:
            parts.append(torch.log(self._cells @ bright.transpose(1, 2) + DARK).flatten(start_dim=1))
        return torch.cat(parts, dim=1)

    def _weights(self) -> list[tuple[int, ...]]:
        return [*self.plan.weight_shapes(), *self.plan.readout_shapes()]

    def _layers(self, flat: torch.Tensor) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """Return weight and bias of each layer, convolutions first, as views."""
        parts = torch.split(flat, [math.prod(shape) for shape in self._shapes])
        views = [part.view(shape) for part, shape in zip(parts, self._shapes, strict=True)]
        return list(zip(views[::2], views[1::2], strict=True))
