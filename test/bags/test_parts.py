"""Episodes that other processes have written become a run's own, in order, or nobody's."""

from __future__ import annotations

import hashlib
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from training_samples import make_episodes

from lift_ros.bags import BagError, RunReader, RunWriter
from lift_ros.bags.files import PARTS
from lift_ros.bags.parts import Part, Parts, take_over
from lift_ros.collection.records import Episode
from lift_ros.errors import UserError

FACTS = {"made_by": "test"}


def timed(count: int = 4) -> list[Episode]:
    """Return episodes whose times are the same at each call."""
    episodes = make_episodes(count)
    for episode in episodes:
        episode.start_time_ns, episode.end_time_ns = 1, 10**9
        episode.steps = [replace(step, time_ns=10 + step.index) for step in episode.steps]
    return episodes


def digests(run: Path) -> dict[str, str]:
    return {
        path.name.removeprefix(run.name): hashlib.sha256(path.read_bytes()).hexdigest() for path in run.glob("*.mcap")
    }


def elsewhere(writer: RunWriter) -> Parts:
    """Return what another process is sent."""
    parts: Parts = pickle.loads(pickle.dumps(Parts(writer)))
    return parts


def written(parts: Parts, episode: Episode) -> Part:
    """Return what that process sends back."""
    part: Part = pickle.loads(pickle.dumps(parts(episode)))
    return part


@pytest.mark.parametrize("settings", [{}, {"sync": False, "compression": "zstd", "namespace": "/left"}])
def test_a_run_of_parts_is_the_run_that_one_writer_writes(tmp_path: Path, settings: dict[str, Any]) -> None:
    with RunWriter(tmp_path / "one", FACTS, **settings) as writer:
        for episode in timed():
            writer.write_episode(episode)
    with RunWriter(tmp_path / "two", FACTS, **settings) as writer:
        process = elsewhere(writer)
        parts = [written(process, episode) for episode in reversed(timed())]
        for part in reversed(parts):
            took = take_over(writer, part)
            assert (took.steps, part.steps) == ([], 8)
    assert digests(tmp_path / "one") == digests(tmp_path / "two")
    one, two = ((tmp_path / name / "metadata.yaml").read_text() for name in ("one", "two"))
    assert one == two.replace("two_", "one_")
    assert not (tmp_path / "two" / PARTS).exists()


def test_parts_and_episodes_of_ones_own_may_take_turns(tmp_path: Path) -> None:
    first, second, third, _ = timed()
    with RunWriter(tmp_path / "run", FACTS) as writer:
        writer.write_episode(first)
        take_over(writer, written(elsewhere(writer), second))
        writer.write_episode(third)
    reader = RunReader(tmp_path / "run")
    assert [len(reader.episode(index).steps) for index in reader.episode_indices] == [8, 8, 8]


def test_what_nobody_took_over_is_no_episode_and_goes_with_the_next_writer(tmp_path: Path) -> None:
    run = tmp_path / "run"
    writer = RunWriter(run, FACTS)
    left = written(elsewhere(writer), timed()[1])
    writer._release()  # as a crash leaves it
    assert left.file.exists()
    assert RunReader(run).episode_indices == []
    with RunWriter(run, FACTS) as writer:
        assert writer.next_episode == 0 and not left.file.exists()


def test_a_part_out_of_order_or_of_another_size_is_refused(tmp_path: Path) -> None:
    with RunWriter(tmp_path / "run", FACTS) as writer:
        parts = elsewhere(writer)
        with pytest.raises(BagError, match="expects episode 0"):
            take_over(writer, written(parts, timed()[1]))
        take_over(writer, written(parts, timed()[0]))
        other = make_episodes(2, size=3)[1]
        with pytest.raises(BagError, match="those before have"):
            take_over(writer, written(parts, other))
        assert writer.next_episode == 1


def test_files_of_many_episodes_take_no_parts(tmp_path: Path) -> None:
    with RunWriter(tmp_path / "run", FACTS, 5) as writer:
        with pytest.raises(UserError, match="episodes_per_file is 5"):
            take_over(writer, written(elsewhere(writer), timed()[0]))
        assert writer.next_episode == 0
