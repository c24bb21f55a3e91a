"""A run with a cut-off episode is good for everything a whole run is good for."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from bag_samples import sample_episode

from lift_ros.bags import RunReader, RunWriter
from lift_ros.bags.exporting.minari import seen_by, usable_episodes
from lift_ros.collection.records import Episode
from lift_ros.evaluation.plots import plot_trajectories
from lift_ros.training.data import make_data
from lift_ros.training.runs import load_runs


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Leave two whole episodes and three steps of another."""
    writer = RunWriter(tmp_path / "run", {}, sync=False, reserve=0)
    for index in range(2):
        writer.write_episode(rewarded(index))
    for step in rewarded(2).steps[:3]:
        writer.write_step(step)
    writer._release()
    return tmp_path / "run"


def rewarded(index: int) -> Episode:
    episode = sample_episode(index)
    for step in episode.steps:
        step.reward = -1.0
    return episode


def test_it_can_be_trained_on(run: Path) -> None:
    data = make_data(load_runs([run]).arrays, "recorded")
    assert data.offsets.tolist() == [0, 4, 8, 10]
    assert data.terminated.tolist() == [True, True, False]


def test_it_can_be_exported(run: Path) -> None:
    left_out: Counter[str] = Counter()
    lengths = [len(seen_by(episode, "vector")["vector"]) for episode in usable_episodes([RunReader(run)], left_out)]
    assert lengths == [5, 5, 3]
    assert not left_out


def test_it_can_be_drawn(run: Path, tmp_path: Path) -> None:
    plot_trajectories(list(RunReader(run)), tmp_path / "plot.png")
    assert (tmp_path / "plot.png").stat().st_size > 0
