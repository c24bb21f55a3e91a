"""Completing what a crash has left behind, when recording goes on."""

from __future__ import annotations

from pathlib import Path

from mcap.exceptions import McapError
from mcap.reader import make_reader

from lift_ros.bags.cdr import EpisodeEnd, encode_episode
from lift_ros.bags.contents import group, recovered
from lift_ros.bags.definitions import EPISODE_TOPIC
from lift_ros.bags.faults import BagError
from lift_ros.bags.files import JOURNAL_SUFFIX, first_episode_of, tail_name
from lift_ros.bags.mcap_file import FileSummary, McapFile, Topic
from lift_ros.bags.metadata import METADATA_NAME, RunMetadata, facts_as_text
from lift_ros.bags.scan import Announced, Channel, Message, walk_journal
from lift_ros.bags.topics import EPISODE

_SCRATCH_SUFFIX = ".recovering"


def recover_journal(journal: Path, metadata: RunMetadata, *, sync: bool) -> FileSummary | None:
    """Turn a journal into a finished file, its cut-off episode into a recovered one, and remove it.

    The journal goes last: until the finished file has its name, readers use the journal, and from then on they ignore
    it.
    """
    final = journal.with_name(journal.name.removesuffix(JOURNAL_SUFFIX))
    summary = None
    if not final.exists():
        messages = list(walk_journal(memoryview(journal.read_bytes()), Announced()))
        if messages:
            summary = _rewrite(journal, final, messages, metadata, sync=sync)
    journal.unlink()
    return summary


def _rewrite(journal: Path, final: Path, messages: list[Message], metadata: RunMetadata, *, sync: bool) -> FileSummary:
    episodes = group(messages, journal)
    scratch = journal.with_name(final.name + _SCRATCH_SUFFIX)
    scratch.unlink(missing_ok=True)
    file = McapFile(scratch, METADATA_NAME, facts_as_text(metadata.facts))
    try:
        channels: dict[str, int] = {}
        for message in messages:
            name = message.channel.topic
            if name not in channels:
                topic = topic_of(message.channel)
                metadata.announce(topic)
                channels[name] = file.add_topic(topic)
            file.write_message(channels[name], message.time_ns, bytes(message.data))
            if name == EPISODE_TOPIC:
                file.end_chunk()
        for index, raw in episodes.items():
            if raw.end is None:
                episode = recovered(index, raw, metadata.facts)
                end = EpisodeEnd(episode, len(episode.steps), episode.augmentations, episode.episode_return)
                if EPISODE_TOPIC not in channels:
                    channels[EPISODE_TOPIC] = file.add_topic(EPISODE)
                last = max(message.time_ns for message in messages)
                file.write_message(channels[EPISODE_TOPIC], last, b"".join(encode_episode(end)))
        if not episodes:
            final = final.with_name(tail_name(final.parent, first_episode_of(final.name) or 0))
        return file.finish(final, sync=sync)
    except BaseException:
        file.discard()
        raise


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
    except McapError as error:
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
