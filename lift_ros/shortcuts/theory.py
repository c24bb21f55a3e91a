"""The conditions of the theory on recorded episodes: placement errors, L_f, L_V, f-contraction and what C admits.

Matrices over pairs have one row per start i = 0 … n−1 and one column per state j = 0 … n; where j ≤ i they hold NaN.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lift_ros.array_types import BoolArray, FloatArray
from lift_ros.errors import UserError
from lift_ros.shortcuts.rule import Rule, discounted_returns, make_nodes

_SLACK = 1e-9  # positions that are equal but for rounding have not moved apart


def placement_errors(positions: npt.ArrayLike, actions: npt.ArrayLike) -> FloatArray:
    """Return how far the accumulated action, applied at s_i, misses s_j, for every pair of one episode.

    The linear response that fits the episode best stands for f, since a log does not tell where an action would have
    led that was never made: what remains is the part of the movement that regrouping actions cannot explain, and
    exactly zero where f(s, a, W) = s + W·a.
    """
    path, done = np.asarray(positions, dtype=np.float64), np.asarray(actions, dtype=np.float64)
    done = done.reshape(len(done), -1)
    if path.ndim != 2 or len(path) != len(done) + 1 or not len(done):
        raise UserError(
            f"positions have the shape {path.shape} for {len(done)} actions, but must hold one vector per step and the "
            "final one."
        )
    if not (np.isfinite(path).all() and np.isfinite(done).all()):
        raise UserError("Positions or actions hold NaN or infinity; leave that episode out.")
    sums = np.concatenate((np.zeros((1, done.shape[1])), np.cumsum(done, axis=0)))
    response = np.linalg.lstsq(done, np.diff(path, axis=0), rcond=None)[0]
    return np.where(_later(len(done)), _distances(path - sums @ response)[:-1], np.nan)


def placement_constant(positions: npt.ArrayLike, actions: npt.ArrayLike, quantile: float = 1.0) -> float:
    """Estimate L_f of one episode: a quantile, by default the largest, of placement error per length of the path."""
    errors = placement_errors(positions, actions)
    lengths = _path_lengths(np.asarray(actions, dtype=np.float64))
    moved = lengths > 0  # false for NaN, too
    return _quantile(errors[moved] / lengths[moved], quantile)


def lipschitz_constant(
    positions: npt.ArrayLike, rewards: npt.ArrayLike, gamma: float, quantile: float = 1.0, closest: float = 1e-6
) -> float:
    """Estimate L_V along one episode: |G_i − G_j| per distance of s_i and s_j, by default the most over all pairs.

    Pairs closer than `closest` are left out: they tell of measurement noise, not of the value function.
    """
    path = np.asarray(positions, dtype=np.float64)
    values = discounted_returns(np.asarray(rewards, dtype=np.float64).reshape(-1).tolist(), gamma)
    if len(path) not in (len(values), len(values) + 1):
        raise UserError(f"There are {len(path)} positions for {len(values)} rewards; give one per step, or one more.")
    path = path[: len(values)]
    first, second = np.triu_indices(len(values), 1)
    apart = np.linalg.norm(path[first] - path[second], axis=1)
    far = apart >= closest
    return _quantile(np.abs(values[first] - values[second])[far] / apart[far], quantile)


def theorem_constant(gamma: float, L_f: float, L_V: float) -> float:  # noqa: N803
    """Return the C for which Algorithm 1 checks Theorem 3.6's condition: (γ·L_V + 1)·L_f."""
    if not (L_f >= 0 and L_V >= 0):
        raise UserError(f"L_f is {L_f} and L_V is {L_V}, but neither may be negative.")
    return (gamma * L_V + 1) * L_f


def contracting_pairs(positions: npt.ArrayLike, logged: npt.ArrayLike) -> tuple[int, int]:
    """Check along one episode whether the logging policy is an f-contraction.

    Return for how many pairs of its steps ‖s_{i+1} − s_{j+1}‖ ≤ ‖s_i − s_j‖ holds, and how many there are; `logged`
    says which of the steps are its own.
    """
    path, own = np.asarray(positions, dtype=np.float64), np.flatnonzero(np.asarray(logged, dtype=bool))
    apart = _distances(path)
    first, second = np.triu_indices(len(own), 1)
    i, j = own[first], own[second]
    return int((apart[i + 1, j + 1] <= apart[i, j] + _SLACK).sum()), len(i)


def largest_constants(
    actions: npt.ArrayLike,
    rewards: npt.ArrayLike,
    *,
    gamma: float,
    terminated: bool = True,
    action_radius: float = float("inf"),
    kappa: float = 0.0,
) -> FloatArray:
    """Return the largest C with which Algorithm 1 takes each pair of one episode: negative where it never does.

    The direct successor, +inf, is taken with every C. Pairs outside the action ball hold NaN.
    """
    rule = Rule(gamma, 0.0, action_radius, kappa=kappa)
    nodes = make_nodes(actions, rewards, [0, len(np.asarray(actions))], [terminated], rule)
    steps, end = len(nodes.gain) - 1, int(nodes.ends[0])
    # With C = 0 level and gain are the returns, up to a slack far below anything a plot can show.
    gained = nodes.gain[None, :] - nodes.level[:-1, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        largest: FloatArray = gained / _path_lengths(np.asarray(actions, dtype=np.float64))
    largest[(np.arange(steps + 1) > end) | ~_later(steps) | (_distances(nodes.sums)[:-1] ** 2 > nodes.limit)] = np.nan
    direct = np.arange(end)
    largest[direct, direct + 1] = np.inf
    return largest


def _later(steps: int) -> BoolArray:
    order: BoolArray = np.arange(steps + 1) > np.arange(steps)[:, None]
    return order


def _distances(points: FloatArray) -> FloatArray:
    """Return the distances between all points."""
    return np.asarray(np.linalg.norm(points[None, :] - points[:, None], axis=2))


def _path_lengths(actions: FloatArray) -> FloatArray:
    """Return Σ‖a_k‖ between all pairs."""
    vectors = actions.reshape(len(actions), -1)
    path = np.concatenate(([0.0], np.cumsum(np.linalg.norm(vectors, axis=1))))
    return np.where(_later(len(vectors)), path[None, :] - path[:-1, None], np.nan)


def _quantile(values: FloatArray, quantile: float) -> float:
    if not 0 <= quantile <= 1:
        raise UserError(f"quantile is {quantile}, but must lie between 0 and 1; 1 gives the largest.")
    if not len(values):
        raise UserError("No pair of states is left to estimate from; give an episode of at least two steps that moves.")
    return float(np.quantile(values, quantile))
