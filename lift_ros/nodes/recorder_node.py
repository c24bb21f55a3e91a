"""Executable `recorder`."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from visualization_msgs.msg import MarkerArray

import lift_ros.msg as msg
from lift_ros.bags.mcap_records import RecordedTopic
from lift_ros.bags.writer import RunWriter
from lift_ros.collection.exchange import Failed, Ready, Receipt
from lift_ros.collection.records import Step
from lift_ros.errors import UserError
from lift_ros.graph import qos
from lift_ros.graph.table import topic_names
from lift_ros.messages.records import (
    EpisodeEnd,
    decode_episode,
    decode_step,
    encode_episode,
    encode_receipt,
    encode_step,
    with_run,
)
from lift_ros.nodes.base import LiftNode
from lift_ros.nodes.diagnostics import Status
from lift_ros.nodes.further_topics import FurtherTopics
from lift_ros.nodes.glimpses import PERIOD, Glimpses
from lift_ros.nodes.markers import PlantFrame, trajectory_markers
from lift_ros.nodes.senders import RECORDS

READY_SECONDS = 1.0
RETRY_SECONDS = 5.0
LOOK_SECONDS = 0.5
# After the last record so long nothing may come before a recorder that is to end believes that nothing will.
QUIET_SECONDS = 0.25


def _with_bytes(
    message: str, decode: Callable[[bytes], Any], encode: Callable[[Any], bytes]
) -> Callable[[bytes], tuple[Any, str, bytes]]:
    """Return a reader that gives the token of the run, too, and what goes into the bag: all but that token."""
    read = with_run(message, decode)

    def receive(data: bytes) -> tuple[Any, str, bytes]:
        record, run = read(data)
        return record, run, encode(record)

    return receive


def _or_fail(handle: Callable[..., None]) -> Callable[..., None]:
    """Return a handler of the recorder that ends recording where what was received cannot be written."""

    @functools.wraps(handle)
    def guarded(recorder: Recorder, *received: Any) -> None:
        try:
            handle(recorder, *received)
        except UserError as error:
            recorder._fail(error)

    return guarded


class Recorder(LiftNode):
    """Writes steps and episodes into a run and confirms each; what it has it confirms again without writing twice."""

    executable = "recorder"
    summary = (
        "records steps and episodes into a run (a rosbag2 folder) and confirms each, so that none is made unrecorded"
    )

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        if not self.value("run"):
            raise UserError("parameter run is empty; give the folder in which the run is to be recorded")
        self._path = Path(self.value("run"))
        self._facts = self.json_value("facts")
        self._token = ""  # tells one start of recording from the next
        self._steps: list[tuple[Step, bytes]] = []  # of the episode under way, as they came
        self._run = ""  # token of the arbiter who makes that episode
        self._ended: bytes = b""  # the end of the last episode that was finished
        self._shown: list[Step] = []  # the steps of the last finished episode
        self._heard_at = time.monotonic()
        self._receipts = self.create_publisher(msg.Receipt, qos.RECEIPT, qos.LOOP)
        self._ready = self.create_publisher(msg.Receipt, qos.READY, qos.LATCHED)
        self._markers = self.create_publisher(MarkerArray, qos.MARKERS, qos.VIEW)
        self._glimpses = Glimpses(self)
        self._frame = PlantFrame(self)
        self._writer: RunWriter | None = None
        self._open(self.make_token())
        self.listen(msg.Step, qos.STEP, _with_bytes("Step", decode_step, encode_step), self._on_step, roles=RECORDS)
        ends = _with_bytes("Episode", decode_episode, encode_episode)
        self.listen(msg.Episode, qos.EPISODE, ends, self._on_episode, roles=RECORDS)
        self._further = FurtherTopics(self, topic_names(self.value("topics")), self._on_further)
        self._further.look()
        self.every(READY_SECONDS, self._announce)
        self.every(LOOK_SECONDS, self._further.look)
        self.every(RETRY_SECONDS, self._retry)
        self.every(self.value("markers_period"), self._draw)
        self.every(PERIOD, self._glimpses.publish)

    # --- the run ---------------------------------------------------------------------------------------------------

    def _open(self, token: str) -> None:
        self._writer = RunWriter(
            self._path,
            self._facts,
            self.value("episodes_per_file"),
            namespace=self.get_namespace(),
            compression=self.value("compression"),
        )
        self._steps = []
        self._ended = b""
        self._token = token
        self.get_logger().info(f"records into {self._path} from episode {self._writer.next_episode} on")
        self.set_status(Status.RECORDING)
        self._announce()

    def _announce(self) -> None:
        """Say which number is free next: not that of an episode under way, so that a new arbiter leaves it alone."""
        if self._writer is None:
            return
        free = self._writer.next_episode + bool(self._steps)
        self._ready.publish(encode_receipt(Ready(free, self._token), time.time_ns()))

    def _retry(self) -> None:
        if self._writer is not None:
            return
        try:
            self._open(self.make_token())
        except UserError as error:
            self.warn_sometimes("retry", str(error))

    def _fail(self, error: UserError) -> None:
        self.get_logger().error(str(error))
        self.set_status(Status.RECORDING_FAILED, str(error))
        self._close_writer()
        self._receipts.publish(encode_receipt(Failed(str(error), run=self._run), time.time_ns()))

    def _close_writer(self) -> None:
        writer, self._writer = self._writer, None
        if writer is None:
            return
        try:
            writer.close()
        except UserError as error:
            self.get_logger().error(str(error))

    # --- records ---------------------------------------------------------------------------------------------------

    @_or_fail
    def _on_step(self, received: tuple[Step, str, bytes]) -> None:
        step, run, data = received
        received_ns = time.monotonic_ns()
        self._heard_at = time.monotonic()
        if step.index == 0:
            self._make_room(step.episode)
        if self._writer is None:
            self.drop("step while recording has failed")
        elif step.episode != self._writer.next_episode or step.index > len(self._steps):
            self.drop(
                "step out of order",
                f"episode {step.episode}, step {step.index}; "
                f"expected episode {self._writer.next_episode}, step {len(self._steps)}",
            )
        elif step.index < len(self._steps):
            self._repeat_step(step, run, data)
        elif self._steps and run != self._run:
            self.drop("step of another run", f"episode {step.episode}, step {step.index}")
        else:
            self._run = run
            self._write(self._writer, step, data, received_ns)

    def _write(self, writer: RunWriter, step: Step, data: bytes, received_ns: int) -> None:
        writer.write_step(step, data)
        self._steps.append((step, data))
        self._glimpses.add(step, self._run)
        self._confirm(Receipt(step.episode, step.index, run=self._run))
        self.diagnostics.count("steps")
        self.diagnostics.latency("write", time.monotonic_ns() - received_ns)
        if step.index == 0:
            self._announce()

    def _repeat_step(self, step: Step, run: str, data: bytes) -> None:
        if data == self._steps[step.index][1]:
            self.diagnostics.count("repeats")
            self._confirm(Receipt(step.episode, step.index, run=run))
        else:
            self.drop("step that differs from the recorded one", f"episode {step.episode}, step {step.index}")

    def _make_room(self, episode: int) -> None:
        """Keep an episode that its arbiter left behind as recovered when a new arbiter begins the next."""
        if self._writer is None or not self._steps or episode != self._writer.next_episode + 1:
            return
        self.get_logger().warning(f"episode {self._writer.next_episode} was left without an end; kept as recovered")
        self._close_writer()
        self._open(self._token)

    @_or_fail
    def _on_episode(self, received: tuple[EpisodeEnd, str, bytes]) -> None:
        end, run, data = received
        index = end.episode.index
        received_ns = time.monotonic_ns()
        self._heard_at = time.monotonic()
        if end.steps == 0:
            self._make_room(index)
        if self._writer is None:
            self.drop("episode while recording has failed")
        elif data == self._ended:
            self.diagnostics.count("repeats")
            self._confirm(Receipt(index, None, run=run))
        elif index != self._writer.next_episode:
            self.drop("episode out of order", f"{index}, expected {self._writer.next_episode}")
        elif end.steps != len(self._steps):
            self.drop("episode with missing steps", f"{end.steps} of episode {index}, received {len(self._steps)}")
        elif self._steps and run != self._run:
            self.drop("episode of another run", f"{index}")
        else:
            self._run = run
            self._finish_episode(self._writer, end, data, received_ns)

    def _finish_episode(self, writer: RunWriter, end: EpisodeEnd, data: bytes, received_ns: int) -> None:
        writer.finish_episode(end.episode, data)
        self._ended, self._shown, self._steps = data, [step for step, _ in self._steps], []
        self._announce()
        self._confirm(Receipt(end.episode.index, None, run=self._run))
        self.diagnostics.count("episodes")
        self.diagnostics.latency("finish episode", time.monotonic_ns() - received_ns)

    @_or_fail
    def _on_further(self, topic: RecordedTopic, data: bytes) -> None:
        if self._writer is None:
            self.drop("message of a further topic while recording has failed")
            return
        self._writer.write_other(topic, data, time.time_ns())
        self.diagnostics.count(f"messages of {topic.name}")

    def _confirm(self, receipt: Receipt) -> None:
        self._receipts.publish(encode_receipt(receipt, time.time_ns()))

    # --- for eyes --------------------------------------------------------------------------------------------------

    def _draw(self) -> None:
        frame = self._frame.look()
        if frame is None or self._markers.get_subscription_count() == 0:
            return
        steps = [step for step, _ in self._steps] or self._shown
        self._markers.publish(trajectory_markers(steps, frame, self.get_clock().now().to_msg()))

    # --- end -------------------------------------------------------------------------------------------------------

    def finish(self) -> None:
        """Listen a little longer for what the arbiter still sends when both are ended together."""
        self.set_status(Status.ENDING)
        self._heard_at = time.monotonic()

    def finished(self) -> bool:
        """Whether nothing came for a while."""
        return time.monotonic() - self._heard_at > QUIET_SECONDS

    def close(self) -> None:
        """Complete the run; an episode under way is kept as recovered."""
        self._close_writer()


main = Recorder.main
