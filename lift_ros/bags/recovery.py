"""Completing what a crash has left behind, when recording goes on."""

from __future__ import annotations

import shutil
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

from mcap.opcode import Opcode

from lift_ros.bags.contents import assemble, decodable, group, recovered
from lift_ros.bags.faults import EpisodeError, Malformed
from lift_ros.bags.files import JOURNAL_SUFFIX, first_episode_of, namespace_of, topics_of
from lift_ros.bags.journal import FileSummary, Journal
from lift_ros.bags.mcap_records import (
    BEGINS_CHUNK,
    CHECKSUM,
    CHUNK_HEAD,
    HEAD,
    Announced,
    RecordedMessage,
    journal_messages,
    records,
)
from lift_ros.messages.records import EpisodeEnd, encode_episode

_DAMAGED_SUFFIX = ".damaged"


def recover_journal(path: Path, facts: dict[str, Any], *, sync: bool, packed: bool = False) -> FileSummary | None:
    """Cut a journal off behind its good part, end its cut-off episode as a recovered one, and complete it.

    A power cut can leave holes. Nothing after the first fault is kept, it would be a gap in the run; where that is more
    than the record that was being written, the journal is copied first. An interruption leaves a journal again.
    """
    final = path.with_name(path.name.removesuffix(JOURNAL_SUFFIX))
    if final.exists():
        path.unlink()
        return None
    content = memoryview(path.read_bytes())
    cut: int | None = len(content)
    while cut is not None:
        journal = Journal(path, content[:cut], packed=packed)
        cut, end = _first_fault(path, content[: journal.size], facts)
    if _is_damage(content[journal.size :]):
        shutil.copyfile(path, final.with_name(final.name + _DAMAGED_SUFFIX))
    journal.reopen()
    try:
        if end is not None:
            journal.write(end.topic, end.time_ns, end.data)
        return journal.complete(sync=sync)
    finally:
        journal.release()


def _is_damage(rest: memoryview) -> bool:
    """Whether what is cut off is more than a message half written, an end of the file half written, or nothing."""
    found: Counter[int] = Counter()
    place, torn = 0, True
    with suppress(Malformed):
        for opcode, start, body in records(rest, 0, journal=True):
            found[opcode] += 1
            place = start + HEAD.size + len(body)
        torn = False
    if found[CHECKSUM] or found[Opcode.MESSAGE] > 1 or _is_spoilt_head(rest):
        return True
    behind = bytes(rest[place:])
    return not torn and bool(behind.strip(b"\0")) and behind[0] != Opcode.DATA_END


def _is_spoilt_head(rest: memoryview) -> bool:
    """Whether the head of a chunk does not say how long it is, which leaves all that follows without a meaning."""
    if len(rest) <= CHUNK_HEAD.size or rest[0] not in BEGINS_CHUNK:
        return False
    _, length = HEAD.unpack_from(rest)
    return bool(length != CHUNK_HEAD.size - HEAD.size)


def _first_fault(path: Path, good: memoryview, facts: dict[str, Any]) -> tuple[int | None, RecordedMessage | None]:
    """Return where the first message lies that breaks a rule, or else the end that the last episode lacks."""
    messages = list(journal_messages(good, Announced()))
    for message in messages:
        if not decodable(message):
            return message.offset, None
    end: RecordedMessage | None = None
    first = first_episode_of(path.name) or 0
    for expected, (index, raw) in enumerate(group(messages, path).items(), first):
        begin = min(message.offset for message in (*raw.steps, raw.end) if message is not None)
        if index != expected or end is not None:
            return begin, None
        try:
            if raw.end is not None:
                assemble(index, raw, path)
                continue
            episode = recovered(index, raw, facts, path)
        except EpisodeError:
            return begin, None
        if len(episode.steps) < len(raw.steps):
            return raw.steps[len(episode.steps)].offset, None
        _, topic = topics_of(namespace_of(raw.steps[-1].topic))
        end = RecordedMessage(topic, raw.steps[-1].time_ns, encode_episode(EpisodeEnd.of(episode)))
    return None, end
