"""Denoising diffusion in few steps: a network learns how noise was added to vectors, and makes new ones of noise.

The variances follow the variance-preserving schedule with few steps, as Diffusion-QL has it. What the network guesses
is the velocity √ᾱ·ε − √(1−ᾱ)·x, from which noise ε and vector x follow alike, at all levels of noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch

from lift_ros.studies.networks import multilayer

_LOWEST, _HIGHEST = 0.1, 10.0  # of the schedule's rate
_EMBEDDING = 16
Guess = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]  # velocity of vectors at a step, one per row


class Schedule:
    """How much of a vector is left after so many steps of noise."""

    def __init__(self, steps: int) -> None:
        self.steps = steps
        times = torch.arange(1, steps + 1, dtype=torch.float64)
        alphas = torch.exp(-_LOWEST / steps - 0.5 * (_HIGHEST - _LOWEST) * (2 * times - 1) / steps**2)
        self._alphas = alphas.float()
        self._left = torch.cumprod(alphas, 0).float()
        before = torch.cat([torch.ones(1, dtype=torch.float64), torch.cumprod(alphas, 0)[:-1]])
        variances = (1 - alphas) * (1 - before) / (1 - torch.cumprod(alphas, 0))
        self._deviations = variances.sqrt().float()

    def noised(self, vectors: torch.Tensor, step: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
        """Return vectors after so many steps, which count from 0."""
        left = self._left[step][:, None]
        return left.sqrt() * vectors + (1 - left).sqrt() * noise

    def loss(self, vectors: torch.Tensor, guess: Guess) -> torch.Tensor:
        """Return how far guesses are from the velocity of vectors with noise, at steps drawn at random."""
        steps, noise = torch.randint(self.steps, (len(vectors),)), torch.randn_like(vectors)
        left = self._left[steps][:, None]
        velocity = left.sqrt() * noise - (1 - left).sqrt() * vectors
        return (guess(self.noised(vectors, steps, noise), steps) - velocity).square().mean()

    def denoised(
        self,
        vectors: torch.Tensor,
        guess: Guess,
        *,
        begin: int | None = None,
        bound: float | None = None,
        noise: Callable[[torch.Tensor], torch.Tensor] = torch.randn_like,
    ) -> torch.Tensor:
        """Return what is left when noise is taken away step by step, from `begin` down to 0.

        With a `bound` the vector that is guessed to lie below the noise is kept within it.
        """
        for step in reversed(range(self.steps if begin is None else begin)):
            steps = torch.full((len(vectors),), step)
            alpha, left = self._alphas[step], self._left[step]
            found = left.sqrt() * vectors - (1 - left).sqrt() * guess(vectors, steps)
            if bound is not None:
                found = found.clamp(-bound, bound)
            before = left / alpha
            mean = (before.sqrt() * (1 - alpha) * found + alpha.sqrt() * (1 - before) * vectors) / (1 - left)
            vectors = mean + self._deviations[step] * noise(vectors) if step else mean
        return vectors


class Denoiser(torch.nn.Module):
    """Guesses the velocity of vectors from them, the step and a condition."""

    def __init__(self, size: int, condition: int, hidden: Sequence[int]) -> None:
        super().__init__()
        self._layers = multilayer(size + condition + _EMBEDDING, hidden, size)

    def forward(self, vectors: torch.Tensor, steps: torch.Tensor, condition: torch.Tensor) -> torch.Tensor:
        """Return the velocity, one row each."""
        guessed: torch.Tensor = self._layers(torch.cat([vectors, _embedded(steps), condition], dim=1))
        return guessed


def _embedded(steps: torch.Tensor) -> torch.Tensor:
    """Return steps as sines and cosines of several frequencies."""
    half = _EMBEDDING // 2
    frequencies = torch.exp(-math.log(10000.0) * torch.arange(half) / (half - 1))
    angles = steps[:, None].float() * frequencies
    return torch.cat([angles.sin(), angles.cos()], dim=1)


@torch.no_grad()
def follow(target: torch.nn.Module, source: torch.nn.Module, share: float) -> None:
    """Move the parameters of a target by this share towards those of its source."""
    for mine, theirs in zip(target.parameters(), source.parameters(), strict=True):
        mine.lerp_(theirs, share)
