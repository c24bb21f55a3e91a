"""Shortcuts inside d3rlpy: the picker one by one, and whole batches."""

from __future__ import annotations

import gc
import logging
from collections import Counter
from typing import Any

import d3rlpy
import numpy as np
import pytest
import structlog
from d3rlpy.dataset import Episode, InfiniteBuffer, ReplayBuffer, Transition
from literal_algorithm import literal_action
from scipy import stats

from lift_ros.errors import UserError
from lift_ros.shortcuts import STRATEGIES, ShortcutPicker, candidates, picker

ALGORITHMS = ("CQL", "IQL", "TD3PlusBC", "SAC", "BC", "CalQL", "ReBRAC")


@pytest.fixture(autouse=True)
def quiet() -> Any:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    yield
    structlog.reset_defaults()


def make_episode(seed: int, steps: int = 20, terminated: bool = True, image: bool = False) -> Episode:
    rng = np.random.default_rng(seed)
    observations = (
        rng.integers(0, 255, (steps, 1, 36, 36), dtype=np.uint8)
        if image
        else rng.normal(size=(steps, 3)).astype(np.float32)
    )
    return Episode(
        observations,
        rng.normal(0, 0.1, (steps, 2)).astype(np.float32),
        (-rng.random((steps, 1)) - 1e-3).astype(np.float32),
        terminated,
    )


def stop_of(episode: Episode, picked: Transition) -> int:
    """Return where a picked shortcut ends: no two rewards of an episode are equal."""
    return int(np.flatnonzero(episode.rewards[:, 0] == picked.reward[0])[0]) + 1


def make_buffer(episodes: list[Episode], **options: Any) -> ReplayBuffer:
    shortcuts = ShortcutPicker(**{"action_radius": 0.3, "gamma": 0.99, "C": 0.0, "seed": 0, **options})
    return ReplayBuffer(InfiniteBuffer(), transition_picker=shortcuts, episodes=episodes)


def make_algorithm(name: str) -> Any:
    small = d3rlpy.models.VectorEncoderFactory([8])
    fields = {"batch_size": 8} | (
        {"encoder_factory": small}
        if name == "BC"
        else {"actor_encoder_factory": small, "critic_encoder_factory": small}
    )
    return getattr(d3rlpy.algos, f"{name}Config")(**fields).create(device=False)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_algorithms_learn_from_the_replay_buffer(name: str) -> None:
    buffer = make_buffer([make_episode(0), make_episode(1, terminated=False)])
    algorithm = make_algorithm(name)
    algorithm.build_with_dataset(buffer)
    for _ in range(3):
        losses = algorithm.update(buffer.sample_transition_batch(8))
        assert np.isfinite(list(losses.values())).all()


def test_fit_runs_unchanged() -> None:
    buffer = make_buffer([make_episode(seed, terminated=bool(seed % 2)) for seed in range(4)])
    algorithm = make_algorithm("CQL")
    algorithm.fit(
        buffer,
        n_steps=4,
        n_steps_per_epoch=2,
        logger_adapter=d3rlpy.logging.NoopAdapterFactory(),
        show_progress=False,
    )
    assert algorithm.predict(np.zeros((1, 3), dtype=np.float32)).shape == (1, 2)


