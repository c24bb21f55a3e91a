"""The codec of messages next to rclpy's own objects and the generated (de)serialisers of `rosbags`."""

from __future__ import annotations

import argparse
import timeit
from array import array
from collections.abc import Callable
from typing import Any

import numpy as np
from rclpy.serialization import deserialize_message, serialize_message
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

import lift_ros.msg as msg
from benchmark.bags import make_episode
from benchmark.timing import RESULTS, interleaved, markdown_table, medians, replace_section
from lift_ros.collection.exchange import Proposal
from lift_ros.collection.records import Rejection, Source, Step
from lift_ros.messages import records
from lift_ros.messages.definitions import definition, type_name

NANO = 10**9
Pair = tuple[Callable[[], Any], Callable[[], Any]]  # writes, reads


def main(arguments: argparse.Namespace) -> int:
    """Measure and write the section of docs/results.md, unless only a quick look is asked for."""
    turns, calls = (5, 200) if arguments.quick else (40, 400)
    step, seen = make_episode(0).steps[3], make_episode(0, image=True).steps[3]
    proposal = Proposal(3, 7, Source.AUGMENTOR, step.action, "ab" * 32, 12 * NANO + 5)
    rows = []
    for label, record in (("Step", step), ("Step, 64×64 picture", seen), ("Proposal", proposal)):
        pairs = {"ours": ours(record), "rclpy": with_rclpy(record), "`rosbags`": with_rosbags(record)}
        for number, way in enumerate(("writing", "reading")):
            jobs = {name: _repeated(pair[number], calls) for name, pair in pairs.items()}
            middle = medians(interleaved(jobs, turns))
            times = [1e6 * seconds / calls for seconds in middle.values()]
            rows.append((label, way, *times, times[1] / times[0], times[2] / times[0]))
    header = ("message", "", "ours [µs]", "rclpy [µs]", "`rosbags` [µs]", "rclpy / ours", "`rosbags` / ours")
    text = (
        "From a record of ours to bytes and back (d=5), checks included in ours only; medians, taken in turns.\n\n"
        + markdown_table(header, rows)
    )
    print(text)
    if not arguments.quick:
        replace_section(RESULTS, "messages", text)
    return 0


def _repeated(call: Callable[[], Any], calls: int) -> Callable[[], float]:
    return lambda: timeit.timeit(call, number=calls)


def ours(record: Step | Proposal) -> Pair:
    """Return the codec of lift_ros."""
    if isinstance(record, Step):
        step_data = records.encode_step(record)
        return lambda: records.encode_step(record), lambda: records.decode_step(step_data)
    data = records.encode_proposal(record)
    return lambda: records.encode_proposal(record), lambda: records.decode_proposal(data)


def with_rclpy(record: Step | Proposal) -> Pair:
    """Return the way by compiled messages."""
    kind = msg.Step if isinstance(record, Step) else msg.Proposal
    fill = _fill_step if isinstance(record, Step) else _fill_proposal
    data = serialize_message(fill(record))
    return lambda: serialize_message(fill(record)), lambda: _record_of(deserialize_message(data, kind), np.asarray)


def _fill_step(step: Any) -> Any:
    message = msg.Step(episode=step.episode, step=step.index, reward=step.reward, source=int(step.source))
    _fill(message, step, ("observation", "position", "action", "logging_proposal", "augmentor_proposal"))
    message.rejection, message.draw, message.p = int(step.rejection), step.draw, step.p
    message.augmentations_left, message.model_hash = step.augmentations_left, step.model_hash
    if step.image is not None:
        height, width, _ = step.image.shape
        message.image.height, message.image.width, message.image.step = height, width, 3 * width
        message.image.encoding, message.image.data = "rgb8", array("B", step.image.tobytes())
    return message


def _fill_proposal(proposal: Any) -> Any:
    message = msg.Proposal(episode=proposal.episode, step=proposal.step, source=int(proposal.source))
    _fill(message, proposal, ("action",))
    message.model_hash = proposal.model_hash
    return message


def _fill(message: Any, record: Any, vectors: tuple[str, ...]) -> None:
    message.header.stamp.sec, message.header.stamp.nanosec = divmod(record.time_ns, NANO)
    for name in vectors:
        setattr(message, name, array("d", getattr(record, name).tobytes()))


def _record_of(message: Any, vector: Callable[[Any], Any]) -> Step | Proposal:
    stamp = message.header.stamp
    time_ns = stamp.sec * NANO + stamp.nanosec
    if not hasattr(message, "observation"):
        action = vector(message.action)
        return Proposal(message.episode, message.step, Source(message.source), action, message.model_hash, time_ns)
    seen = message.image
    image = np.array(seen.data, np.uint8).reshape(seen.height, seen.width, 3) if seen.width else None
    return Step(
        *(message.episode, message.step, time_ns, vector(message.observation), vector(message.action)),
        *(Source(message.source), vector(message.position), message.reward, vector(message.logging_proposal)),
        *(vector(message.augmentor_proposal), Rejection(message.rejection), message.draw, message.p),
        *(message.augmentations_left, message.model_hash, image),
    )


def with_rosbags(record: Step | Proposal) -> Pair:
    """Return the way by the functions that `rosbags` generates from the definitions."""
    store = get_typestore(Stores.ROS2_KILTED)
    name = "Step" if isinstance(record, Step) else "Proposal"
    store.register(get_types_from_msg(definition(name), type_name(name)))
    types = store.types
    time, head = types["builtin_interfaces/msg/Time"], types["std_msgs/msg/Header"]
    kind, picture, nothing = types[type_name(name)], types["sensor_msgs/msg/Image"], np.empty(0, np.uint8)

    def make() -> Any:
        header = head(time(*divmod(record.time_ns, NANO)), "")
        if isinstance(record, Proposal):
            rest = (int(record.source), record.action, record.model_hash)
            return kind(header, record.episode, record.step, *rest)
        pixels = nothing if record.image is None else record.image.ravel()
        size, row, encoding = (64, 192, "rgb8") if pixels.size else (0, 0, "")
        return kind(
            *(header, record.episode, record.index, record.observation, record.position, record.action),
            *(record.reward, int(record.source), record.logging_proposal, record.augmentor_proposal),
            *(int(record.rejection), record.draw, record.p, record.augmentations_left, record.model_hash),
            picture(header, size, size, encoding, 0, row, pixels),
        )

    data = bytes(store.serialize_cdr(make(), type_name(name)))
    return (
        lambda: store.serialize_cdr(make(), type_name(name)),
        lambda: _record_of(store.deserialize_cdr(data, type_name(name)), np.copy),
    )
