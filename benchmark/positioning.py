"""Steps per second of the single and the batched problem, next to a bare numpy loop of the distortion alone."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

import numpy as np

from benchmark.timing import RESULTS, interleaved, markdown_table, replace_section
from lift_ros.array_types import FloatArray
from lift_ros.positioning.batched import BatchedPositioning
from lift_ros.positioning.distortions import Distortion, make_distortion
from lift_ros.positioning.dynamics import Dynamics
from lift_ros.positioning.environment import ActivePositioning

Movement = Callable[[FloatArray, FloatArray], FloatArray]

SECTION = "positioning"
NAMES = ("blend", "rot", "scale", "regrot", "sin", "sqrt")
BATCH = 4096
NEVER = 1e-12  # a threshold that nothing reaches, so that all contexts keep moving


def rotations(angles: FloatArray, dim: int) -> FloatArray:
    """Return the matrix Rot_W for each angle."""
    matrices = np.zeros((*angles.shape, dim, dim))
    matrices[..., range(dim), range(dim)] = 1.0
    for k in range(0, dim - 1, 2):
        matrices[..., k, k] = matrices[..., k + 1, k + 1] = np.cos(angles)
        matrices[..., k + 1, k] = np.sin(angles)
        matrices[..., k, k + 1] = -np.sin(angles)
    return matrices


def lengths(rows: FloatArray) -> FloatArray:
    return np.asarray(np.sqrt((rows * rows).sum(axis=-1)))


def bare_single(f: Distortion, W: FloatArray) -> Movement:  # noqa: N803
    """Return the formula of the paper for one context, in plain numpy, with its matrices prepared beforehand."""
    if f.name == "blend":
        matrix = np.eye(f.dim) + W
        return lambda s, a: s + matrix @ a
    if f.name == "sqrt":
        matrix = np.eye(f.dim) + W
        return lambda s, a: s + np.sqrt(lengths(a)) * (matrix @ a)
    if f.name == "rot":
        matrix = rotations(W, f.dim)
        return lambda s, a: s + matrix @ a
    if f.name == "regrot":
        matrices = rotations(W, f.dim)
        return lambda s, a: s + matrices[(0 if s[1] >= 0 else 3) if s[0] >= 0 else (1 if s[1] >= 0 else 2)] @ a
    if f.name == "scale":
        return lambda s, a: s + min(max(float(lengths(s - W)), 0.3), 1.0) * a
    return lambda s, a: s + a + (W * lengths(a)) * (np.sin(s) * np.cos(s))


def bare_batch(f: Distortion, W: FloatArray) -> Movement:  # noqa: N803
    """Return the formula of the paper for many contexts, one row each, likewise."""
    if f.name == "blend":
        matrix = np.eye(f.dim) + W
        return lambda s, a: s + np.einsum("nij,nj->ni", matrix, a)
    if f.name == "sqrt":
        matrix = np.eye(f.dim) + W
        return lambda s, a: s + np.sqrt(lengths(a))[:, None] * np.einsum("nij,nj->ni", matrix, a)
    if f.name == "rot":
        matrix = rotations(W, f.dim)
        return lambda s, a: s + np.einsum("nij,nj->ni", matrix, a)
    if f.name == "regrot":
        matrices, everyone = rotations(W, f.dim), np.arange(len(W))

        def turn(s: FloatArray, a: FloatArray) -> FloatArray:
            upper = s[:, 1] >= 0
            region = np.where(s[:, 0] >= 0, np.where(upper, 0, 3), np.where(upper, 1, 2))
            return np.asarray(s + np.einsum("nij,nj->ni", matrices[everyone, region], a))

        return turn
    if f.name == "scale":
        return lambda s, a: s + np.clip(lengths(s - W), 0.3, 1.0)[:, None] * a
    return lambda s, a: s + a + (W * lengths(a))[:, None] * (np.sin(s) * np.cos(s))


def repeat(count: int, job: Callable[[], object]) -> Callable[[], None]:
    def run() -> None:
        for _ in range(count):
            job()

    return run


def loop(move: Movement, start: FloatArray, action: FloatArray, count: int) -> Callable[[], None]:
    """Return a loop that does nothing but move there and back."""

    def run() -> None:
        position = start
        for _ in range(count // 2):
            position = move(position, action)
            position = move(position, -action)

    return run


def rates(name: str, dim: int, batch: int, count: int, repeats: int) -> tuple[float, float]:
    """Return seconds per step of the bare loop and of ours; one context alone is the gymnasium environment."""
    f = make_distortion(name, dim)
    rng = np.random.default_rng(0)
    if batch == 1:
        context, start, action = f.sample(rng), rng.uniform(-0.5, 0.5, dim), rng.normal(0, 0.01, dim)
        environment = ActivePositioning(f, threshold=NEVER, step_limit=10**9)
        environment.reset(seed=0)
        ours = repeat(count, lambda: environment.step(action))
        bare = loop(bare_single(f, context), start, action, count)
    else:
        context = np.array([f.sample(rng) for _ in range(batch)])
        start, action = rng.uniform(-0.5, 0.5, (batch, dim)), rng.normal(0, 0.01, (batch, dim))
        problem = BatchedPositioning(Dynamics(f, 0.3, NEVER, 10**9))
        problem.reset(range(batch))
        ours = repeat(count, lambda: problem.step(action))
        bare = loop(bare_batch(f, context), start, action, count)
    seconds = interleaved({"bare": bare, "ours": ours}, repeats)
    # The fastest turn: whatever else runs on the machine only ever adds to a time.
    return min(seconds["bare"]) / count, min(seconds["ours"]) / count


def compare(repeats: int) -> str:
    """Return the table of both against the bare loop, per distortion and dimension."""
    rows = []
    for dim in (2, 5):
        for name in NAMES:
            bare, ours = rates(name, dim, 1, 50, 4 * repeats)
            bare_many, ours_many = rates(name, dim, BATCH, 4, 2 * repeats)
            single = (1 / bare, 1 / ours, ours / bare)
            many = (BATCH / bare_many, BATCH / ours_many, ours_many / bare_many)
            rows.append((name, dim, *single, *many))
            print(name, dim, f"{ours / bare:.2f} {ours_many / bare_many:.2f}", flush=True)
    size = f"{BATCH} contexts"
    header = ("f", "d", "bare", "environment", "time / bare", f"bare, {size}", f"batched, {size}", "time / bare")
    return markdown_table(header, rows)


def growth(repeats: int) -> str:
    """Return the table of how both grow with dimension and batch, under blend."""
    rows = []
    batches = (1, 64, 1024, 16384)
    for dim in (2, 5, 10, 20):
        cells = []
        for batch in batches:
            _, ours = rates("blend", dim, batch, 50 if batch == 1 else 4, repeats)
            cells.append(batch / ours)
        rows.append((dim, *cells))
    header = ("d", "environment", *(f"batch of {batch}" for batch in batches[1:]))
    return markdown_table(header, rows)


def main(arguments: argparse.Namespace) -> int:
    """Measure and write the section of docs/results.md, unless only a quick look is asked for."""
    repeats = 3 if arguments.quick else 100
    text = "\n\n".join(
        (
            "Steps per second on one core, the fastest of many turns. `bare` is a loop that only evaluates the "
            "formula of the distortion in plain numpy, with its matrices prepared beforehand; `environment` and "
            "`batched` also check and shorten the action, stop at the border, measure the distance, reward, and end.",
            compare(repeats),
            "Growth with dimension and batch under blend, in steps per second:",
            growth(repeats),
        )
    )
    print(text)
    if not arguments.quick:
        replace_section(RESULTS, SECTION, text)
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmark.positioning", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few repetitions, nothing is written")
    sys.exit(main(parser.parse_args()))
