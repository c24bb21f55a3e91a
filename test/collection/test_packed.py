from __future__ import annotations

import pickle

import numpy as np
import pytest

from lift_ros.collection.loop import collect
from lift_ros.collection.packed import pack, unpack
from lift_ros.collection.records import Episode, Mode, Outcome, Source, Step, same
from lift_ros.scenario import load_scenario


def sent(episode: Episode) -> Episode:
    return unpack(pickle.loads(pickle.dumps(pack(episode))))


@pytest.mark.parametrize("p", [0.0, 0.5])
def test_episodes_arrive_bit_for_bit(p: float) -> None:
    scenario = load_scenario("po-blend-d2")
    augmentor = scenario.make_augmentation("uniform")
    for episode in collect(scenario, augmentor=augmentor, episodes=3, seed=1, p=p, progress=False):
        assert same(sent(episode), episode)


def test_steps_of_different_kinds_arrive_as_well() -> None:
    picture = np.arange(12, dtype=np.uint8).reshape(2, 2, 3)
    steps = [
        Step(0, 0, 1, np.ones(2), np.zeros(2), Source.LOGGING_POLICY, image=picture),
        Step(0, 1, 2, np.ones(2), np.zeros(2), Source.AUGMENTOR, augmentor_proposal=np.ones(2), reward=-0.5),
    ]
    for few in (steps, steps[:1], []):
        episode = Episode(4, 2, Mode.COLLECT, Outcome.REACHED, few, np.ones(2))
        assert same(sent(episode), episode)


def test_packing_leaves_the_episode_as_it_is() -> None:
    episode = collect(load_scenario("po-blend-d2"), episodes=1, seed=1, progress=False)[0]
    count = len(episode.steps)
    pack(episode)
    assert len(episode.steps) == count > 0
