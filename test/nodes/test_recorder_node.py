"""The recorder alone: what it writes once, confirms again, drops, and keeps of what was left behind."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from live_graph import recorded
from lone_node import Kept, lone_node, spin

import lift_ros.msg as msg
from lift_ros.bags import BagError
from lift_ros.bags.replaying import recorded_topics
from lift_ros.collection.records import Episode, Mode, Outcome, Source, Step, same
from lift_ros.errors import UserError
from lift_ros.graph import qos
from lift_ros.messages.records import EpisodeEnd, ReceiptKind, encode_episode, encode_step
from lift_ros.nodes.diagnostics import Status
from lift_ros.nodes.recorder_node import Recorder


def step(index: int, episode: int = 0, x: float = 0.5) -> Step:
    values = np.array([x, index])
    source = Source.AUGMENTOR if index % 2 else Source.LOGGING_POLICY
    return Step(episode, index, 10**18 + index, values, values / 4, source, values, -x)


def episode(steps: int, index: int = 0, outcome: Outcome = Outcome.REACHED) -> Episode:
    records = [step(number, index) for number in range(steps)]
    end = np.array([0.0, 0.0])
    return Episode(index, 7, Mode.COLLECT, outcome, records, end, final_position=end, end_time_ns=10**18 + 99)


class Fed:
    """A recorder, and what it confirms."""

    def __init__(self, node: Recorder) -> None:
        self.node = node
        self.run = "a run"
        self.receipts, self.ready, self.markers = Kept(msg.Receipt), Kept(msg.Receipt), Kept()
        node._receipts, node._ready, node._markers = self.receipts, self.ready, self.markers

    def __call__(self, *records: Step | Episode) -> list[tuple[str, int, int]]:
        for record in records:
            if isinstance(record, Step):
                self.node._on_step((record, self.run, encode_step(record)))
            else:
                end = EpisodeEnd.of(record)
                self.node._on_episode((end, self.run, encode_episode(end)))
        kept = self.receipts.take()
        return [(ReceiptKind(receipt.kind).name, receipt.episode, receipt.step) for receipt in kept]

    def whole(self, record: Episode) -> None:
        """Feed an episode with all its steps."""
        assert self(*record.steps, record)[-1] == ("EPISODE", record.index, 0)

    def announced(self) -> tuple[int, str]:
        """Return the last announced free number and the recorder's token."""
        last = self.ready.messages[-1]
        return last.episode, last.header.frame_id


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return tmp_path / "run"


@pytest.fixture
def feed(run: Path) -> Iterator[Fed]:
    with lone_node(Recorder, run=str(run)) as node:
        yield Fed(node)


def test_every_record_is_confirmed_and_written(feed: Fed, run: Path) -> None:
    record = episode(2)
    assert feed(*record.steps, record) == [("STEP", 0, 0), ("STEP", 0, 1), ("EPISODE", 0, 0)]
    (written,) = recorded(run)
    assert same(written, record)


def test_repeats_are_confirmed_again_and_written_once(feed: Fed, run: Path) -> None:
    record = episode(1)
    assert feed(step(0), step(0)) == [("STEP", 0, 0), ("STEP", 0, 0)]
    assert feed(record, record) == [("EPISODE", 0, 0), ("EPISODE", 0, 0)]
    assert same(recorded(run), [record])


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (step(2), "step out of order"),
        (step(0, episode=3), "step out of order"),
        (step(0, x=0.75), "step that differs from the recorded one"),
        (episode(0, index=4, outcome=Outcome.ABORTED), "episode out of order"),
    ],
)
def test_what_does_not_belong_here_is_dropped_and_not_confirmed(feed: Fed, record: Step | Episode, reason: str) -> None:
    feed(step(0))
    if isinstance(record, Episode):
        feed(step(1))
        feed(episode(2))
    assert feed(record) == []
    assert feed.node.diagnostics.drops[reason] == 1


def test_end_of_an_episode_with_missing_steps_is_refused(feed: Fed) -> None:
    feed(step(0))
    assert feed(episode(2)) == []
    assert feed.node.diagnostics.drops["episode with missing steps"] == 1


def test_next_free_number_is_never_that_of_an_episode_under_way(feed: Fed) -> None:
    feed.node._announce()
    assert feed.announced()[0] == 0
    feed(step(0))
    assert feed.announced()[0] == 1
    feed(episode(1))
    assert feed.announced()[0] == 1


def test_episode_that_its_arbiter_left_is_kept_when_the_next_begins(feed: Fed, run: Path) -> None:
    feed(step(0), step(1))
    token = feed.announced()[1]
    assert feed(step(0, episode=1)) == [("STEP", 1, 0)]
    assert feed.announced() == (2, token)
    feed(episode(1, index=1))
    left, following = recorded(run)
    assert (left.outcome, len(left.steps)) == (Outcome.RECOVERED, 2)
    assert following.outcome is Outcome.REACHED


def test_empty_episode_after_one_left_behind_is_recorded_too(feed: Fed, run: Path) -> None:
    feed(step(0))
    assert feed(episode(0, index=1, outcome=Outcome.ABORTED)) == [("EPISODE", 1, 0)]
    assert [each.outcome for each in recorded(run)] == [Outcome.RECOVERED, Outcome.ABORTED]


