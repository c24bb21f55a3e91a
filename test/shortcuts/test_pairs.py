"""All pairs at once against the candidates one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from literal_algorithm import Trajectories

from lift_ros.shortcuts import candidates, pairs
from lift_ros.shortcuts.pairs import Rows, make_rows
from lift_ros.shortcuts.rule import Rule, make_nodes

PLENTY = 1 << 30


def rows_of(walks: Trajectories, rule: Rule, memory: int = PLENTY) -> Rows:
    return make_rows(make_nodes(walks.actions, walks.rewards, walks.offsets, walks.terminated, rule), memory)


def check(walks: Trajectories, rule: Rule) -> None:
    rows, without = rows_of(walks, rule), rows_of(walks, rule, 0)
    assert rows.table is not None
    assert without.table is None or not rows.count.any()
    row = 0
    for episode in range(len(walks.lengths)):
        actions, rewards, terminated = walks.episode(episode)
        for i in range(len(actions) if terminated else len(actions) - 1):
            found, _ = candidates(
                actions,
                rewards,
                i,
                gamma=rule.gamma,
                C=rule.C,
                action_radius=rule.action_radius,
                terminated=terminated,
                kappa=rule.kappa,
            )
            offsets = rows.table[rows.first[row] : rows.first[row] + rows.count[row]]
            np.testing.assert_array_equal(offsets + i, found)
            reached = rewards[found - 1]
            for facts in (rows, without):
                assert facts.node[row] == walks.offsets[episode] + episode + i
                assert facts.count[row] == len(found)
                assert facts.last[row] == found[-1] - i
                assert (facts.low[row], facts.high[row]) == (reached.min(), reached.max())
                assert facts.best[row] == found[np.argmax(reached)] - i
            row += 1
    assert row == len(rows.node) == len(without.node)
    assert len(rows.table) == rows.count.sum()


@settings(derandomize=True, deadline=None, max_examples=25)
@given(
    seed=some.integers(0, 10**6),
    lengths=some.lists(some.integers(1, 90), min_size=1, max_size=4),
    size=some.integers(1, 5),
    step=some.sampled_from((0.01, 0.05, 0.3)),
    constant=some.sampled_from((0.0, 0.5)),
    kappa=some.sampled_from((0.0, 0.5, -0.3)),
)
def test_pairs_are_the_candidates(
    seed: int, lengths: list[int], size: int, step: float, constant: float, kappa: float
) -> None:
    check(Trajectories(seed, lengths, size, step), Rule(0.99, constant, 0.3, kappa=kappa))


def test_in_a_linear_motion_bare_actions_are_added_up() -> None:
    walks = Trajectories(3, [40], size=3)
    nodes = make_nodes(walks.actions, walks.rewards, walks.offsets, walks.terminated, Rule(0.99, 0.0, 0.3))
    np.testing.assert_array_equal(nodes.sums[1:], np.cumsum(walks.actions, axis=0))
    assert nodes.actions(nodes.sums) is nodes.sums
    assert nodes.limit == (0.3 * (1 + 1e-9)) ** 2


def test_strips_end_at_every_length() -> None:
    check(Trajectories(1, [1, 2, 31, 32, 33, 63, 64, 65, 97], step=0.05), Rule(0.9, 0.1, 0.3))


def test_a_walk_that_comes_back_after_long_is_found() -> None:
    walks = Trajectories(2, [400], size=2, share_terminated=1.0)
    there = np.zeros((200, 2))
    there[:, 0] = 0.05
    walks.actions = np.concatenate((there, -there))
    rows = rows_of(walks, Rule(0.99, 0.0, 0.3))
    assert rows.last[0] == 400
    check(walks, Rule(0.99, 0.0, 0.3))


def test_no_digits_are_lost_far_from_the_origin() -> None:
    walks = Trajectories(3, [120], step=0.05, share_terminated=1.0)
    walks.actions[0] = 1e6
    check(walks, Rule(0.99, 0.0, 0.3))


def test_many_small_pieces_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    walks, rule = Trajectories(4, [80, 5, 130, 40], step=0.03), Rule(0.99, 0.0, 0.3)
    whole = rows_of(walks, rule)
    monkeypatch.setattr(pairs, "_TILE", 1)
    monkeypatch.setattr(pairs, "_BOXES", 1)
    pieces = rows_of(walks, rule)
    for name in ("node", "count", "last", "low", "high", "best"):
        np.testing.assert_array_equal(getattr(whole, name), getattr(pieces, name))


def test_the_table_takes_no_more_memory_than_given() -> None:
    walks, rule = Trajectories(5, [60, 60], step=0.02), Rule(0.99, 0.0, 0.3)
    table = rows_of(walks, rule).table
    assert table is not None
    exactly = rows_of(walks, rule, table.nbytes).table
    assert exactly is not None
    np.testing.assert_array_equal(exactly, table)
    assert rows_of(walks, rule, table.nbytes - 1).table is None


def test_episodes_without_transitions_have_no_rows() -> None:
    walks = Trajectories(6, [1, 4, 1], share_terminated=0.0)
    assert len(rows_of(walks, Rule(0.99, 0.0, 0.3)).node) == 3
