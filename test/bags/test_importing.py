from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import cv2
import numpy as np
import pytest
import yaml
from foreign_bag import (
    SECOND,
    START,
    STORE,
    Entry,
    flag,
    make,
    move,
    nanoseconds,
    number,
    picture,
    point,
    walk,
    without_definitions,
    write_bag,
)
from rosbags.rosbag1 import Writer as Writer1
from rosbags.rosbag2 import StoragePlugin
from rosbags.typesys import Stores, get_typestore

from lift_ros.bags.importing.foreign_bag import fields_of, open_bag, parse_path
from lift_ros.bags.importing.images import to_picture
from lift_ros.bags.importing.importer import import_bag, split_into_episodes
from lift_ros.bags.importing.mapping import Mapping, load_mapping, parse_mapping
from lift_ros.bags.importing.samples import match, moving_rows, read_streams, split_at_gaps
from lift_ros.bags.reader import RunReader
from lift_ros.collection.records import Episode, Outcome, Source, same
from lift_ros.errors import UserError
from lift_ros.positioning.pictures import ENCODINGS, PictureFormat

XY = "{topic: /tool, fields: [point.x, point.y]}"
BASIC = f"""
observation: {XY}
position: {XY}
action: {{topic: /move, field: delta}}
episodes: {{gap: 2}}
goal: last_position
"""


def mapping(text: str = BASIC, **changes: Any) -> Mapping:
    """A mapping from YAML with some keys changed; None takes a key away."""
    value = yaml.safe_load(text)
    for key, change in changes.items():
        value[key] = yaml.safe_load(change) if isinstance(change, str) else change
        if change is None:
            del value[key]
    return parse_mapping(value)


def episodes_of(path: Path, wanted: Mapping) -> tuple[list[Episode], Counter[str]]:
    with open_bag(path) as bag:
        imported, dropped = split_into_episodes(bag, wanted, read_streams(bag, wanted))
    return [episode for episode, _ in imported], dropped


def actions_of(episode: Episode) -> np.ndarray:
    return np.vstack([step.action for step in episode.steps])


def positions_of(episode: Episode) -> np.ndarray:
    return np.vstack([*(step.position for step in episode.steps), episode.final_position])


@pytest.fixture(scope="module")
def two_walks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_bag(tmp_path_factory.mktemp("foreign") / "walks", walk(5) + walk(4, begin=10.0))


# The whole way


def test_imported_run_is_a_run_like_any_other(two_walks: Path, tmp_path: Path) -> None:
    report = import_bag(two_walks, mapping(), tmp_path / "run")
    episodes = list(RunReader(tmp_path / "run"))
    assert (report.episodes, report.steps, report.dropped) == (2, 9, Counter())
    assert report.outcomes == {"reached": 2}
    assert [len(episode.steps) for episode in episodes] == [5, 4]
    first = episodes[0]
    np.testing.assert_allclose(actions_of(first), np.tile([-0.2, -0.4], (5, 1)))
    np.testing.assert_allclose(first.steps[0].position, [1.0, 2.0])
    np.testing.assert_allclose(first.final_position, [0.0, 0.0], atol=1e-12)
    np.testing.assert_allclose(first.goal, first.final_position)
    assert first.outcome == Outcome.REACHED
    assert first.steps[0].time_ns == nanoseconds(0.001)
    assert first.start_time_ns == first.steps[0].time_ns < first.end_time_ns
    assert {step.source for step in first.steps} == {Source.LOGGING_POLICY}
    assert all(np.isnan(step.reward) for step in first.steps)


def test_run_facts_tell_where_it_came_from(two_walks: Path, tmp_path: Path) -> None:
    import_bag(two_walks, mapping(), tmp_path / "run")
    facts = RunReader(tmp_path / "run").facts
    assert facts["imported_from"] == "walks"
    assert facts["mapping"]["episodes"]["gap"] == 2


