"""The encoder of pictures as torch computes and learns it; `policies/encoder.py` says what it is."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch.nn import functional

from lift_ros.policies.encoder import SMALL, EncoderPlan, grid_cells, places
from lift_ros.policies.model_file import Tensors
from lift_ros.training.dense import name_layers


class TorchEncoder:
    """The layers of an encoder in one flat tensor, as our dense networks are, and what they make of pictures."""

    def __init__(self, plan: EncoderPlan, generator: torch.Generator) -> None:
        self.plan = plan
        self._shapes = [size for shape in plan.weight_shapes() for size in (shape, shape[:1])]
        self.values = torch.zeros(sum(map(math.prod, self._shapes)))
        views = self.views(self.values)
        for weight, bias in views:
            bound = 1.0 / math.sqrt(math.prod(weight.shape[1:]))
            weight.uniform_(-bound, bound, generator=generator)
            bias.uniform_(-bound, bound, generator=generator)
        self._places = torch.from_numpy(places(*plan.map_size))
        self._cells = torch.from_numpy(grid_cells(*plan.map_size, plan.grid)) if plan.grid else None

    def views(self, flat: torch.Tensor) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """Return weight and bias of each layer as views of a flat tensor laid out like the values."""
        parts = [part.view(shape) for part, shape in zip(self._split(flat), self._shapes, strict=True)]
        return list(zip(parts[::2], parts[1::2], strict=True))

    def tensors(self, flat: torch.Tensor) -> Tensors:
        """Return layers under the names of the model file."""
        return name_layers("encoder", self.views(flat))

    def features(self, pictures: torch.Tensor, flat: torch.Tensor) -> torch.Tensor:
        """Return one row of features per picture (height, width · views, channels)."""
        plan = self.plan
        count = len(pictures)
        views = pictures.view(count, plan.height, plan.views, plan.width, plan.channels).transpose(1, 2)
        # Channels last in memory, as pictures are: convolutions take a quarter less time so.
        maps = views.reshape(-1, plan.height, plan.width, plan.channels).permute(0, 3, 1, 2)
        layers = self.views(flat)
        for number, (weight, bias) in enumerate(layers):
            border = plan.kernels[number] // 2
            maps = functional.conv2d(maps, weight, bias, stride=plan.strides[number], padding=border)
            if number < len(layers) - 1:
                maps = functional.relu(maps)
        return self._summary(maps.contiguous().flatten(start_dim=2)).view(count, -1)

    def _summary(self, maps: torch.Tensor) -> torch.Tensor:
        """Return column, row, spread and mass of each map, then the grid of masses; maps are (rows, n, pixels)."""
        weights = maps.softmax(dim=2)
        place = self._places @ weights.transpose(1, 2)
        square = weights @ self._places.square().sum(dim=0)
        spread = torch.sqrt((square - place.square().sum(dim=1)).clamp(min=0.0) + SMALL)
        bright = functional.relu(maps)
        parts = [place.flatten(start_dim=1), spread, bright.mean(dim=2)]
        if self._cells is not None:
            parts.append((self._cells @ bright.transpose(1, 2)).flatten(start_dim=1))
        return torch.cat(parts, dim=1)

    def _split(self, flat: torch.Tensor) -> Sequence[torch.Tensor]:
        return torch.split(flat, [math.prod(shape) for shape in self._shapes])
