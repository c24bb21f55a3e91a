"""What the baselines share: networks, and how they are trained in seclusion."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise

import torch


def multilayer(inputs: int, hidden: Sequence[int], outputs: int) -> torch.nn.Sequential:
    """Return layers of these widths, each but the last followed by ReLU."""
    layers: list[torch.nn.Module] = []
    for before, after in pairwise((inputs, *hidden)):
        layers += [torch.nn.Linear(before, after), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers, torch.nn.Linear(hidden[-1], outputs))


@contextmanager
def secluded(seed: int) -> Iterator[None]:
    """Compute with one thread and random numbers from this seed; outside nothing is changed by it."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            yield
    finally:
        torch.set_num_threads(threads)