def test_existing_output_is_left_alone(two_walks: Path, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    with pytest.raises(UserError, match="exists already"):
        import_bag(two_walks, mapping(), tmp_path / "run")


def test_nothing_found_is_an_error_with_reasons_and_leaves_no_run(two_walks: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="2x episode shorter than 50 steps"):
        import_bag(two_walks, mapping(episodes="{gap: 2, minimum_steps: 50}"), tmp_path / "run")
    assert not (tmp_path / "run").exists()


# Kinds of bags


def test_sqlite3_with_definitions_and_unknown_type(tmp_path: Path) -> None:
    bag = write_bag(tmp_path / "bag", walk(5), StoragePlugin.SQLITE3)
    (episode,), _ = episodes_of(bag, mapping())
    np.testing.assert_allclose(actions_of(episode), np.tile([-0.2, -0.4], (5, 1)))


def test_old_sqlite3_without_definitions_knows_common_types(tmp_path: Path) -> None:
    bag = without_definitions(write_bag(tmp_path / "bag", walk(5), StoragePlugin.SQLITE3))
    (episode,), _ = episodes_of(bag, mapping(action="difference_of_positions", time="{rate: 10}"))
    np.testing.assert_allclose(actions_of(episode).sum(axis=0), [-1.0, -2.0])


def test_old_sqlite3_without_definitions_names_the_unknown_type(tmp_path: Path) -> None:
    bag = without_definitions(write_bag(tmp_path / "bag", walk(2), StoragePlugin.SQLITE3))
    with pytest.raises(UserError, match=r"definition of foreign_rig/msg/Move \(topic /move\) is missing"):
        episodes_of(bag, mapping())


def test_single_file_without_metadata(two_walks: Path, tmp_path: Path) -> None:
    (file,) = two_walks.glob("*.mcap")
    episodes, _ = episodes_of(file, mapping())
    assert len(episodes) == 2
    (tmp_path / "bare").mkdir()
    (tmp_path / "bare" / file.name).write_bytes(file.read_bytes())
    with pytest.raises(UserError, match=f"name one of its files instead: {file.name}"):
        episodes_of(tmp_path / "bare", mapping())


def test_ros1_bag(tmp_path: Path) -> None:
    store = get_typestore(Stores.ROS1_NOETIC)
    path = tmp_path / "old.bag"
    with Writer1(path) as writer:
        connection = writer.add_connection("/x", "std_msgs/msg/Float64", typestore=store)
        for tick in range(4):
            data = store.serialize_ros1(store.types["std_msgs/msg/Float64"](data=float(tick)), "std_msgs/msg/Float64")
            writer.write(connection, nanoseconds(tick), data)
    channel = {"topic": "/x", "field": "data"}
    wanted = {"observation": channel, "position": channel, "action": "difference_of_positions", "goal": "last_position"}
    (episode,), _ = episodes_of(path, parse_mapping(wanted))
    assert actions_of(episode).ravel().tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("name", ["nothing.mcap", "nothing.db3", "nothing.txt"])
def test_files_that_are_no_bags(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"neither this nor that")
    with pytest.raises(UserError, match="cannot be opened"):
        episodes_of(tmp_path / name, mapping())
    with pytest.raises(UserError, match="does not exist"):
        episodes_of(tmp_path / "absent", mapping())


def test_damaged_messages_are_counted(tmp_path: Path) -> None:
    bag = write_bag(tmp_path / "bag", walk(5), StoragePlugin.SQLITE3)
    import sqlite3

    with sqlite3.connect(next(bag.glob("*.db3"))) as database:
        tool = database.execute("SELECT id FROM topics WHERE name='/tool'").fetchone()[0]
        database.execute("UPDATE messages SET data=x'00010000ff' WHERE topic_id=? AND id%2=0", (tool,))
    database.close()
    episodes, dropped = episodes_of(bag, mapping())
    assert dropped["/tool: message cannot be decoded"] > 5
    assert len(episodes) == 1


# Names that do not exist


def test_missing_topic_names_the_nearest_and_all(two_walks: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no topic /tol; did you mean /tool\? Topics: /move \(foreign_rig/msg/Move\)"):
        import_bag(two_walks, mapping(position="{topic: /tol, field: point.x}"), tmp_path / "run")


@pytest.mark.parametrize(
    ("topic", "field", "text"),
    [
        ("/tool", "point.u", "did you mean point.z or point.y or point.x? Fields: header.stamp.sec"),
        ("/tool", "point", "it is a message, name a value in it. Fields: point.x, point.y, point.z"),
        ("/tool", "point.x.y", "has no value 'point.x.y'"),
        ("/tool", "header.frame_id", "is text"),
        ("/tool", "point.x[0]", "takes no index"),
        ("/move", "delta[a]", "cannot read 'delta[a]'"),
        ("/move", "delta..x", "cannot read ''"),
    ],
)
def test_wrong_fields_are_explained(two_walks: Path, topic: str, field: str, text: str) -> None:
    wanted = mapping(observation={"topic": topic, "field": field})
    with pytest.raises(UserError) as caught:
        episodes_of(two_walks, wanted)
    assert text in str(caught.value)


def test_field_paths_reach_into_nested_arrays(tmp_path: Path) -> None:
    plan = make(
        "foreign_rig/msg/Plan",
        moves=[move(0, 1, 2, 3), move(0, 4, 5, 6)],
        last=np.array([7, 8, 9], dtype=np.float32),
        done=True,
    )
    bag = write_bag(tmp_path / "bag", [("/plan", plan, nanoseconds(tick)) for tick in range(3)])
    fields = ["moves[1].delta[0:2]", "last[2]", "done", "moves[0].delta"]
    wanted = {
        "observation": {"topic": "/plan", "fields": fields},
        "action": {"topic": "/plan", "field": "last"},
        "goal": "last_position",
    }
    (episode,), _ = episodes_of(bag, parse_mapping(wanted))
    assert episode.steps[0].observation.tolist() == [4, 5, 9, 1, 1, 2, 3]
    assert "moves[].delta" in set(fields_of(STORE, "foreign_rig/msg/Plan"))
    with pytest.raises(UserError, match=r"write moves\[0\]"):
        episodes_of(bag, parse_mapping({**wanted, "observation": {"topic": "/plan", "field": "moves.delta"}}))


def test_joints_are_found_by_name_whatever_their_order(tmp_path: Path) -> None:
    def joints(tick: int) -> Any:
        names, values = ["lift", "elbow"], [10.0 * tick, float(tick)]
        if tick % 2:
            names, values = names[::-1], values[::-1]
        empty = np.empty(0)
        return make(
            "sensor_msgs/msg/JointState",
            header=point(tick, 0, 0).header,
            name=names,
            position=np.array(values),
            velocity=empty,
            effort=empty,
        )

    bag = write_bag(tmp_path / "bag", [("/joints", joints(tick), nanoseconds(tick)) for tick in range(4)])
    channel = {"topic": "/joints", "fields": ["position[name=elbow]", "position[name=lift]"]}
    wanted = {"observation": channel, "position": channel, "action": "difference_of_positions", "goal": "last_position"}
    (episode,), _ = episodes_of(bag, parse_mapping(wanted))
    assert positions_of(episode).tolist() == [[0, 0], [1, 10], [2, 20], [3, 30]]
    wanted["observation"] = {"topic": "/joints", "field": "position[name=wrist]"}
    with pytest.raises(UserError, match="4x /joints: array is too short or lacks the name"):
        episodes_of(bag, parse_mapping(wanted))


def test_too_long_vectors_are_refused_with_the_limit(tmp_path: Path) -> None:
    bag = write_bag(tmp_path / "bag", [("/move", move(0, *range(65)), nanoseconds(0))])
    with pytest.raises(UserError, match=r"give 65 values, at most 64 .* delta\[0:3\]"):
        episodes_of(bag, mapping(observation="{topic: /move, field: delta}", position=None))


def test_channels_together_must_fit_too(tmp_path: Path) -> None:
    bag = write_bag(tmp_path / "bag", [("/move", move(t, *range(40)), nanoseconds(t)) for t in range(2)])
    wanted = mapping(observation="[{topic: /move, field: delta}, {topic: /move, field: delta}]", position=None)
    with pytest.raises(UserError, match="observation has 80 values, at most 64"):
        episodes_of(bag, wanted)


def test_path_parts() -> None:
    assert [part.name for part in parse_path("a.b[2].c[x=left.arm]")] == ["a", "b", "c"]
    assert parse_path("c[x=left.arm]")[0].at == ("x", "left.arm")


# Time


@pytest.mark.parametrize(
    ("rule", "tolerance", "expected"),
    [
        ("previous", 100, [-1, 0, 0, 1, 2]),
        ("previous", 3, [-1, 0, -1, 1, -1]),
        ("nearest", 100, [0, 0, 1, 1, 2]),
        ("nearest", 3, [-1, 0, -1, 1, -1]),
    ],
)
def test_match(rule: str, tolerance: int, expected: list[int]) -> None:
    stamps = np.array([10, 20, 30])
    assert match(stamps, np.array([5, 10, 16, 22, 40]), rule, tolerance).tolist() == expected


def test_match_of_a_single_stamp() -> None:
    assert match(np.array([10]), np.array([9, 10, 11]), "nearest", 1).tolist() == [0, 0, 0]
    assert match(np.array([10]), np.array([9, 10, 11]), "previous", 1).tolist() == [-1, 0, 0]


def test_split_and_still() -> None:
    times = np.array([0, 1, 2, 9, 10]) * SECOND
    assert [rows.tolist() for rows in split_at_gaps(times, 5)] == [[0, 1, 2], [3, 4]]
    assert [rows.tolist() for rows in split_at_gaps(times, None)] == [[0, 1, 2, 3, 4]]
    assert split_at_gaps(times[:0], 5) == []
    assert moving_rows(np.array([[0.0], [0.1], [0.3], [0.35], [1.0]]), 0.3).tolist() == [0, 2, 4]


def test_resampling_sums_increments(two_walks: Path) -> None:
    episodes, _ = episodes_of(two_walks, mapping(time="{rate: 5}"))
    for episode in episodes:
        moved = np.diff(positions_of(episode), axis=0)
        np.testing.assert_allclose(actions_of(episode), moved, atol=1e-9)
        np.testing.assert_allclose(moved.sum(axis=0), [-1, -2])
    assert [len(episode.steps) for episode in episodes] == [3, 2]


def test_slow_observations_merge_actions_instead_of_hiding_their_effect(tmp_path: Path) -> None:
    entries: list[Entry] = [("/move", move(t, 1.0), nanoseconds(t)) for t in np.arange(8) * 0.1 + 0.001]
    entries += [("/x", number(2.0 * k), nanoseconds(0.2 * k)) for k in range(6)]
    bag = write_bag(tmp_path / "bag", entries)
    channel = "{topic: /x, field: data}"
    wanted = mapping(observation=channel, position=channel, time="{tolerance: 0.25}", episodes=None)
    (episode,), dropped = episodes_of(bag, wanted)
    assert positions_of(episode).ravel().tolist() == [0, 2, 4, 6, 8]
    assert actions_of(episode).ravel().tolist() == [2, 2, 2, 2]
    assert dropped["sample that sees nothing new"] == 4


def test_last_action_without_later_observation_is_dropped(tmp_path: Path) -> None:
    entries: list[Entry] = [("/move", move(t, 1.0), nanoseconds(t + 0.01)) for t in range(4)]
    entries += [("/x", number(float(t)), nanoseconds(t)) for t in range(4)]
    channel = "{topic: /x, field: data}"
    wanted = mapping(observation=channel, position=channel, time="{tolerance: 5}", episodes=None)
    (episode,), dropped = episodes_of(write_bag(tmp_path / "bag", entries), wanted)
    assert positions_of(episode).ravel().tolist() == [0, 1, 2, 3]
    assert len(episode.steps) == 3
    assert dropped == {"sample that sees nothing new": 1}


def test_samples_outside_the_tolerance_are_counted(tmp_path: Path) -> None:
    entries = [entry for entry in walk(5) if entry[0] == "/move" or not 0.15 < (entry[2] - START) / SECOND < 0.25]
    wanted = mapping(time="{tolerance: 0.01}")
    (episode,), dropped = episodes_of(write_bag(tmp_path / "bag", entries), wanted)
    assert dropped == {"sample without observation within 0.01 s": 1}
    np.testing.assert_allclose(actions_of(episode)[1], [-0.4, -0.8])
    np.testing.assert_allclose(np.diff(positions_of(episode), axis=0), actions_of(episode), atol=1e-9)


def test_header_stamps_win_over_received_times(tmp_path: Path) -> None:
    entries = [(topic, message, time + (7 * SECOND if topic == "/tool" else 0)) for topic, message, time in walk(5)]
    bag = write_bag(tmp_path / "bag", entries)
    (episode,), _ = episodes_of(bag, mapping(time="{stamp: header}"))
    assert len(episode.steps) == 5
    with pytest.raises(UserError, match=r"/score \(std_msgs/msg/Float64\) has no header; use time.stamp: received"):
        episodes_of(bag, mapping(time="{stamp: header}", reward="{topic: /score, field: data}"))


def test_sampling_with_another_topic(two_walks: Path) -> None:
    episodes, _ = episodes_of(two_walks, mapping(time="{topic: /score}"))
    assert [len(episode.steps) for episode in episodes] == [27, 22]
    np.testing.assert_allclose(actions_of(episodes[0]).sum(axis=0), [-1, -2])


def test_standing_still_is_skipped(two_walks: Path) -> None:
    wanted = mapping(action="difference_of_positions", time="{skip_still: 0.01}")
    episodes, dropped = episodes_of(two_walks, wanted)
    assert [len(episode.steps) for episode in episodes] == [5, 4]
    assert dropped["sample within 0.01 of the one before"] == 28 + 23 - 6 - 5


# Meanings of actions


def test_targets_become_differences_to_the_position(tmp_path: Path) -> None:
    entries: list[Entry] = [("/x", number(t // 2), nanoseconds(t)) for t in range(8)]
    entries += [("/target", number(t // 2 + 1.0), nanoseconds(t + 0.1)) for t in range(2, 8, 2)]
    channel = "{topic: /x, field: data}"
    target = "{topic: /target, field: data, meaning: target}"
    wanted = mapping(
        observation=channel, position=channel, action=target, time="{topic: /x, tolerance: 1}", episodes=None
    )
    (episode,), dropped = episodes_of(write_bag(tmp_path / "bag", entries), wanted)
    assert dropped == {"sample before the first target": 2}
    assert actions_of(episode).ravel().tolist() == [1, 1, 1, 1, 1]
    with pytest.raises(UserError, match="has 1 values and the position 2"):
        episodes_of(
            write_bag(tmp_path / "flat", [*walk(2), ("/target", number(1.0), nanoseconds(0))]), mapping(action=target)
        )


def test_velocities_are_integrated_until_the_next_message(tmp_path: Path) -> None:
    entries: list[Entry] = [("/x", number(float(t)), nanoseconds(t)) for t in range(4)]
    entries += [("/speed", number(2.0), nanoseconds(0.5)), ("/speed", number(-1.0), nanoseconds(2.25))]
    channel = "{topic: /x, field: data}"
    speed = "{topic: /speed, field: data, meaning: velocity}"
    wanted = mapping(observation=channel, position=channel, action=speed, time="{topic: /x}", episodes=None)
    (episode,), _ = episodes_of(write_bag(tmp_path / "bag", entries), wanted)
    assert actions_of(episode).ravel().tolist() == [1.0, 2.0, 0.5 - 0.75]


def test_actions_that_are_not_finite_drop_their_episode(tmp_path: Path) -> None:
    entries = [*walk(5), *walk(4, begin=10), ("/move", move(0.05, np.nan, 0), nanoseconds(0.05))]
    episodes, dropped = episodes_of(write_bag(tmp_path / "bag", entries), mapping())
    assert [len(episode.steps) for episode in episodes] == [4]
    assert dropped["episode with an action that is not finite"] == 1


def test_observations_that_are_not_finite_are_skipped(tmp_path: Path) -> None:
    entries = [*walk(5), ("/tool", point(0.3005, np.inf, 0), nanoseconds(0.3005))]
    (episode,), dropped = episodes_of(write_bag(tmp_path / "bag", entries), mapping())
    assert dropped == {"sample whose observation is not finite": 1}
    np.testing.assert_allclose(actions_of(episode)[2], [-0.4, -0.8])


# Episodes


def test_trigger_condition_starts_and_ends_episodes(tmp_path: Path) -> None:
    entries = [*walk(5), *walk(5, begin=1.0), *walk(5, begin=2.0)]
    states = [(0.0, False), (0.95, True), (1.1, True), (1.45, False), (1.95, True), (2.45, False)]
    entries += [("/busy", flag(value), nanoseconds(seconds)) for seconds, value in states]
    trigger = "{start: {topic: /busy, field: data, equals: true}, end: {topic: /busy, field: data, equals: false}}"
    episodes, dropped = episodes_of(write_bag(tmp_path / "bag", entries), mapping(episodes=trigger))
    assert [len(episode.steps) for episode in episodes] == [5, 5]
    assert episodes[0].steps[0].time_ns == nanoseconds(1.001)
    assert dropped == {"sample outside of every episode": 5}


def test_every_message_of_a_topic_can_start_an_episode(tmp_path: Path) -> None:
    entries = [
        *walk(5),
        *walk(3, begin=0.6),
        ("/go", flag(False), nanoseconds(0)),
        ("/go", flag(False), nanoseconds(0.6)),
    ]
    episodes, _ = episodes_of(write_bag(tmp_path / "bag", entries), mapping(episodes="{start: {topic: /go}}"))
    assert [len(episode.steps) for episode in episodes] == [5, 3]


def test_service_events_separate_episodes_although_their_definition_is_broken(tmp_path: Path) -> None:
    entries: list[Entry] = [*walk(5), *walk(3, begin=1.0)]
    for seconds in (-0.01, 0.9):
        for offset, kind in ((0, 0), (0.001, 1), (0.002, 2), (0.003, 3)):
            data = bytes([0, 1, 0, 0, kind, 0, 0, 0]) + bytes(64)
            entries.append(("/rig/start/_service_event", data, nanoseconds(seconds + offset)))
    bag = write_bag(tmp_path / "bag", entries)
    episodes, _ = episodes_of(bag, mapping(episodes="{start: {service: /rig/start}}"))
    assert [len(episode.steps) for episode in episodes] == [5, 3]
    with pytest.raises(UserError, match=r"no topic /rig/stop/_service_event; did you mean /rig/start/_service_event"):
        import_bag(bag, mapping(episodes="{start: {service: /rig/stop}}"), tmp_path / "run")


def test_end_trigger_alone_and_unfinished_tail(tmp_path: Path) -> None:
    entries = [*walk(5), *walk(3, begin=1.0), ("/end", flag(True), nanoseconds(0.6))]
    episodes, _ = episodes_of(write_bag(tmp_path / "bag", entries), mapping(episodes="{end: {topic: /end}}"))
    assert [episode.outcome for episode in episodes] == [Outcome.REACHED, Outcome.ABORTED]
    assert episodes[1].reason == "the bag ends before the end trigger"


def test_trigger_that_never_happens_is_an_error(two_walks: Path) -> None:
    never = "{start: {topic: /score, field: data, above: 100}}"
    with pytest.raises(UserError, match="trigger on topic /score never happens"):
        episodes_of(two_walks, mapping(episodes=never))
    with pytest.raises(UserError, match="cannot be compared with 1"):
        episodes_of(two_walks, mapping(episodes="{start: {topic: /move, field: phase, above: 1}}"))


def test_trigger_on_text(two_walks: Path) -> None:
    wanted = mapping(episodes="{start: {topic: /move, field: phase, equals: run}, gap: 2}")
    episodes, _ = episodes_of(two_walks, wanted)
    assert [len(episode.steps) for episode in episodes] == [5, 4]


# Goals and rewards


def test_threshold_ends_episodes_where_they_arrive(tmp_path: Path) -> None:
    wanted = mapping(goal="{within: 0.5, position: [0, 0]}", reward="distance_to_goal")
    (episode,), dropped = episodes_of(write_bag(tmp_path / "bag", walk(5)), wanted)
    assert episode.outcome == Outcome.REACHED
    assert len(episode.steps) == 4  # 0.447 away, the next step would be exact
    assert dropped == {"sample after arrival": 1}
    np.testing.assert_allclose(
        [step.reward for step in episode.steps], -np.hypot(1, 2) * np.array([0.8, 0.6, 0.4, 0.2])
    )
    assert episode.goal.tolist() == [0, 0]


def test_threshold_not_met_is_told(two_walks: Path) -> None:
    episodes, _ = episodes_of(two_walks, mapping(goal="{within: 0.1, position: [3, 4]}"))
    assert {episode.outcome for episode in episodes} == {Outcome.ABORTED}
    assert episodes[0].reason == "ended 5 from the goal, more than 0.1"
    with pytest.raises(UserError, match="goal has 1 values and position 2"):
        episodes_of(two_walks, mapping(goal="{within: 0.1, position: [3]}"))


def test_goal_from_a_topic(tmp_path: Path) -> None:
    entries = [*walk(5), *walk(4, begin=10.0)]
    entries += [("/goal", point(0, 0, 0), nanoseconds(0)), ("/goal", point(9, 5, 5), nanoseconds(9))]
    goal = "{within: 0.01, channel: {topic: /goal, fields: [point.x, point.y]}}"
    episodes, _ = episodes_of(write_bag(tmp_path / "bag", entries), mapping(goal=goal))
    assert [episode.outcome for episode in episodes] == [Outcome.REACHED, Outcome.ABORTED]


def test_goal_by_signal(tmp_path: Path) -> None:
    wanted = mapping(goal="{signal: {topic: /score, field: data, above: -1.0}}")
    episodes, _ = episodes_of(write_bag(tmp_path / "bag", [*walk(5), *walk(4, begin=10.0)]), wanted)
    assert [len(episode.steps) for episode in episodes] == [3, 3]
    assert {episode.outcome for episode in episodes} == {Outcome.REACHED}


def test_reward_of_a_step_is_what_is_measured_after_it(two_walks: Path) -> None:
    episodes, _ = episodes_of(two_walks, mapping(reward="{topic: /score, field: data}"))
    for episode in episodes:
        distances = np.linalg.norm(positions_of(episode)[1:], axis=1)
        np.testing.assert_allclose([step.reward for step in episode.steps], -distances)


# Pictures


def test_pictures_ride_along(tmp_path: Path) -> None:
    frames = {tick: np.full((2, 3, 3), 10 * tick, dtype=np.uint8) for tick in range(7)}
    entries = [*walk(5), *(("/camera", picture(0.1 * k, f), nanoseconds(0.1 * k)) for k, f in frames.items())]
    bag = write_bag(tmp_path / "bag", entries)
    import_bag(bag, mapping(image="{topic: /camera}", time="{tolerance: 0.2}"), tmp_path / "run")
    episode = RunReader(tmp_path / "run").episode(0)
    shown = [step.image[0, 0, 0] for step in episode.steps if step.image is not None]
    assert shown == [0, 10, 20, 30, 40]
    assert episode.final_image is not None
    assert episode.final_image.tolist() == frames[5].tolist()
    with pytest.raises(UserError, match=r"image\.topic must be sensor_msgs/msg/Image"):
        import_bag(bag, mapping(image="{topic: /tool}"), tmp_path / "other")


def test_colours_become_rgb() -> None:
    pixels = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    assert to_picture("/c", picture(0, pixels, "bgra8")).tolist() == pixels[:, :, [2, 1, 0]].tolist()
    assert to_picture("/c", picture(0, pixels[:, :, :3], "bgr8")).tolist() == pixels[:, :, [2, 1, 0]].tolist()
    with pytest.raises(UserError, match="encoding 'bayer_rggb8' is not supported; use one of rgb8"):
        to_picture("/c", picture(0, pixels, "bayer_rggb8"))
    cut = picture(0, pixels, "rgba8")
    cut.height = 3
    with pytest.raises(UserError, match="has only 24 bytes"):
        to_picture("/c", cut)


@pytest.mark.parametrize("encoding", [*ENCODINGS, "16UC1"])
def test_other_encodings_stay_what_they_are(tmp_path: Path, encoding: str) -> None:
    kind = PictureFormat(2, 3, {"16UC1": "mono16"}.get(encoding, encoding))
    frames = {tick: (np.arange(np.prod(kind.shape)).reshape(kind.shape) + tick).astype(kind.dtype) for tick in range(7)}
    entries = [*walk(5), *(("/camera", picture(0.1 * k, f, encoding), nanoseconds(0.1 * k)) for k, f in frames.items())]
    write_bag(tmp_path / "bag", entries)
    import_bag(tmp_path / "bag", mapping(image="{topic: /camera}", time="{tolerance: 0.2}"), tmp_path / "run")
    episode = RunReader(tmp_path / "run").episode(0)
    for step in episode.steps:
        assert same(step.image, frames[step.index])
    assert same(episode.final_image, frames[5])


def test_pictures_of_the_other_byte_order_and_with_gaps_between_rows_are_read() -> None:
    pixels = np.arange(6, dtype=np.uint16).reshape(2, 3) * 1000
    wide = np.full((2, 4), 7, np.uint16)
    wide[:, :3] = pixels
    message = picture(0, wide.astype(">u2"), "mono16")
    message.width, message.is_bigendian = 3, 1
    assert same(to_picture("/c", message), pixels)


def test_pictures_that_are_not_finite_are_refused() -> None:
    with pytest.raises(UserError, match="topic /c: a picture has values that are NaN or infinite; fill the gaps"):
        to_picture("/c", picture(0, np.full((2, 3), np.nan, np.float32), "32FC1"))


def test_compressed_pictures_become_rgb() -> None:
    pixels = np.arange(36, dtype=np.uint8).reshape(3, 4, 3)
    coded = cv2.imencode(".png", np.ascontiguousarray(pixels[:, :, ::-1]))[1]
    assert to_picture("/c", SimpleNamespace(format="png", data=coded)).tolist() == pixels.tolist()
    for broken in (coded[:20], np.empty(0, np.uint8)):
        with pytest.raises(UserError, match="format 'png' with .* bytes cannot be decoded"):
            to_picture("/c", SimpleNamespace(format="png", data=broken))


# The mapping file


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"observation": None}, "mapping: observation is missing"),
        ({"goal": None}, "mapping: goal is missing"),
        ({"positon": "{}"}, "mapping: unknown key 'positon'; did you mean 'position'?"),
        ({"observation": "{topic: /tool}"}, "needs either 'field' (one path) or 'fields'"),
        ({"observation": "[]"}, "empty list"),
        ({"observation": "[{topic: 3, field: a}]"}, "observation[0].topic is 3; allowed: text"),
        (
            {"action": "difference"},
            "action is 'difference'; allowed: one topic with fields, or diff",
        ),
        (
            {"action": "{topic: /m, field: d, meaning: speed}"},
            "'speed'; allowed: one of increment, target, velocity",
        ),
        ({"action": "difference_of_positions", "position": None}, "needs 'position'"),
        ({"time": "{rate: 0}"}, "time.rate is 0; allowed: a number > 0"),
        ({"time": "{rate: 1, topic: /a}"}, "not both"),
        ({"time": "{match: closest}"}, "one of previous, nearest"),
        ({"time": "{tolerance: -1}"}, "tolerance is -1; allowed: a number >= 0"),
        ({"episodes": "{gap: .nan}"}, "gap is nan; allowed: a number > 0"),
        ({"episodes": "{gap: true}"}, "gap is True"),
        ({"episodes": "{minimum_steps: 0}"}, "minimum_steps is 0; allowed: a whole number >= 1"),
        ({"episodes": "{start: {topic: /a, field: b}}"}, "needs one condition"),
        ({"episodes": "{start: {topic: /a, above: 1}}"}, "none without it"),
        ({"episodes": "{start: {field: b}}"}, "needs either 'topic' or 'service'"),
        ({"episodes": "{start: {service: /s, field: b}}"}, "unknown key 'field'; known are event, service"),
        ({"episodes": "{start: {topic: /s, event: request_sent}}"}, "start: unknown key 'event'"),
        ({"goal": "arrived"}, "goal is 'arrived'; allowed: last_position, or a section"),
        ({"episodes": "{start: {topic: /a, field: b, equals: [1]}}"}, "equals is [1]; allowed: a number, text"),
        ({"observation": "{topic: /a, fields: [1]}"}, "fields is [1]; allowed: a list of texts"),
        ({"goal": "{within: 1}"}, "either 'position' or 'channel'"),
        ({"goal": "{within: 1, position: [a]}"}, "goal.position is ['a']; allowed: a list of numbers"),
        ({"goal": "{within: 1, signal: {topic: /a}}"}, "goal: unknown key 'within'"),
        ({"goal": "{signal: {topic: /a}}", "reward": "distance_to_goal"}, "goal.signal gives none"),
    ],
)
def test_mapping_mistakes_are_named(changes: dict[str, Any], text: str) -> None:
    with pytest.raises(UserError) as caught:
        mapping(**changes)
    assert text in str(caught.value)


def test_mapping_file(tmp_path: Path) -> None:
    file = tmp_path / "mapping.yaml"
    file.write_text(BASIC)
    assert load_mapping(file) == mapping()
    file.write_text("a: [")
    with pytest.raises(UserError, match="is not valid YAML"):
        load_mapping(file)
    file.write_text("just words")
    with pytest.raises(UserError, match="allowed: a mapping with keys observation, position"):
        load_mapping(file)
    with pytest.raises(UserError, match="cannot be read"):
        load_mapping(tmp_path / "absent.yaml")


def test_reward_must_be_one_number(two_walks: Path) -> None:
    with pytest.raises(UserError, match="reward must be one number"):
        episodes_of(two_walks, mapping(reward=XY))


def test_documented_mapping_is_valid() -> None:
    page = (Path(__file__).parents[2] / "docs" / "importing-bags.md").read_text(encoding="utf-8")
    example = page.split("```yaml\n")[1].split("```")[0]
    assert parse_mapping(yaml.safe_load(example)).action.meaning == "increment"


# Damage


@pytest.mark.parametrize("storage", [StoragePlugin.MCAP, StoragePlugin.SQLITE3])
def test_damaged_bags_end_in_episodes_or_one_sentence(tmp_path: Path, storage: StoragePlugin) -> None:
    bag = write_bag(tmp_path / "bag", walk(3), storage)
    file = next(path for path in bag.iterdir() if path.suffix in (".mcap", ".db3"))
    whole = file.read_bytes()
    random = np.random.default_rng(11)
    outcomes: Counter[str] = Counter()
    for attempt in range(60):
        damaged = bytearray(whole)
        if attempt % 3 == 0:
            del damaged[int(random.integers(len(whole))) :]
        for place in random.integers(0, max(1, len(damaged)), 5):
            if damaged:
                damaged[place] ^= 1 << int(random.integers(8))
        file.write_bytes(bytes(damaged))
        try:
            episodes_of(bag, mapping(reward="{topic: /score, field: data}"))
            outcomes["read"] += 1
        except UserError:
            outcomes["refused"] += 1
    assert outcomes["refused"] > 5
    assert outcomes.total() == 60


def test_absurd_time_stamps_do_not_fill_the_memory(tmp_path: Path) -> None:
    entries = [*walk(3), ("/tool", point(0, 1, 1), nanoseconds(9e8))]
    bag = write_bag(tmp_path / "bag", entries)
    with pytest.raises(UserError, match=r"time.rate 1000 asks for \d+ samples over \d+ s"):
        episodes_of(bag, mapping(action="difference_of_positions", time="{rate: 1000}"))
    episodes, _ = episodes_of(bag, mapping())
    assert [len(episode.steps) for episode in episodes] == [3]
