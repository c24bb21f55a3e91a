"""Every random choice comes from here: named streams derived from one recorded seed."""

from __future__ import annotations

import zlib

import numpy as np


def derive_seed(seed: int, *path: int | str) -> int:
    """Return the 63-bit seed of the stream that `path` names below `seed`."""
    words = [zlib.crc32(part.encode()) if isinstance(part, str) else int(part) for part in path]
    low, high = np.random.SeedSequence([seed, *words]).generate_state(2, np.uint32)
    return int(low) | (int(high) & 0x7FFFFFFF) << 32


def generator(seed: int, *path: int | str) -> np.random.Generator:
    """Return a generator of its own for the stream that `path` names below `seed`."""
    return np.random.default_rng(derive_seed(seed, *path))


def episode_seed(run_seed: int, episode: int) -> int:
    """Return the seed from which plant, arbiter and policies draw in one episode of a run."""
    return derive_seed(run_seed, "episode", episode)
