"""Completing what a crash has left behind, when recording goes on."""

from __future__ import annotations

import struct
from pathlib import Path

from mcap.exceptions import McapError
from mcap.reader import make_reader

from lift_ros.bags.cdr import EpisodeEnd, encode_episode
from lift_ros.bags.contents import RawEpisode, assemble, check_episode, group, journal_messages, recovered
from lift_ros.bags.definitions import EPISODE_TOPIC, STEP_TOPIC
from lift_ros.bags.faults import BagError, EpisodeError
from lift_ros.bags.files import JOURNAL_SUFFIX, first_episode_of, tail_name
from lift_ros.bags.mcap_file import FileSummary, McapFile, Topic
from lift_ros.bags.metadata import METADATA_NAME, RunMetadata, facts_as_text
from lift_ros.bags.scan import Announced, Channel, Message
from lift_ros.bags.topics import EPISODE, STEP
from lift_ros.collection.records import Episode

_SCRATCH_SUFFIX = ".recovering"
_DAMAGED_SUFFIX = ".damaged"
_OURS = (STEP_TOPIC, EPISODE_TOPIC)


def recover_journal(journal: Path, metadata: RunMetadata, *, sync: bool) -> FileSummary | None:
    """Turn a journal into a finished file, its cut-off episode into a recovered one, and remove it.

    The journal goes last: until the finished file has its name, readers use the journal, and from then on they ignore
    it. A journal with holes, which a power cut can leave, is kept under another name.
    """
    final = journal.with_name(journal.name.removesuffix(JOURNAL_SUFFIX))
    if final.exists():
        journal.unlink()
        return None
    messages = list(journal_messages(memoryview(journal.read_bytes()), Announced()))
    first = first_episode_of(final.name) or 0
    kept, cut_off = _good_part(group(messages, journal), first, journal, metadata)
    wanted = [message for message in messages if message.channel.topic not in _OURS or id(message.data) in kept]
    summary = None
    if wanted:
        target = final if kept else final.with_name(tail_name(final.parent, first))
        summary = _rewrite(target, wanted, cut_off, metadata, sync=sync)
    if len(wanted) == len(messages):
        journal.unlink()
    else:
        journal.rename(final.with_name(final.name + _DAMAGED_SUFFIX))
    return summary


def _rewrite(
    final: Path, messages: list[Message], cut_off: Episode | None, metadata: RunMetadata, *, sync: bool
) -> FileSummary:
    """Write messages, and the end of the cut-off episode, into a file of their own."""
    scratch = final.with_name(final.name + _SCRATCH_SUFFIX)
    scratch.unlink(missing_ok=True)
    file = McapFile(scratch, METADATA_NAME, facts_as_text(metadata.facts))
    try:
        channels = {topic.name: file.add_topic(topic) for topic in (STEP, EPISODE)}
        last = 0
        for message in messages:
            name = message.channel.topic
            if name not in channels:
                topic = topic_of(message.channel)
                metadata.announce(topic)
                channels[name] = file.add_topic(topic)
            file.write_message(channels[name], message.time_ns, bytes(message.data))
            last = max(last, message.time_ns)
            if name == EPISODE_TOPIC:
                file.end_chunk()
        if cut_off is not None:
            end = EpisodeEnd(cut_off, len(cut_off.steps), cut_off.augmentations, cut_off.episode_return)
            file.write_message(channels[EPISODE_TOPIC], last, b"".join(encode_episode(end)))
        return file.finish(final, sync=sync)
    except BaseException:
        file.discard()
        raise


def _good_part(
    episodes: dict[int, RawEpisode], first: int, journal: Path, metadata: RunMetadata
) -> tuple[set[int], Episode | None]:
    """Return which messages to keep, by identity, and the cut-off episode; `first` is the number of the first episode.

    A power cut can leave a journal with holes. Nothing after the first fault is kept: it would be a gap in the run.
    """
    kept: set[int] = set()
    for expected, (index, raw) in enumerate(episodes.items(), first):
        if index != expected:
            break
        try:
            if raw.end is None:
                episode = recovered(index, raw, metadata.facts)
                check_episode(episode, journal)
                kept.update(id(data) for data in raw.steps[: len(episode.steps)])
                return kept, episode if episode.steps else None
            assemble(index, raw, journal)
            kept.update(id(data) for data in (*raw.steps, raw.end))
        except EpisodeError:
            break
    return kept, None


def topic_of(channel: Channel) -> Topic:
    """Return the topic that a channel announces."""
    metadata = channel.metadata
    return Topic(
        channel.topic,
        channel.type_name,
        channel.definition,
        metadata.get("topic_type_hash", ""),
        metadata.get("offered_qos_profiles", ""),
    )


def summarise(path: Path, metadata: RunMetadata) -> FileSummary:
    """Return what metadata.yaml says about a finished file, from the file itself, and announce its topics."""
    remedy = "Restore the file from a copy, or record into another directory."
    try:
        with path.open("rb") as stream:
            summary = make_reader(stream).get_summary()
    except (McapError, ValueError, struct.error, OSError) as error:
        raise BagError(f"it cannot be read ({error})", bag=path, remedy=remedy) from error
    if summary is None or summary.statistics is None:
        raise BagError("it has no index", bag=path, remedy=remedy)
    counts: dict[str, int] = {}
    statistics = summary.statistics
    for number, channel in summary.channels.items():
        schema = summary.schemas.get(channel.schema_id)
        type_name, definition = (schema.name, schema.data.decode()) if schema else ("", "")
        announced = Channel(channel.topic, type_name, channel.message_encoding, definition, dict(channel.metadata))
        metadata.announce(topic_of(announced))
        counts[channel.topic] = statistics.channel_message_counts.get(number, 0)
    return FileSummary(
        path.name,
        statistics.message_start_time,
        statistics.message_end_time,
        statistics.message_count,
        counts,
    )
