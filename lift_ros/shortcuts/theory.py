"""The conditions of the theory on recorded episodes: placement errors, L_f, L_V, Theorem 3.6 and what C admits.

Matrices over pairs have one row per start i = 0 … n−1 and one column per state j = 0 … n; where j ≤ i they hold NaN
or False.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from lift_ros.array_types import BoolArray, FloatArray
from lift_ros.errors import UserError
from lift_ros.shortcuts.rule import Nodes, Rule, discounted_returns, make_nodes

Move = Callable[[FloatArray, FloatArray], FloatArray]


def placement_errors(positions: npt.ArrayLike, actions: npt.ArrayLike, move: Move | None = None) -> FloatArray:
    """Return how far the accumulated action, applied at s_i, misses s_j, for every pair of one episode.

    `move(position, action)` is f where a simulator knows it. Else the linear response that fits the episode best
    stands for f, since a log does not tell where an action would have led that was never made: what remains is the
    part of the movement that regrouping actions cannot explain, and exactly zero where f(s, a, W) = s + W·a.
    """
    path, done = _trajectory(positions, actions)
    sums = np.concatenate((np.zeros((1, done.shape[1])), np.cumsum(done, axis=0)))
    if move is None:
        response = np.linalg.lstsq(done, np.diff(path, axis=0), rcond=None)[0]
        unexplained = path - sums @ response
        errors = np.linalg.norm(unexplained[None, :] - unexplained[:-1, None], axis=2)
    else:
        errors = np.full((len(done), len(path)), np.nan)
        for i in range(len(done)):
            landed = np.array([move(path[i], sums[j] - sums[i]) for j in range(i + 1, len(path))])
            errors[i, i + 1 :] = np.linalg.norm(landed - path[i + 1 :], axis=1)
    return np.where(_later(len(done)), errors, np.nan)


def placement_constant(
    positions: npt.ArrayLike, actions: npt.ArrayLike, quantile: float = 1.0, move: Move | None = None
) -> float:
    """Estimate L_f of one episode: a quantile, by default the largest, of placement error per length of the path."""
    errors = placement_errors(positions, actions, move)
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


def theorem_mask(
    actions: npt.ArrayLike,
    rewards: npt.ArrayLike,
    *,
    gamma: float,
    L_f: float,  # noqa: N803
    L_V: float,  # noqa: N803
    terminated: bool = True,
    action_radius: float = float("inf"),
) -> BoolArray:
    """Return which pairs of one episode Theorem 3.6 guarantees to be shortcuts, given L_f and L_V."""
    return candidate_mask(
        actions,
        rewards,
        gamma=gamma,
        C=theorem_constant(gamma, L_f, L_V),
        terminated=terminated,
        action_radius=action_radius,
    )


def candidate_mask(
    actions: npt.ArrayLike,
    rewards: npt.ArrayLike,
    *,
    gamma: float,
    C: float,  # noqa: N803
    terminated: bool = True,
    action_radius: float = float("inf"),
) -> BoolArray:
    """Return which pairs of one episode Algorithm 1 takes for shortcuts."""
    nodes = _nodes(actions, rewards, gamma, C, terminated, action_radius)
    steps = len(nodes.gain) - 1
    start, stop = np.nonzero(_admissible_order(nodes))
    mask = np.zeros((steps, steps + 1), dtype=bool)
    mask[start, stop] = nodes.admissible(start, stop)
    return mask


def largest_constants(
    actions: npt.ArrayLike,
    rewards: npt.ArrayLike,
    *,
    gamma: float,
    terminated: bool = True,
    action_radius: float = float("inf"),
) -> FloatArray:
    """Return the largest C that admits each pair of one episode: negative where none does.

    The direct successor, +inf, is admitted by every C. Pairs outside the action ball hold NaN.
    """
    nodes = _nodes(actions, rewards, gamma, 0.0, terminated, action_radius)
    lengths = _path_lengths(np.asarray(actions, dtype=np.float64))
    # With C = 0 level and gain are the returns, up to a slack far below anything a plot can show.
    gained = nodes.gain[None, :] - nodes.level[:-1, None]
    chord = np.linalg.norm(nodes.sums[None, :] - nodes.sums[:-1, None], axis=2)
    with np.errstate(divide="ignore", invalid="ignore"):
        largest: FloatArray = gained / lengths
    largest[~_admissible_order(nodes) | (chord**2 > nodes.limit)] = np.nan
    direct = np.arange(int(nodes.ends[0]))
    largest[direct, direct + 1] = np.inf
    return largest


def constants_heatmap(
    actions: npt.ArrayLike,
    rewards: npt.ArrayLike,
    offsets: npt.ArrayLike,
    terminated: npt.ArrayLike,
    *,
    gamma: float,
    action_radius: float = float("inf"),
    longest_start: int = 200,
    longest_offset: int = 200,
) -> FloatArray:
    """Return the paper's C-heatmap: element [k, i] is the largest C that admits a shortcut from i to i+k, averaged.

    The average runs over the episodes that hold the pair, inside the action ball. NaN stands where none does, and for
    k < 2, since every C admits the direct successor.
    """
    limits, ended = np.asarray(offsets, dtype=np.int64), np.asarray(terminated, dtype=bool).reshape(-1)
    done, earned = np.asarray(actions, dtype=np.float64), np.asarray(rewards, dtype=np.float64).reshape(-1)
    total = np.zeros((longest_offset + 1, longest_start + 1))
    count = np.zeros_like(total)
    for begin, end, over in zip(limits[:-1], limits[1:], ended, strict=True):
        largest = largest_constants(
            done[begin:end], earned[begin:end], gamma=gamma, terminated=bool(over), action_radius=action_radius
        )
        start, stop = np.nonzero(np.isfinite(largest))
        kept = (start <= longest_start) & (stop - start <= longest_offset)
        start, stop = start[kept], stop[kept]
        total[stop - start, start] += largest[start, stop]
        count[stop - start, start] += 1
    heatmap: FloatArray = np.divide(total, count, out=np.full_like(total, np.nan), where=count > 0)
    return heatmap


def _nodes(
    actions: npt.ArrayLike,
    rewards: npt.ArrayLike,
    gamma: float,
    C: float,  # noqa: N803
    terminated: bool,
    action_radius: float,
) -> Nodes:
    return make_nodes(actions, rewards, [0, len(np.asarray(actions))], [terminated], Rule(gamma, C, action_radius))


def _admissible_order(nodes: Nodes) -> BoolArray:
    """Whether i < j and j is a state to which shortcuts may lead."""
    steps = len(nodes.gain) - 1
    return _later(steps) & (np.arange(steps + 1) <= int(nodes.ends[0]))


def _later(steps: int) -> BoolArray:
    order: BoolArray = np.arange(steps + 1) > np.arange(steps)[:, None]
    return order


def _path_lengths(actions: FloatArray) -> FloatArray:
    """Return Σ‖a_k‖ between all pairs."""
    vectors = actions.reshape(len(actions), -1)
    path = np.concatenate(([0.0], np.cumsum(np.linalg.norm(vectors, axis=1))))
    return np.where(_later(len(vectors)), path[None, :] - path[:-1, None], np.nan)


def _trajectory(positions: npt.ArrayLike, actions: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    path, done = np.asarray(positions, dtype=np.float64), np.asarray(actions, dtype=np.float64)
    done = done.reshape(len(done), -1)
    if path.ndim != 2 or len(path) != len(done) + 1 or not len(done):
        raise UserError(
            f"positions have the shape {path.shape} for {len(done)} actions, but must hold one vector per step and the "
            "final one."
        )
    if not (np.isfinite(path).all() and np.isfinite(done).all()):
        raise UserError("Positions or actions hold NaN or infinity; leave that episode out.")
    return path, done


def _quantile(values: FloatArray, quantile: float) -> float:
    if not 0 <= quantile <= 1:
        raise UserError(f"quantile is {quantile}, but must lie between 0 and 1; 1 gives the largest.")
    if not len(values):
        raise UserError("No pair of states is left to estimate from; give an episode of at least two steps that moves.")
    return float(np.quantile(values, quantile))