def test_images_pass_through_a_convolution() -> None:
    episodes = [make_episode(0, image=True), make_episode(1, image=True, terminated=False)]
    buffer = make_buffer(episodes)
    batch = buffer.sample_transition_batch(4)
    assert batch.observations.shape == batch.next_observations.shape == (4, 1, 36, 36)
    pixels = d3rlpy.models.PixelEncoderFactory(filters=[(4, 8, 4)], feature_size=8)
    config = d3rlpy.algos.CQLConfig(
        batch_size=4,
        actor_encoder_factory=pixels,
        critic_encoder_factory=pixels,
        observation_scaler=d3rlpy.preprocessing.PixelObservationScaler(),
    )
    algorithm = config.create(device=False)
    algorithm.build_with_dataset(buffer)
    assert np.isfinite(list(algorithm.update(batch).values())).all()


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("memory", [1 << 20, 0])
@pytest.mark.parametrize("proposals", [64, 1, 0])
def test_draws_follow_the_mass_function(
    strategy: str, memory: int, proposals: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(picker, "_PROPOSALS", proposals)
    episode = make_episode(2, steps=30)
    shortcuts = ShortcutPicker(0.3, strategy=strategy, seed=1, memory_limit_bytes=memory)
    found, mass = candidates(
        episode.actions, episode.rewards, 4, gamma=0.99, C=0.0, action_radius=0.3, strategy=strategy
    )
    assert len(found) > 3
    ends = Counter(stop_of(episode, shortcuts(episode, 4)) for _ in range(4000))
    assert ends.keys() <= set(found[mass > 0].tolist())
    wanted = 4000 * mass
    seen = np.array([ends[j] for j in found.tolist()])
    often = wanted >= 8
    assert often.any()
    grouped = [np.append(values[often], values[~often].sum()) for values in (seen, wanted)]
    if grouped[1][-1] == 0:
        grouped = [values[:-1] for values in grouped]
    if len(grouped[0]) > 1:
        assert stats.chisquare(*grouped).pvalue > 1e-3


@pytest.mark.parametrize("terminated", [True, False])
@pytest.mark.parametrize("image", [True, False])
def test_contents_are_those_of_the_pair(terminated: bool, image: bool) -> None:
    episode = make_episode(3, steps=12, terminated=terminated, image=image)
    shortcuts = ShortcutPicker(0.5)
    ended = 0
    for index in [*range(episode.transition_count)] * 20:
        picked = shortcuts(episode, index)
        stop = stop_of(episode, picked)
        over = terminated and stop == 12
        ended += over
        assert picked.interval == 1 and picked.terminal == float(over)
        assert picked.action.dtype == np.float32
        assert picked.observation.dtype == picked.next_observation.dtype == episode.observations.dtype
        np.testing.assert_array_equal(picked.observation, episode.observations[index])
        np.testing.assert_allclose(picked.action, episode.actions[index:stop].sum(axis=0), rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(picked.rewards_to_go, episode.rewards[index:])
        np.testing.assert_array_equal(picked.next_observation, 0 if over else episode.observations[stop])
        np.testing.assert_array_equal(picked.next_action, 0 if over else episode.actions[stop])
    assert bool(ended) == terminated


@pytest.mark.parametrize("memory", [1 << 20, 0])
def test_in_a_power_motion_actions_have_the_effect_of_the_way(memory: int) -> None:
    episode = make_episode(3, steps=30)
    shortcuts = ShortcutPicker(0.3, kappa=0.5, strategy="uniform", memory_limit_bytes=memory)
    found, _ = candidates(episode.actions, episode.rewards, 4, action_radius=0.3, kappa=0.5)
    picked = [shortcuts(episode, 4) for _ in range(200)]
    assert {stop_of(episode, one) for one in picked} == set(found.tolist())
    for one in picked:
        expected = literal_action(episode.actions[4 : stop_of(episode, one)].tolist(), 0.5)
        np.testing.assert_allclose(one.action, expected, rtol=1e-5)


def test_observations_of_several_parts_are_kept_apart() -> None:
    parts = (np.ones((6, 2), dtype=np.float32), np.ones((6, 4), dtype=np.float32))
    episode = Episode(list(parts), np.full((6, 1), 0.1, np.float32), -np.ones((6, 1), np.float32), True)
    picked = ShortcutPicker(5.0)(episode, 2)
    assert (
        [part.shape for part in picked.observation] == [part.shape for part in picked.next_observation] == [(2,), (4,)]
    )


def test_what_is_known_of_an_episode_goes_with_it() -> None:
    shortcuts = ShortcutPicker(0.3)
    room = shortcuts._room
    episode = make_episode(4)
    shortcuts(episode, 0)
    assert len(shortcuts._walks) == 1 and shortcuts._room < room
    del episode
    gc.collect()
    assert len(shortcuts._walks) == 0 and shortcuts._room == room


def test_pairs_of_all_episodes_together_stay_within_the_memory_given() -> None:
    episodes = [make_episode(seed) for seed in range(5)]
    shortcuts = ShortcutPicker(0.3, memory_limit_bytes=400)
    for episode in episodes:
        shortcuts(episode, 0)
    kept = [walk.table is not None for walk in shortcuts._walks.values()]
    assert any(kept) and not all(kept)
    assert sum(walk.table_bytes for walk in shortcuts._walks.values()) <= 400


def test_an_episode_that_is_still_being_recorded_may_grow() -> None:
    buffer = ReplayBuffer(
        InfiniteBuffer(),
        transition_picker=ShortcutPicker(0.5),
        observation_signature=make_episode(0).observation_signature,
        action_signature=make_episode(0).action_signature,
        reward_signature=make_episode(0).reward_signature,
        action_space=d3rlpy.ActionSpace.CONTINUOUS,
        action_size=2,
    )
    rng = np.random.default_rng(0)
    for step in range(12):
        buffer.append(rng.normal(size=3).astype(np.float32), rng.normal(0, 0.1, 2).astype(np.float32), -1.0)
        if step > 2:
            assert len(buffer.sample_transition_batch(8)) == 8
    buffer.clip_episode(True)
    assert buffer.sample_transition_batch(200).terminals.any()


def test_the_seed_decides() -> None:
    episode = make_episode(5, steps=40)

    def actions(seed: int) -> list[list[float]]:
        shortcuts = ShortcutPicker(0.3, seed=seed)
        return [shortcuts(episode, index).action.tolist() for index in range(39)]

    assert actions(1) == actions(1)
    assert actions(1) != actions(2)


def test_a_step_without_transition_is_refused() -> None:
    with pytest.raises(UserError, match="No shortcut begins at step 19"):
        ShortcutPicker(0.3)(make_episode(8, terminated=False), 19)


def test_discrete_actions_are_refused() -> None:
    episode = Episode(np.zeros((4, 1), np.float32), np.zeros((4, 1), np.int64), np.zeros((4, 1), np.float32), True)
    with pytest.raises(UserError, match="int64"):
        ShortcutPicker(0.3)(episode, 0)


def test_bad_options_are_named_at_once() -> None:
    with pytest.raises(UserError, match="action_radius is -1"):
        ShortcutPicker(-1)