def test_new_recorder_goes_on_with_the_next_number_and_a_token_of_its_own(run: Path) -> None:
    tokens = []
    for index in range(2):
        with lone_node(Recorder, run=str(run)) as node:
            feed = Fed(node)
            node._announce()
            free, token = feed.announced()
            assert free == index
            tokens.append(token)
            feed.whole(episode(1, index=index))
    assert len(set(tokens)) == 2
    assert [each.index for each in recorded(run)] == [0, 1]


def test_episode_under_way_is_kept_when_the_recorder_ends(run: Path) -> None:
    with lone_node(Recorder, run=str(run)) as node:
        Fed(node)(step(0), step(1))
    (kept,) = recorded(run)
    assert (kept.outcome, len(kept.steps)) == (Outcome.RECOVERED, 2)


def test_failure_is_told_once_nothing_is_confirmed_after_it_and_it_recovers(feed: Fed, run: Path) -> None:
    feed(step(0))
    token = feed.announced()[1]
    writer: Any = feed.node._writer

    def fail(_step: Step, _data: bytes) -> None:
        raise BagError("the disk is full", bag=run, remedy="Free space.")

    writer.write_step = fail
    assert feed(step(1), step(2)) == [("FAILED", 0, 0)]
    assert feed.node.diagnostics.status is Status.RECORDING_FAILED
    feed.node._retry()
    assert feed.node.diagnostics.status is Status.RECORDING
    free, renewed = feed.announced()
    assert (free, renewed != token) == (1, True)
    feed.whole(episode(2, index=1))
    assert [each.outcome for each in recorded(run)] == [Outcome.RECOVERED, Outcome.REACHED]


def test_recorder_needs_a_folder() -> None:
    with pytest.raises(UserError, match="parameter run is empty"), lone_node(Recorder):
        pass


def test_facts_reach_the_run_and_must_be_an_object(tmp_path: Path) -> None:
    from lift_ros.bags import RunReader

    with lone_node(Recorder, run=str(tmp_path / "a"), facts='{"seed": 3}') as node:
        Fed(node).whole(episode(1))
    assert RunReader(tmp_path / "a").facts["seed"] == 3
    with pytest.raises(UserError, match="JSON object"), lone_node(Recorder, run=str(tmp_path / "b"), facts="[1]"):
        pass


def test_markers_are_blue_for_logged_and_red_for_augmented_steps(feed: Fed) -> None:
    feed.node._frame.name = "stage"
    feed(*(step(index) for index in range(4)))
    feed.node._draw()
    (array,) = feed.markers.take()
    logged, augmented = array.markers
    assert (logged.ns, augmented.ns) == ("logged", "augmented")
    assert logged.color.b > logged.color.r
    assert augmented.color.r > augmented.color.b
    assert len(logged.points) == 4  # two segments, of steps 0 and 2
    assert len(augmented.points) == 2
    assert (augmented.points[0].y, augmented.points[1].y) == (1.0, 2.0)


def test_markers_leave_out_what_has_no_position(feed: Fed) -> None:
    feed.node._frame.name = "stage"
    feed(*(replace(step(index), position=np.empty(0)) for index in range(3)))
    feed.node._draw()
    (array,) = feed.markers.take()
    assert all(not marker.points for marker in array.markers)


def test_markers_are_in_the_frame_of_the_plants_observations(feed: Fed) -> None:
    feed(*(step(index) for index in range(3)))
    feed.node._draw()
    assert feed.markers.take() == []  # nobody knows where these positions are
    plant = feed.node.create_publisher(msg.Observation, qos.OBSERVATION, qos.LOOP)
    observation = msg.Observation()
    observation.header.frame_id = "stage"
    deadline = time.monotonic() + 60
    while feed.node._frame.name is None and time.monotonic() < deadline:
        plant.publish(observation)
        spin(feed.node, 0.1)
    feed.node._draw()
    (array,) = feed.markers.take()
    assert [marker.header.frame_id for marker in array.markers] == ["stage", "stage"]
    assert feed.node.count_subscribers(qos.OBSERVATION) == 0  # it has heard enough


def test_the_bag_names_topics_as_the_graph_does(tmp_path: Path) -> None:
    with lone_node(Recorder, namespace="cell/left", run=str(tmp_path / "run")) as node:
        Fed(node).whole(episode(2))
    assert list(recorded_topics(tmp_path / "run")) == ["/cell/left/step", "/cell/left/episode"]
    assert len(recorded(tmp_path / "run")) == 1


def test_finished_files_are_compressed_where_the_parameter_says_so(tmp_path: Path) -> None:
    for compression in ("none", "zstd"):
        run = tmp_path / compression
        with lone_node(Recorder, run=str(run), compression=compression) as node:
            Fed(node).whole(episode(2))
        assert same(recorded(run), [episode(2)])
        (file,) = run.glob("*.mcap")
        assert (b"\4\0\0\0zstd" in file.read_bytes()) == (compression == "zstd")
