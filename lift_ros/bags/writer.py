"""Recording a run: every step is in the kernel when `write_step` returns, every finished episode on the disk."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from mcap.exceptions import McapError
from mcap.reader import make_reader

from lift_ros.bags import definitions
from lift_ros.bags.cdr import EpisodeEnd, encode_episode, encode_step
from lift_ros.bags.contents import group, recovered
from lift_ros.bags.faults import BagError, DiskFull
from lift_ros.bags.files import JOURNAL_SUFFIX, RunLock, file_name, list_run, tail_name
from lift_ros.bags.mcap_file import FileSummary, McapFile, Topic
from lift_ros.bags.metadata import (
    FILE_NAME,
    RunMetadata,
    TopicEntry,
    facts_as_text,
    facts_from_text,
    load_metadata,
    sync_directory,
)
from lift_ros.bags.reader import METADATA_NAME, RunReader
from lift_ros.bags.scan import Announced, walk_journal
from lift_ros.collection.records import Episode, Source, Step
from lift_ros.errors import UserError

DEFAULT_RESERVE = 16 * 2**20
_LOCK_PATIENCE = 2.0

_QOS_TEXT = json.dumps(definitions.QOS)
STEP = Topic(
    definitions.STEP_TOPIC, definitions.STEP_TYPE, definitions.STEP_DEFINITION, definitions.STEP_HASH, _QOS_TEXT
)
EPISODE = Topic(
    definitions.EPISODE_TOPIC,
    definitions.EPISODE_TYPE,
    definitions.EPISODE_DEFINITION,
    definitions.EPISODE_HASH,
    _QOS_TEXT,
)


@dataclass
class _Tally:
    """What has been written of the episode under way."""

    steps: int = 0
    augmentations: int = 0
    episode_return: float = 0.0
    last_time: int = 0


class RunWriter:
    """Records episodes into a run, a new one or one that goes on after its last episode.

    `episodes_per_file` episodes share an .mcap file. `sync` makes each finished episode durable against a power cut;
    without it a crash of the process still loses nothing. `reserve` bytes of the disk are left free, so that a full
    disk stops recording before a file is cut off.
    """

    def __init__(
        self,
        path: str | Path,
        facts: dict[str, Any],
        episodes_per_file: int = 1,
        *,
        sync: bool = True,
        reserve: int = DEFAULT_RESERVE,
    ) -> None:
        if episodes_per_file < 1:
            raise UserError(f"episodes_per_file is {episodes_per_file}; a file holds at least 1 episode.")
        self.path = Path(path)
        self.next_episode = 0
        self._episodes_per_file = episodes_per_file
        self._sync = sync
        self._reserve = reserve
        self._unchecked = 0  # bytes written since free space was last asked for
        self._file: McapFile | None = None
        self._first_in_file = 0
        self._tally = _Tally()
        self._others: dict[str, Topic] = {}
        self._channels: dict[str, int] = {}
        with self._failures("the run cannot be created"):
            self.path.mkdir(parents=True, exist_ok=True)
            self._lock = RunLock(self.path)
        try:
            self._take_lock()
            self._begin(facts)
        except BaseException:
            self._lock.release()
            raise

    def __enter__(self) -> RunWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
            return
        # The first error is the one to report; what could not be closed is recovered by the next reader or writer.
        with contextlib.suppress(UserError):
            self.close()
        self._release()

    @property
    def facts(self) -> dict[str, Any]:
        """The run facts as they are recorded."""
        return self._metadata.facts

    def write_step(self, step: Step) -> None:
        """Append a step of the episode under way."""
        tally = self._tally
        if step.episode != self.next_episode or step.index != tally.steps:
            raise BagError(
                f"the writer expects episode {self.next_episode}, step {tally.steps}",
                bag=self.path,
                episode=step.episode,
                step=step.index,
                remedy="Write steps in order and finish an episode before the next.",
            )
        file = self._open_file()
        channel = self._channels[definitions.STEP_TOPIC]
        tally.last_time = max(tally.last_time, step.time_ns, 0)
        head, pixels = encode_step(step, (channel, file.next_sequence(channel), tally.last_time))
        self._write(file, channel, tally.last_time, head, pixels)
        tally.steps += 1
        tally.augmentations += step.source == Source.AUGMENTOR
        tally.episode_return += step.reward

    def finish_episode(self, episode: Episode) -> None:
        """Write what is missing of the episode and its end; when this returns its file is complete if it is full."""
        tally = self._tally
        if episode.index != self.next_episode:
            raise BagError(
                f"the writer expects episode {self.next_episode}",
                bag=self.path,
                episode=episode.index,
                remedy="Number episodes from `next_episode` on without gaps.",
            )
        if episode.steps and len(episode.steps) < tally.steps:
            raise BagError(
                f"it has {len(episode.steps)} steps and {tally.steps} are already written",
                bag=self.path,
                episode=episode.index,
                remedy="Finish an episode with all of its steps, or with none if all are written.",
            )
        for step in episode.steps[tally.steps :]:
            self.write_step(step)
        file = self._open_file()
        channel = self._channels[definitions.EPISODE_TOPIC]
        time_ns = max(tally.last_time, episode.end_time_ns, 0)
        end = EpisodeEnd(episode, tally.steps, tally.augmentations, tally.episode_return)
        head, pixels = encode_episode(end, (channel, file.next_sequence(channel), time_ns))
        self._write(file, channel, time_ns, head, pixels)
        self.next_episode += 1
        self._tally = _Tally()
        with self._failures("the episode cannot be completed"):
            file.end_chunk()
            if self.next_episode - self._first_in_file >= self._episodes_per_file:
                self._finish_file()
            elif self._sync:
                file.sync()

    def write_episode(self, episode: Episode) -> None:
        """Write a whole episode."""
        self.finish_episode(episode)

    def write_other(
        self,
        topic: str,
        type_name: str,
        definition: str,
        cdr: bytes,
        time_ns: int,
        *,
        type_hash: str = "",
        qos: str = "",
    ) -> None:
        """Record a message of another topic along; `qos` is YAML as rosbag2 has it."""
        if topic in (definitions.STEP_TOPIC, definitions.EPISODE_TOPIC):
            raise UserError(f"topic {topic} is written with write_step and finish_episode; record another topic along.")
        if not 0 <= time_ns < 2**63:
            raise UserError(f"time {time_ns} of topic {topic} is no time in a bag; give nanoseconds from 0 on.")
        known = self._others.get(topic)
        if known is None:
            known = self._others[topic] = Topic(topic, type_name, definition, type_hash, qos)
            self._metadata.topics.setdefault(topic, TopicEntry(type_name, type_hash, json.loads(qos) if qos else []))
        elif known.type_name != type_name:
            raise UserError(f"topic {topic} is recorded as {known.type_name}; it cannot change to {type_name}.")
        file = self._open_file()
        if topic not in self._channels:
            with self._failures("the topic cannot be announced"):
                self._channels[topic] = file.add_topic(known)
        self._check_space(len(cdr))
        with self._failures("the message cannot be written"):
            file.write_message(self._channels[topic], time_ns, cdr)

    def close(self) -> None:
        """Complete the file under way and let go of the run; an episode without an end is kept as recovered."""
        try:
            if self._file is not None:
                with self._failures("the run cannot be completed"):
                    if self._tally.steps:
                        self._seal_journal()
                    elif self._file_has_messages():
                        self._finish_file()
                    else:
                        self._discard_file()
        finally:
            self._release()

    def _release(self) -> None:
        if self._file is not None:
            self._file.release()
            self._file = None
        self._lock.release()

    def _take_lock(self) -> None:
        # A reader holds the lock for an instant to see whether somebody records.
        deadline = time.monotonic() + _LOCK_PATIENCE
        while not self._lock.acquire():
            if time.monotonic() > deadline:
                raise BagError(
                    "another process records into it",
                    bag=self.path,
                    remedy="Stop that recorder, or record into another directory.",
                )
            time.sleep(0.01)

    def _begin(self, facts: dict[str, Any]) -> None:
        listing = list_run(self.path)
        known = (self.path / FILE_NAME).exists()
        if not known and any(self.path.iterdir()) and listing.journal is None and not listing.finished:
            raise BagError(
                "the directory holds other files and no bag",
                bag=self.path,
                remedy="Record into a new or empty directory.",
            )
        self._metadata = RunMetadata(dict(facts))
        entry = TopicEntry(definitions.STEP_TYPE, definitions.STEP_HASH, definitions.QOS)
        self._metadata.topics[definitions.STEP_TOPIC] = entry
        entry = TopicEntry(definitions.EPISODE_TYPE, definitions.EPISODE_HASH, definitions.QOS)
        self._metadata.topics[definitions.EPISODE_TOPIC] = entry
        if known or listing.finished:
            self._continue(listing.finished, known, facts)
        with self._failures("the run cannot be written"):
            if listing.journal is not None:
                self._recover(self.path / listing.journal)
            self._metadata.save(self.path, sync=self._sync)

    def _continue(self, finished: list[str], known: bool, facts: dict[str, Any]) -> None:
        reader = RunReader(self.path)
        indices = reader.episode_indices
        self.next_episode = indices[-1] + 1 if indices else 0
        if known:
            stored = facts_from_text(load_metadata(self.path).get("custom_data") or {}, self.path)
            self._metadata.facts = _continued(stored, facts, self.next_episode)
        for name in finished:
            self._metadata.add(self._summary_of(self.path / name))

    def _summary_of(self, path: Path) -> FileSummary:
        """Return what metadata.yaml says about a finished file, from the file itself."""
        try:
            with path.open("rb") as stream:
                summary = make_reader(stream).get_summary()
        except McapError as error:
            raise BagError(
                f"it cannot be read ({error})", bag=path, remedy="Restore the file, or record into another directory."
            ) from error
        if summary is None or summary.statistics is None:
            raise BagError("it has no index", bag=path, remedy="Record into another directory.")
        counts: dict[str, int] = {}
        for number, channel in summary.channels.items():
            counts[channel.topic] = summary.statistics.channel_message_counts.get(number, 0)
            schema = summary.schemas.get(channel.schema_id)
            qos = channel.metadata.get("offered_qos_profiles", "")
            type_hash = channel.metadata.get("topic_type_hash", "")
            self._metadata.topics.setdefault(
                channel.topic, TopicEntry(schema.name if schema else "", type_hash, json.loads(qos) if qos else [])
            )
        statistics = summary.statistics
        return FileSummary(path.name, statistics.message_start_time, statistics.message_end_time, counts)

    def _recover(self, journal: Path) -> None:
        """Turn what a crash left behind into a finished file; its cut-off episode becomes a recovered one."""
        final = journal.with_name(journal.name.removesuffix(JOURNAL_SUFFIX))
        if final.exists():
            journal.unlink()
            return
        data = memoryview(journal.read_bytes())
        messages = list(walk_journal(data, Announced()))
        episodes = group(iter(messages), journal)
        self._first_in_file = min(episodes, default=self.next_episode)
        if messages:
            scratch = journal.with_name(journal.name.removesuffix(JOURNAL_SUFFIX) + ".recovering")
            scratch.unlink(missing_ok=True)
            self._create_file(scratch)
            file = self._open_file()
            for message in messages:
                channel = message.channel
                if channel.topic not in self._channels:
                    metadata = channel.metadata
                    qos, type_hash = metadata.get("offered_qos_profiles", ""), metadata.get("topic_type_hash", "")
                    topic = Topic(channel.topic, channel.type_name, channel.definition, type_hash, qos)
                    entry = TopicEntry(channel.type_name, type_hash, json.loads(qos) if qos else [])
                    self._metadata.topics.setdefault(channel.topic, entry)
                    self._channels[channel.topic] = file.add_topic(topic)
                file.write_message(self._channels[channel.topic], message.time_ns, bytes(message.data))
                if channel.topic == definitions.EPISODE_TOPIC:
                    file.end_chunk()
            for index, raw in episodes.items():
                if raw.end is None:
                    episode = recovered(index, raw, self._metadata.facts)
                    end = EpisodeEnd(episode, len(episode.steps), episode.augmentations, episode.episode_return)
                    channel_number = self._channels[definitions.EPISODE_TOPIC]
                    head, pixels = encode_episode(end)
                    last = max(message.time_ns for message in messages)
                    file.write_message(channel_number, last, head + pixels)
            self.next_episode = max(episodes, default=self.next_episode - 1) + 1
            self._finish_file(final)
        journal.unlink()

    def _seal_journal(self) -> None:
        assert self._file is not None
        journal = self._file.path
        self._file.release()
        self._file = None
        self._tally = _Tally()
        self._channels = {}
        self.next_episode = self._first_in_file
        self._recover(journal)

    def _open_file(self) -> McapFile:
        if self._file is None:
            self._check_space(0)
            self._first_in_file = self.next_episode
            with self._failures("a file cannot be created"):
                self._create_file(self.path / (file_name(self.path, self.next_episode) + JOURNAL_SUFFIX))
        assert self._file is not None
        return self._file

    def _create_file(self, path: Path) -> None:
        self._file = McapFile(path, METADATA_NAME, facts_as_text(self._metadata.facts))
        self._channels = {
            definitions.STEP_TOPIC: self._file.add_topic(STEP),
            definitions.EPISODE_TOPIC: self._file.add_topic(EPISODE),
        }

    def _file_has_messages(self) -> bool:
        assert self._file is not None
        return any(self._file.next_sequence(channel) for channel in self._channels.values())

    def _discard_file(self) -> None:
        assert self._file is not None
        self._file.release()
        self._file.path.unlink()
        self._file = None

    def _finish_file(self, final: Path | None = None) -> None:
        """Complete the file under way, then name it in metadata.yaml: the order keeps metadata.yaml true at any time."""
        file = self._file
        assert file is not None
        if final is None:
            empty = not file.next_sequence(self._channels[definitions.EPISODE_TOPIC])
            name = tail_name(self.path, self.next_episode) if empty else file.path.name.removesuffix(JOURNAL_SUFFIX)
            final = self.path / name
        summary = file.finish(final, sync=self._sync)
        self._file = None
        self._channels = {}
        if self._sync:
            sync_directory(self.path)
        self._metadata.add(summary)
        self._metadata.save(self.path, sync=self._sync)

    def _write(self, file: McapFile, channel: int, time_ns: int, head: bytes, pixels: bytes) -> None:
        self._check_space(len(head) + len(pixels))
        with self._failures("the step cannot be written"):
            if pixels:
                file.write(channel, time_ns, head, pixels)
            else:
                file.write(channel, time_ns, head)

    def _check_space(self, size: int) -> None:
        """Refuse to go on while there is still room to complete what is begun."""
        self._unchecked += size
        if size and self._unchecked * 8 < self._reserve:
            return
        self._unchecked = 0
        status = os.statvfs(self.path)
        free = status.f_bavail * status.f_frsize
        if free < self._reserve + size:
            raise DiskFull(
                f"{free} bytes are free on its disk and {self._reserve} are kept in reserve",
                bag=self.path,
                episode=self.next_episode,
                remedy="All finished episodes are safe. Free space, then record on into the same run.",
            )

    @contextlib.contextmanager
    def _failures(self, what: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                raise DiskFull(
                    f"{what}: the disk is full",
                    bag=self.path,
                    episode=self.next_episode,
                    remedy="All finished episodes are safe. Free space, then record on into the same run.",
                ) from error
            raise BagError(
                f"{what} ({error.strerror})",
                bag=self.path,
                remedy="Check that the directory is on a writable disk and belongs to you.",
            ) from error


def _continued(stored: dict[str, Any], facts: dict[str, Any], episode: int) -> dict[str, Any]:
    """Return the facts of a run that goes on: the first ones, and what has changed from which episode on."""
    current = dict(stored)
    continuations = list(current.pop("continuations", []))
    latest = dict(current)
    for change in continuations:
        latest.update(change["facts"])
    changed = {key: value for key, value in facts.items() if key not in latest or latest[key] != value}
    if changed:
        continuations.append({"from_episode": episode, "facts": changed})
    return {**current, **({"continuations": continuations} if continuations else {})}
