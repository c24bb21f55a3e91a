"""Algorithm 1 line by line, the peer of the benchmark of studies, draws what the paper's words say."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from literal_algorithm import Trajectories, literal_candidates, literal_probabilities

from benchmark.line_by_line import GAMMA, C, LineByLinePicker
from lift_ros.lazy import quietly

with quietly():
    from d3rlpy.dataset import Episode

DRAWS = 2000


@pytest.mark.parametrize(("index", "terminated"), [(0, False), (4, True), (13, False), (14, True)])
def test_candidates_are_drawn_as_often_as_they_should(index: int, terminated: bool) -> None:
    walks = Trajectories(seed=3, lengths=[15], step=0.4)
    episode = Episode(walks.observations, walks.actions, walks.rewards[:, None], terminated=terminated)
    picker = LineByLinePicker(seed=1)
    drawn = Counter(float(picker(episode, index).reward[0]) for _ in range(DRAWS))
    rewards = walks.rewards.tolist()
    found = literal_candidates(walks.actions.tolist(), rewards, index, GAMMA, C, 1.0, terminated=terminated)
    wanted = dict(zip((rewards[stop - 1] for stop in found), literal_probabilities(rewards, found, ""), strict=True))
    assert set(drawn) <= set(wanted)
    assert max(abs(drawn[reward] / DRAWS - share) for reward, share in wanted.items()) < 0.05
    assert index >= 13 or len(found) > 2
    assert picker(episode, index).terminal == float(index == 14)
    assert np.linalg.norm(picker(episode, index).action) <= max(1.0, np.linalg.norm(walks.actions[index])) + 1e-9
