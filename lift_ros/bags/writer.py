"""Recording a run: every step is in the kernel when `write_step` returns, every finished episode on the disk."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

from lift_ros.bags.contents import Sizes, cut_off_episode
from lift_ros.bags.faults import BagError, DiskFull, EpisodeError
from lift_ros.bags.files import (
    JOURNAL_SUFFIX,
    NAMESPACE,
    PARTS,
    RunLock,
    file_name,
    known_as,
    list_run,
    sync_directory,
    topics_of,
)
from lift_ros.bags.journal import FileSummary, Journal
from lift_ros.bags.mcap_records import RecordedTopic
from lift_ros.bags.metadata import FILE_NAME, RunMetadata, records_of, summarise_file
from lift_ros.bags.reader import RunReader
from lift_ros.bags.recovery import recover_journal
from lift_ros.collection.records import COMPRESSIONS, Episode, Source, Step
from lift_ros.configuration import nearest
from lift_ros.errors import UserError
from lift_ros.messages.records import EpisodeEnd, decode_episode, encode_episode, step_pieces
from lift_ros.scenario import Scenario

DEFAULT_RESERVE = 16 * 2**20
_LOCK_PATIENCE = 2.0
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_IN_ORDER = (
    "Number episodes from `next_episode` on, write their steps in order, and finish each with all of its steps, or "
    "with none if all are written."
)
_ONE_SIZE = "All observations, positions and actions of a run have one size; record others into another run."
_SAFE = "All finished episodes are safe. Free space, then record on into the same run."


@dataclass(slots=True)
class _Tally:
    """What has been written of the episode under way."""

    steps: int = 0
    augmentations: int = 0
    episode_return: float = 0.0
    start_time: int = 0
    last_time: int = 0


class RunWriter:
    """Records episodes into a run, a new one or one that goes on after its last episode.

    `episodes_per_file` episodes share an .mcap file. `sync` makes each finished episode durable against a power cut;
    without it a crash of the process still loses nothing. `reserve` bytes of the disk are left free, so that a full
    disk stops recording before a file is cut off. `namespace` is that of the graph whose topics are recorded. With
    `compression` "zstd" finished files are compressed without loss; what is under way is not, so that a crash loses
    nothing then either.
    """

    def __init__(
        self,
        path: str | Path,
        facts: dict[str, Any],
        episodes_per_file: int = 1,
        *,
        sync: bool = True,
        reserve: int = DEFAULT_RESERVE,
        namespace: str = NAMESPACE,
        compression: str = "none",
    ) -> None:
        if compression not in COMPRESSIONS:
            raise UserError(f"compression is {compression!r}; {nearest(compression, COMPRESSIONS)}")
        if episodes_per_file < 1:
            raise UserError(f"episodes_per_file is {episodes_per_file}; a file holds at least 1 episode.")
        self.path = Path(path)
        self.next_episode = 0
        self._given_facts = facts
        self._namespace = namespace
        self._step_topic, self._episode_topic = topics_of(namespace)
        self._episodes_per_file = episodes_per_file
        self._sync = sync
        self._reserve = reserve
        self._compression = compression
        self._unchecked = 0  # bytes written since free space was last asked for
        self._file: Journal | None = None
        self._first_in_file = 0
        self._tally = _Tally()
        self._sizes: Sizes | None = None  # of all steps of the run
        self._others: dict[str, RecordedTopic] = {}
        with self._failures("the run cannot be created"):
            self.path.mkdir(parents=True, exist_ok=True)
            self._lock = RunLock(self.path)
        try:
            self._take_lock()
            self._metadata = self._begin(facts)
            self._records = records_of(self._metadata.facts)
        except BaseException:
            self._lock.close()
            raise

    def __enter__(self) -> RunWriter:
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if error is None:
            self.close()
            return
        # An interrupt may have come between a write and its bookkeeping, so what counts is what lies on the disk:
        # opening the run anew completes it. Where that fails too the next reader or writer recovers it, and the
        # first error is the one to report.
        self._release()
        with contextlib.suppress(UserError):
            RunWriter(self.path, self._given_facts, **self.settings).close()

    @property
    def settings(self) -> dict[str, Any]:
        """The arguments with which another writer writes as this one does."""
        return {
            "sync": self._sync,
            "reserve": self._reserve,
            "namespace": self._namespace,
            "compression": self._compression,
        }

    @property
    def facts(self) -> dict[str, Any]:
        """The run facts as they are recorded."""
        return self._metadata.facts

    def write_step(self, step: Step, data: bytes | None = None) -> None:
        """Append a step of the episode under way; `data` is the step as a message where the caller has it."""
        tally = self._tally
        sizes = (step.observation.size, step.position.size, step.action.size)
        if step.episode != self.next_episode or step.index != tally.steps:
            self._refuse(f"the run expects episode {self.next_episode}, step {tally.steps}", step.episode, step.index)
        if sizes != self._sizes and self._sizes is not None:
            problem = f"it has {Sizes(*sizes)} and those before have {self._sizes}"
            self._refuse(problem, step.episode, step.index, _ONE_SIZE)
        # Times in the bag never run backwards within an episode: readers sort by them.
        time_ns = max(tally.last_time, step.time_ns)
        self._write(self._step_topic, time_ns, step_pieces(step) if data is None else (data,))
        if not tally.steps:
            tally.start_time, self._sizes = step.time_ns, Sizes(*sizes)
        tally.last_time = time_ns
        tally.steps += 1
        if step.source == Source.AUGMENTOR:
            tally.augmentations += 1
        tally.episode_return += step.reward

    def finish_episode(self, episode: Episode, data: bytes | None = None) -> None:
        """Write what is missing of the episode, then its end; afterwards it is durable.

        `data` is the end as a message where the caller has it; it is written if it counts what was recorded.
        """
        tally = self._tally
        if episode.index != self.next_episode:
            self._refuse(f"the run expects episode {self.next_episode}", episode.index)
        if episode.steps and len(episode.steps) < tally.steps:
            self._refuse(f"it has {len(episode.steps)} steps and {tally.steps} are already written", episode.index)
        for step in episode.steps[tally.steps :]:
            self.write_step(step)
        if tally.steps and self._sizes is not None and (fault := self._sizes.fault(episode)):
            self._refuse(fault, episode.index, remedy=_ONE_SIZE)
        end = EpisodeEnd(episode, tally.steps, tally.augmentations, tally.episode_return)
        if data is not None:
            said = decode_episode(data)
            data = data if (said.steps, said.augmentations) == (end.steps, end.augmentations) else None
        data = encode_episode(end) if data is None else data
        self._write(self._episode_topic, max(tally.last_time, episode.end_time_ns), (data,))
        self.next_episode += 1
        self._tally = _Tally()
        with self._failures("the episode cannot be completed"):
            if self._file_is_full():
                self._finish_file()
            elif self._file is not None:
                self._file.seal()
                if self._sync:
                    self._file.sync()

    def write_episode(self, episode: Episode) -> None:
        """Write a whole episode."""
        self.finish_episode(episode)

    def take_file(self, file: Path, summary: FileSummary, episode: Episode, sizes: Sizes | None) -> None:
        """Take over a finished file that holds this one episode; `sizes` are those of its steps."""
        if self._episodes_per_file != 1:
            raise UserError(f"episodes_per_file is {self._episodes_per_file}; files of one episode need 1.")
        if episode.index != self.next_episode or self._tally.steps:
            self._refuse(f"the run expects episode {self.next_episode}, step {self._tally.steps}", episode.index, 0)
        if sizes is not None and self._sizes not in (None, sizes):
            self._refuse(f"it has {sizes} and those before have {self._sizes}", episode.index, remedy=_ONE_SIZE)
        name = file_name(self.path, episode.index)
        with self._failures("the episode cannot be taken over"):
            file.rename(self.path / name)
            self._metadata.add(replace(summary, name=name))
            self._sizes = self._sizes or sizes
            self.next_episode += 1
            self._finish_file()

    def write_other(self, topic: RecordedTopic, data: bytes, time_ns: int) -> None:
        """Record a message of another topic along."""
        if topic.name in (self._step_topic.name, self._episode_topic.name) or known_as(topic) is not None:
            raise UserError(f"topic {topic.name} is written with write_step and finish_episode; record another along.")
        if not 0 <= time_ns < 2**63:
            raise UserError(f"time {time_ns} of topic {topic.name} is no time in a bag; give nanoseconds from 0 on.")
        known = self._others.setdefault(topic.name, topic)
        if known.type_name != topic.type_name:
            change = f"recorded as {known.type_name}; it cannot change to {topic.type_name}"
            raise UserError(f"topic {topic.name} is {change}.")
        self._write(known, time_ns, (data,))

    def close(self) -> None:
        """Complete the file under way and let go of the run; an episode without an end is kept as recovered."""
        tally = self._tally
        try:
            if tally.steps:
                self.finish_episode(cut_off_episode(self.next_episode, tally.start_time, tally.last_time, self.facts))
            with self._failures("the run cannot be completed"):
                self._finish_file()
        finally:
            self._release()
            shutil.rmtree(self.path / PARTS, ignore_errors=True)

    def _release(self) -> None:
        if self._file is not None:
            self._file.release()
            self._file = None
        self._lock.close()

    def _take_lock(self) -> None:
        # A reader holds the lock for an instant to see whether somebody records.
        deadline = time.monotonic() + _LOCK_PATIENCE
        while not self._lock.acquire():
            if time.monotonic() > deadline:
                remedy = "Stop that recorder, or record into another directory."
                raise BagError("another process records into it", bag=self.path, remedy=remedy)
            time.sleep(0.01)

    def _begin(self, facts: dict[str, Any]) -> RunMetadata:
        """Take up the run as it lies on the disk and complete what a crash has left."""
        shutil.rmtree(self.path / PARTS, ignore_errors=True)
        listing = list_run(self.path)
        known = (self.path / FILE_NAME).exists()
        metadata = RunMetadata(dict(facts))
        if not known and not listing.finished and listing.journal is None and any(self.path.iterdir()):
            remedy = "Record into a new or empty directory."
            raise BagError("the directory holds other files and no bag", bag=self.path, remedy=remedy)
        if known or listing.finished:
            stored = self._take_up()
            if known:
                metadata = RunMetadata.load(self.path, stored)
            metadata.facts = continued(stored, facts, self.next_episode) if known or stored else metadata.facts
        for topic in (self._step_topic, self._episode_topic):
            metadata.announce(topic)
        for name in listing.finished:
            if name not in metadata.files:
                metadata.add(summarise_file(self.path / name))
        with self._failures("the run cannot be written"):
            if listing.journal is not None:
                journal = self.path / listing.journal
                summary = recover_journal(journal, metadata.facts, sync=self._sync, packed=self._packs)
                if summary is not None:
                    metadata.add(summary)
                if listing.finished or summary is not None:
                    self._take_up()
                else:
                    self.next_episode, self._sizes = 0, None
            metadata.save(self.path, sync=self._sync)
        return metadata

    def _take_up(self) -> dict[str, Any]:
        """Note the number that is free next and the sizes of what is recorded, and return the run's facts."""
        reader = RunReader(self.path)
        indices = reader.episode_indices
        self.next_episode = indices[-1] + 1 if indices else 0
        self._sizes = None
        for index in reversed(indices):
            with contextlib.suppress(EpisodeError):
                if steps := reader.episode(index).steps:
                    self._sizes = Sizes.of(steps[0])
                    break
        return reader.facts

    def _ready_file(self) -> Journal:
        """Return the file to write to; a full one is completed first in case that failed when it became full."""
        if self._file is not None and not self._file_is_full():
            return self._file
        with self._failures("a file cannot be created"):
            self._finish_file()
            self._check_space(0)
            name = file_name(self.path, self.next_episode) + JOURNAL_SUFFIX
            file = Journal(self.path / name, packed=self._packs)
            file.create(self._records, (self._step_topic, self._episode_topic))
            if self._sync and self._episodes_per_file > 1:
                sync_directory(self.path)
            self._file = file
            self._first_in_file = self.next_episode
        return file

    @property
    def _packs(self) -> bool:
        return self._compression != "none"

    def _file_is_full(self) -> bool:
        return self.next_episode - self._first_in_file >= self._episodes_per_file

    def _finish_file(self) -> None:
        """Complete the file under way, then name it in metadata.yaml: in this order metadata.yaml is always true."""
        if self._file is not None:
            summary = self._file.complete(sync=self._sync)
            self._file = None
            if summary is not None:
                self._metadata.add(summary)
        if self._metadata.unsaved:
            if self._sync:
                sync_directory(self.path)
            self._metadata.save(self.path, sync=self._sync)

    def _write(self, topic: RecordedTopic, time_ns: int, data: Sequence[bytes | memoryview]) -> None:
        file = self._file
        if file is None or not self._tally.steps:
            file = self._ready_file()
        message = data[0] if len(data) == 1 else b"".join(data)
        size = len(message)
        self._unchecked += size
        if self._unchecked * 8 >= self._reserve:
            self._check_space(size)
        try:
            file.write(topic, time_ns, message)
        except OSError as error:  # not by `_failures`, which would cost as much as the rest
            raise self._failure("the record cannot be written", error) from error

    def _check_space(self, size: int) -> None:
        """Refuse to go on while there is still room to complete what is begun."""
        self._unchecked = 0
        status = os.statvfs(self.path)
        free = status.f_bavail * status.f_frsize
        kept = self._reserve + (0 if self._file is None else self._file.unpacked)
        if free < kept + size:
            problem = f"{free} bytes are free on its disk and {kept} are kept in reserve"
            raise DiskFull(problem, bag=self.path, episode=self.next_episode, remedy=_SAFE)

    def _refuse(self, problem: str, episode: int, step: int | None = None, remedy: str = _IN_ORDER) -> NoReturn:
        raise BagError(problem, bag=self.path, episode=episode, step=step, remedy=remedy)

    @contextlib.contextmanager
    def _failures(self, what: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise self._failure(what, error) from error

    def _failure(self, what: str, error: OSError) -> BagError:
        if error.errno in _NO_SPACE:
            return DiskFull(f"{what}: the disk is full", bag=self.path, episode=self.next_episode, remedy=_SAFE)
        remedy = "Check that the directory is on a writable disk and belongs to you."
        return BagError(f"{what} ({error.strerror})", bag=self.path, remedy=remedy)


def continued(stored: dict[str, Any], facts: dict[str, Any], episode: int) -> dict[str, Any]:
    """Return the facts of a run that goes on: the first ones, and what has changed from which episode on."""
    latest = {key: value for key, value in stored.items() if key != "continuations"}
    continuations = list(stored.get("continuations", []))
    for change in continuations:
        latest.update(change["facts"])
    changed = {key: value for key, value in facts.items() if key not in latest or latest[key] != value}
    if not changed:
        return stored
    return {**stored, "continuations": [*continuations, {"from_episode": episode, "facts": changed}]}


def check_continuation(run: Path, scenario: Scenario) -> None:
    """Refuse to mix the episodes of two plants or logging policies in one run; a new run is always welcome."""
    if not run.is_dir() or not any(run.iterdir()):
        return
    facts = RunReader(run).facts
    if facts.get("scenario") != scenario.name:
        other = f"of scenario {facts['scenario']!r}" if facts.get("scenario") else "that names no scenario"
        raise UserError(f"{run} is a run {other}, not {scenario.name!r}: choose another --out")
    recorded, wanted = facts.get("parameters", {}), scenario.as_dict()
    for part in ("plant", "logging_policy"):
        if recorded.get(part) != wanted[part]:
            now = f"scenario {scenario.name} now says {wanted[part]}"
            raise UserError(f"{run} was recorded with {part} {recorded.get(part)}, {now}: choose another --out")
