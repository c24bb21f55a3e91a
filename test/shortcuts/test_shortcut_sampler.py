"""Mini-batches: their distribution, their contents and their state."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from literal_algorithm import Trajectories, literal_action
from scipy import stats

from lift_ros.errors import UserError
from lift_ros.shortcuts import STRATEGIES, ShortcutBatch, ShortcutSampler, candidates, draws

PLENTY, NOTHING = 1 << 30, 0


def make(walks: Trajectories, ends_seen: bool = True, **options: Any) -> ShortcutSampler:
    return ShortcutSampler(*walks.arrays[: 6 if ends_seen else 5], **{"action_radius": 0.3, **options})


def expected_shares(
    walks: Trajectories, strategy: str, episodes_first: bool = False, ends_seen: bool = True, kappa: float = 0.0
) -> dict[tuple[int, int], float]:
    """Return the probability of every (flat start, offset) that has one."""
    closed = walks.terminated | ends_seen
    counts = (walks.lengths - ~closed).tolist()
    shares = {}
    for episode, count in enumerate(counts):
        actions, rewards, _ = walks.episode(episode)
        for i in range(count):
            start = 1 / sum(map(bool, counts)) / count if episodes_first else 1 / sum(counts)
            options: dict[str, Any] = {"C": 0.1, "action_radius": 0.3, "strategy": strategy, "kappa": kappa}
            found, mass = candidates(actions, rewards, i, terminated=bool(closed[episode]), **options)
            for j, share in zip(found.tolist(), mass.tolist(), strict=True):
                if share > 0:
                    shares[int(walks.offsets[episode]) + i, j - i] = start * share
    return shares


def check_shares(sampler: ShortcutSampler, expected: dict[tuple[int, int], float], count: int = 60_000) -> None:
    batch = sampler.sample(count)
    drawn, times = np.unique(np.stack((batch.starts, batch.offsets), axis=1), axis=0, return_counts=True)
    observed = {(int(i), int(k)): int(n) for (i, k), n in zip(drawn, times, strict=True)}
    assert observed.keys() <= expected.keys()
    wanted = np.array([count * share for share in expected.values()])
    seen = np.array([observed.get(pair, 0) for pair in expected])
    rare = wanted < 8
    groups_wanted = np.append(wanted[~rare], wanted[rare].sum()) if rare.any() else wanted
    groups_seen = np.append(seen[~rare], seen[rare].sum()) if rare.any() else seen
    assert groups_wanted.sum() == pytest.approx(count)
    assert stats.chisquare(groups_seen, groups_wanted).pvalue > 1e-3


@pytest.mark.parametrize("memory", [PLENTY, NOTHING])
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(("episodes_first", "ends_seen"), [(False, True), (False, False), (True, True), (True, False)])
def test_draws_follow_the_mass_function(strategy: str, memory: int, episodes_first: bool, ends_seen: bool) -> None:
    walks = Trajectories(0, [12, 1, 30, 7], step=0.08)
    assert not walks.terminated.all()
    options: dict[str, Any] = {"C": 0.1, "strategy": strategy, "episodes_first": episodes_first}
    sampler = make(walks, ends_seen, memory_limit_bytes=memory, seed=1, **options)
    assert sampler.precomputed == (memory == PLENTY or strategy == "best")
    check_shares(sampler, expected_shares(walks, strategy, episodes_first, ends_seen))


@pytest.mark.parametrize("memory", [PLENTY, NOTHING])
@pytest.mark.parametrize("strategy", ["weighted", "inverse_distance", "uniform"])
@pytest.mark.parametrize("rounds", [(), (1,)])
def test_draws_that_give_up_proposing_follow_it_too(
    strategy: str, memory: int, rounds: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(draws, "_ROUNDS", rounds)
    monkeypatch.setattr(draws, "_TOGETHER", 5000)
    walks = Trajectories(1, [20, 9], step=0.08)
    check_shares(
        make(walks, C=0.1, strategy=strategy, memory_limit_bytes=memory, seed=1), expected_shares(walks, strategy)
    )


@pytest.mark.parametrize("memory", [PLENTY, NOTHING])
def test_a_single_good_state_among_many_is_always_drawn(memory: int) -> None:
    """Proposals nearly never hit it; the weights of all others are zero."""
    steps = 1500
    rewards = np.full(steps, -1.0)
    rewards[-1] = 0
    sampler = ShortcutSampler(
        np.zeros((steps, 1)),
        np.full((steps, 1), 1e-5),
        rewards,
        [0, steps],
        [True],
        action_radius=0.3,
        memory_limit_bytes=memory,
    )
    batch = sampler.sample(400)
    np.testing.assert_array_equal(batch.starts + batch.offsets, steps)
    assert batch.terminals.all()


@pytest.mark.parametrize("strategy", ["weighted", "inverse_distance"])
@pytest.mark.parametrize("memory", [PLENTY, NOTHING])
def test_a_walk_that_stands_at_its_goal_can_be_drawn_from(strategy: str, memory: int) -> None:
    walks = Trajectories(2, [10], share_terminated=1.0)
    walks.actions[:] = 0
    walks.rewards[:] = 0
    batch = make(walks, strategy=strategy, memory_limit_bytes=memory).sample(500)
    assert set(batch.offsets.tolist()) == set(range(1, 11))


@pytest.mark.parametrize("strategy", [*STRATEGIES, "none"])
def test_contents_are_those_of_the_pair(strategy: str) -> None:
    walks = Trajectories(3, [25, 40, 3], step=0.05)
    walks.terminated[:2] = (True, False)
    batch = make(walks, strategy=strategy).sample(700)
    episode = np.searchsorted(walks.offsets, batch.starts, side="right") - 1
    for k in range(len(batch)):
        i, j = int(batch.starts[k]), int(batch.starts[k] + batch.offsets[k])
        end = int(walks.offsets[episode[k] + 1])
        over = j == end
        assert batch.terminals[k, 0] == (over and walks.terminated[episode[k]])
        after = walks.final_observations[episode[k]] if over else walks.observations[j]
        np.testing.assert_array_equal(batch.observations[k], walks.observations[i].astype(np.float32))
        np.testing.assert_array_equal(batch.next_observations[k], after.astype(np.float32))
        np.testing.assert_allclose(batch.actions[k], walks.actions[i:j].sum(axis=0), rtol=1e-6, atol=1e-7)
        np.testing.assert_array_equal(batch.next_actions[k], 0 if over else walks.actions[j].astype(np.float32))
        assert batch.rewards[k, 0] == np.float32(walks.rewards[j - 1])
    assert batch.terminals.any() and not batch.terminals.all()


@pytest.mark.parametrize("memory", [PLENTY, NOTHING])
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("kappa", [0.5, 1.0, -0.3])
def test_actions_have_the_effect_of_the_way_in_a_power_motion(kappa: float, strategy: str, memory: int) -> None:
    walks = Trajectories(4, [25, 12, 40], step=0.05)
    batch = make(walks, kappa=kappa, strategy=strategy, memory_limit_bytes=memory).sample(400)
    assert batch.offsets.max() > 3
    for start, offset, action in zip(batch.starts.tolist(), batch.offsets.tolist(), batch.actions, strict=True):
        expected = literal_action(walks.actions[start : start + offset].tolist(), kappa)
        np.testing.assert_allclose(action, expected, atol=1e-6)
        assert offset == 1 or np.linalg.norm(action) <= 0.3 + 1e-6


@pytest.mark.parametrize("memory", [PLENTY, NOTHING])
@pytest.mark.parametrize("strategy", ["weighted", "uniform"])
def test_draws_follow_the_mass_function_of_a_power_motion(strategy: str, memory: int) -> None:
    walks = Trajectories(0, [12, 30, 7], step=0.08)
    expected = expected_shares(walks, strategy, kappa=0.5)
    assert expected.keys() != expected_shares(walks, strategy).keys()
    check_shares(make(walks, C=0.1, strategy=strategy, kappa=0.5, memory_limit_bytes=memory, seed=1), expected)


@pytest.mark.parametrize("strategy", [*STRATEGIES, "none"])
def test_the_last_step_of_a_truncated_episode_is_a_transition_that_does_not_terminate(strategy: str) -> None:
    walks = Trajectories(3, [4], share_terminated=0.0)
    batch = make(walks, strategy=strategy).sample(200)
    last = batch.starts + batch.offsets == 4
    assert (batch.starts == 3).any() and not batch.terminals.any()
    final = walks.final_observations.astype(np.float32)
    np.testing.assert_array_equal(batch.next_observations[last], np.broadcast_to(final, (last.sum(), 3)))
    assert not (make(walks, ends_seen=False, strategy=strategy).sample(200).starts == 3).any()


@pytest.mark.parametrize("strategy", ["weighted", "none"])
def test_returns_are_what_the_episode_collected_from_the_start_on(strategy: str) -> None:
    walks = Trajectories(3, [9, 14])
    batch = make(walks, strategy=strategy, gamma=0.9).sample(300)
    for start, found in zip(batch.starts.tolist(), batch.returns[:, 0].tolist(), strict=True):
        end = 9 if start < 9 else 23
        assert found == pytest.approx(sum(0.9 ** (k - start) * walks.rewards[k] for k in range(start, end)), rel=1e-6)


def test_plain_transitions_are_exactly_the_recorded_ones() -> None:
    walks = Trajectories(4, [30])
    batch = make(walks, strategy="none").sample(300)
    np.testing.assert_array_equal(batch.offsets, 1)
    np.testing.assert_array_equal(batch.actions, walks.actions[batch.starts].astype(np.float32))


def test_arrays_are_contiguous_single_precision() -> None:
    batch = make(Trajectories(5, [30, 10])).sample(64)
    for name, shape in {
        "observations": (64, 3),
        "actions": (64, 2),
        "rewards": (64, 1),
        "next_observations": (64, 3),
        "next_actions": (64, 2),
        "terminals": (64, 1),
        "returns": (64, 1),
    }.items():
        values = getattr(batch, name)
        assert (values.dtype, values.shape) == (np.float32, shape)
        assert values.flags.c_contiguous and values.flags.writeable


def test_batches_do_not_share_memory() -> None:
    sampler = make(Trajectories(6, [30, 10]))
    first = sampler.sample(50)
    kept = first.actions.copy()
    second = sampler.sample(50)
    second.actions[:] = 7
    for _ in range(200):
        sampler.sample(50).actions[:] = 9
    np.testing.assert_array_equal(first.actions, kept)
    np.testing.assert_array_equal(second.actions, 7)


def same(first: ShortcutBatch, second: ShortcutBatch) -> bool:
    return all(np.array_equal(getattr(first, name), getattr(second, name)) for name in ShortcutBatch.__slots__)


def test_the_seed_decides() -> None:
    walks = Trajectories(7, [30, 10])
    assert same(make(walks, seed=3).sample(100), make(walks, seed=3).sample(100))
    assert not same(make(walks, seed=3).sample(100), make(walks, seed=4).sample(100))
    given = make(walks, rng=np.random.default_rng(5)).sample(100)
    assert same(given, make(walks, rng=np.random.default_rng(5)).sample(100))


@pytest.mark.parametrize("before", [0, 1, 40, 41, 97])
@pytest.mark.parametrize("memory", [PLENTY, NOTHING])
def test_a_restored_state_continues_the_same_draws(before: int, memory: int) -> None:
    walks = Trajectories(8, [30, 10])
    sampler, other = (make(walks, memory_limit_bytes=memory, seed=seed) for seed in (1, 2))
    for _ in range(before):
        sampler.sample(100)
    state = json.loads(json.dumps(sampler.state()))
    other.sample(30)
    other.set_state(state)
    for _ in range(60):
        assert same(sampler.sample(100), other.sample(100))


def test_sizes_of_batches_may_change() -> None:
    sampler = make(Trajectories(9, [30, 10]))
    assert [len(sampler.sample(size)) for size in (1, 10_000, 7, 4096, 4097, 3)] == [1, 10_000, 7, 4096, 4097, 3]


def test_images_stay_bytes_until_they_are_drawn() -> None:
    walks = Trajectories(10, [20, 20], share_terminated=1.0)
    rng = np.random.default_rng(0)
    images = rng.integers(0, 255, (40, 3, 32, 32), dtype=np.uint8)
    finals = rng.integers(0, 255, (2, 3, 32, 32), dtype=np.uint8)
    sampler = ShortcutSampler(
        images, walks.actions, walks.rewards, walks.offsets, walks.terminated, finals, action_radius=0.5
    )
    batch = sampler.sample(200)
    assert batch.observations.dtype == np.float32
    assert batch.terminals.any()
    for k in range(200):
        i, j = int(batch.starts[k]), int(batch.starts[k] + batch.offsets[k])
        np.testing.assert_array_equal(batch.observations[k], images[i])
        after = finals[i // 20] if batch.terminals[k, 0] else images[j]
        np.testing.assert_array_equal(batch.next_observations[k], after)


def test_without_final_observations_the_terminal_one_is_zero() -> None:
    walks = Trajectories(11, [10], share_terminated=1.0)
    batch = ShortcutSampler(*walks.arrays[:5], action_radius=0.5).sample(300)
    ended = batch.terminals[:, 0] == 1
    assert ended.any() and not batch.next_observations[ended].any()


def test_counts() -> None:
    walks = Trajectories(12, [10, 5])
    walks.terminated[:] = (True, False)
    for ends_seen, transitions in ((True, 15), (False, 14)):
        sampler = make(walks, ends_seen, C=0.1, strategy="uniform")
        assert sampler.transitions == transitions
        assert sampler.pairs == len(expected_shares(walks, "uniform", ends_seen=ends_seen))


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"strategy": "worst"}, "worst"),
        ({"memory_limit_bytes": -1}, "memory_limit_bytes"),
        ({"observations": np.zeros((3, 1))}, "3 observations for 4 steps"),
        ({"final_observations": np.zeros((1, 1))}, "1 final_observations for 2 episodes"),
        ({"final_observations": np.zeros((2, 5))}, "shape"),
        ({"offsets": [0, 2, 5]}, "offsets must rise"),
        ({"offsets": [0, 4]}, "terminated has 2"),
        ({"rewards": [np.nan, 0, 0, 0]}, "hindsight"),
        (
            {"offsets": [0, 0, 0], **{name: np.zeros((0, 1)) for name in ("observations", "actions", "rewards")}},
            "no tr",
        ),
    ],
)
def test_bad_input_is_named(changed: dict[str, Any], named: str) -> None:
    values: dict[str, Any] = {
        "observations": np.zeros((4, 1)),
        "actions": np.zeros((4, 1)),
        "rewards": np.zeros(4),
        "offsets": [0, 2, 4],
        "terminated": [False, False],
        "final_observations": np.zeros((2, 1)),
        "action_radius": 0.3,
    }
    with pytest.raises(UserError, match=named):
        ShortcutSampler(**{**values, **changed})


def test_an_empty_batch_is_refused() -> None:
    with pytest.raises(UserError, match="batch is 0"):
        make(Trajectories(13, [10])).sample(0)
