"""When a pair (i, j) of a recorded episode is a shortcut, and how strategies weigh the candidates.

With G_{j-1} = r_{j-1} + γ·G_j the paper's condition γ·G_j − G_i + r_{j-1} ≥ C·Σ‖a_k‖ reads
G_{j-1} − C·P_j ≥ G_i − C·P_i, where P sums the lengths of the actions. Both sides belong to one node of the
trajectory each, so a pair is decided by one comparison and the length of a difference of prefix sums.

Where a step moves the plant by M·a‖a‖^κ instead of M·a, what adds up along the way is the drive v = Σ a_k‖a_k‖^κ, and
the one action with the same effect is v‖v‖^(−κ/(1+κ)). κ = 0 is the paper's Algorithm 1; `motion` estimates κ.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt

from lift_ros.array_types import BoolArray, FloatArray, IntArray
from lift_ros.errors import UserError

STRATEGIES = ("weighted", "inverse_distance", "uniform", "best")
PLAIN = "none"  # no shortcuts: each step's own transition

# The same sum added up in another order must not change the answer: 3·0.1 lies in the ball of radius 0.3.
_RETURN_SLACK = 1e-12
_BALL_SLACK = {"single": 1e-6, "double": 1e-9}


@dataclass(frozen=True, slots=True)
class Rule:
    """The parameters of Algorithm 1, checked."""

    gamma: float
    C: float
    action_radius: float
    strategy: str = "weighted"
    kappa: float = 0.0  # κ: a step moves the plant by M·a‖a‖^κ

    def __post_init__(self) -> None:
        if not 0 <= self.gamma <= 1:
            raise UserError(f"gamma is {self.gamma}, but a discount lies between 0 and 1; try 0.99.")
        if not (self.C >= 0 and math.isfinite(self.C)):
            raise UserError(f"C is {self.C}, but it must be finite and not negative; C=0 admits the most shortcuts.")
        if not self.action_radius > 0:
            raise UserError(
                f"action_radius is {self.action_radius}, but it must be positive; give the length of the longest "
                "action that the plant accepts."
            )
        if self.strategy not in STRATEGIES:
            raise UserError(f"strategy is {self.strategy!r}, but must be one of {', '.join(STRATEGIES)}.")
        if not -1 < self.kappa < math.inf:
            raise UserError(f"kappa is {self.kappa}, but must be finite and above -1; 0 is a linear motion.")


@dataclass(frozen=True, slots=True)
class Nodes:
    """The n+1 states of every episode, laid end to end, with what the condition needs at each of them."""

    sums: FloatArray  # [M, d] drives a‖a‖^κ added up from the episode's start
    level: FloatArray  # [M] G_i − C·P_i: what a shortcut from here has to reach; +inf at the last state
    gain: FloatArray  # [M] G_{j-1} − C·P_j: what a shortcut to here reaches; -inf at the first state
    reached: FloatArray  # [M] r_{j-1}, the reward of a shortcut to here; NaN at the first state
    base: IntArray  # [E] the first node of each episode
    ends: IntArray  # [E] the largest admissible j: n where the state after the last step is known, else n−1
    returns: FloatArray  # [steps] G_i, what was still collected from each step on
    limit: float  # the largest squared length of a shortcut's drive
    kappa: float

    def admissible(self, starts: IntArray, stops: IntArray) -> BoolArray:
        """Whether the pairs of nodes are candidates; the direct successor is one by definition."""
        chord = self.sums[stops] - self.sums[starts]
        inside: BoolArray = np.einsum("...d,...d->...", chord, chord) <= self.limit
        inside &= self.gain[stops] >= self.level[starts]
        inside |= stops == starts + 1
        return inside

    def actions(self, drives: FloatArray) -> FloatArray:
        """Return the one action that has the effect of all actions whose drives add up to each of these."""
        return drives if self.kappa == 0 else _times_power(drives, -self.kappa / (1 + self.kappa))


def make_nodes(actions: Any, rewards: Any, offsets: Any, closed: Any, rule: Rule) -> Nodes:
    """Return the nodes of episodes given as flat arrays: episode e holds the steps offsets[e] to offsets[e+1].

    An episode is closed where the state after its last step is known: it is terminal, or it was observed.
    """
    actions, slack = _checked_actions(actions)
    rewards = _checked_rewards(rewards, len(actions), rule.strategy)
    offsets = _checked_offsets(offsets, len(actions))
    closed = np.asarray(closed, dtype=bool).reshape(-1)
    count = len(offsets) - 1
    if len(closed) != count:
        raise UserError(f"terminated has {len(closed)} entries, but offsets describe {count} episodes.")
    size = len(actions) + count
    sums = np.zeros((size, actions.shape[1]))
    path = np.zeros(size)
    gain = np.full(size, -np.inf)
    level = np.full(size, np.inf)
    reached = np.full(size, np.nan)
    base = offsets[:-1] + np.arange(count)
    lengths = np.sqrt(np.einsum("nd,nd->n", actions, actions))
    drives = actions if rule.kappa == 0 else _times_power(actions, rule.kappa)
    values = rewards.tolist()
    all_returns = np.empty(len(actions))
    for node, first, stop in zip(base.tolist(), offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        last = node + stop - first
        np.cumsum(drives[first:stop], axis=0, out=sums[node + 1 : last + 1])
        np.cumsum(lengths[first:stop], out=path[node + 1 : last + 1])
        all_returns[first:stop] = returns = discounted_returns(values[first:stop], rule.gamma)
        level[node:last] = returns - rule.C * path[node:last]
        gain[node + 1 : last + 1] = returns - rule.C * path[node + 1 : last + 1]
        gain[node + 1 : last + 1] += _RETURN_SLACK * (np.abs(returns).max(initial=0) + rule.C * path[last])
        reached[node + 1 : last + 1] = rewards[first:stop]
    ends = np.maximum(np.diff(offsets) - np.where(closed, 0, 1), 0)
    limit = (rule.action_radius * (1 + slack)) ** (2 * (1 + rule.kappa))
    return Nodes(sums, level, gain, reached, base, ends, all_returns, limit, rule.kappa)


def _times_power(vectors: FloatArray, exponent: float) -> FloatArray:
    """Return x‖x‖^exponent for every vector; those of length zero stay."""
    lengths = np.sqrt(np.einsum("...d,...d->...", vectors, vectors))
    powers = np.power(lengths, exponent, out=np.zeros_like(lengths), where=lengths > 0)
    result: FloatArray = vectors * powers[..., None]
    return result


def discounted_returns(rewards: list[float], gamma: float) -> FloatArray:
    """Return G_i = r_i + γ·G_{i+1} of one episode, with G_n = 0."""
    backwards = accumulate(reversed(rewards), lambda later, reward: reward + gamma * later)
    return np.array(list(backwards)[::-1], dtype=np.float64)


def weights(reached: FloatArray, strategy: str) -> FloatArray:
    """Return the mass function ρ over all candidates of one start, given their rewards."""
    mass: FloatArray
    if strategy == "uniform":
        mass = np.ones_like(reached)
    elif strategy == "best":
        mass = np.zeros_like(reached)
        mass[np.argmax(reached)] = 1  # of equals the first: the shorter the chain, the smaller its placement error
    elif strategy == "inverse_distance":
        at_goal = reached == 0
        mass = at_goal.astype(np.float64) if at_goal.any() else -1 / reached
    else:
        mass = reached - reached.min()
        if not mass.any():  # a single candidate, or all equally good: Algorithm 1 leaves 0/0
            mass = np.ones_like(reached)
    mass /= mass.sum()
    return mass


def candidates(
    actions: npt.ArrayLike,
    rewards: npt.ArrayLike,
    i: int,
    *,
    gamma: float = 0.99,
    C: float = 0.0,  # noqa: N803
    action_radius: float,
    terminated: bool = True,
    strategy: str = "weighted",
    kappa: float = 0.0,
) -> tuple[IntArray, FloatArray]:
    """Return the j's to which a shortcut may lead from step i, ascending, and the probability of each.

    In a terminated episode of n steps j = n is the terminal state. In any other episode the state after the last step
    is part of the trajectory only where it was observed, as it is in a run: then, too, say `terminated`. Else the last
    step has no candidates and both arrays are empty.
    """
    rule = Rule(gamma, C, action_radius, strategy, kappa)
    steps = len(np.asarray(actions))
    if not 0 <= i < steps:
        raise UserError(f"i is {i}, but the episode has {steps} steps, numbered from 0 to {steps - 1}.")
    nodes = make_nodes(actions, rewards, [0, steps], [terminated], rule)
    stops = np.arange(i + 1, int(nodes.ends[0]) + 1)
    chosen = stops[nodes.admissible(np.full_like(stops, i), stops)]
    if not len(chosen):
        return chosen, np.empty(0)
    return chosen, weights(nodes.reached[chosen], strategy)


def _checked_actions(actions: Any) -> tuple[FloatArray, float]:
    given = np.asarray(actions)
    slack = _BALL_SLACK["single" if given.dtype in (np.float16, np.float32) else "double"]
    checked = given.astype(np.float64, copy=False)
    if checked.ndim == 1:
        checked = checked[:, None]
    if checked.ndim != 2:
        raise UserError(f"actions have the shape {given.shape}, but shortcuts need one vector per step: [steps, size].")
    if not np.isfinite(checked).all():
        step = int(np.flatnonzero(~np.isfinite(checked).all(axis=1))[0])
        raise UserError(
            f"The action of step {step} is {checked[step]}, but all must be finite; leave that episode out."
        )
    return checked, slack


def _checked_rewards(rewards: Any, steps: int, strategy: str) -> FloatArray:
    checked: FloatArray = np.asarray(rewards, dtype=np.float64).reshape(-1)
    if len(checked) != steps:
        raise UserError(f"There are {len(checked)} rewards for {steps} actions, but each step needs one of both.")
    if not np.isfinite(checked).all():
        step = int(np.flatnonzero(~np.isfinite(checked))[0])
        raise UserError(
            f"The reward of step {step} is {checked[step]}, but all must be finite; label rewards in hindsight first."
        )
    if strategy == "inverse_distance" and (checked > 0).any():
        step = int(np.argmax(checked > 0))
        raise UserError(
            f"The reward of step {step} is {checked[step]}, but inverse_distance takes it for a negative distance, "
            "at most 0; choose the strategy weighted."
        )
    return checked


def _checked_offsets(offsets: Any, steps: int) -> IntArray:
    checked = np.asarray(offsets, dtype=np.int64)
    if checked.ndim != 1 or len(checked) < 2 or checked[0] != 0 or checked[-1] != steps or (np.diff(checked) < 0).any():
        raise UserError(
            f"offsets must rise from 0 to the number of steps, {steps}, with one entry more than there are episodes, "
            f"but are {np.array2string(checked, threshold=8)}."
        )
    return checked
