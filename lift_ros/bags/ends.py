"""Ends of episodes alone, for lists of many: of each file its index and one record are read, nothing else."""

from __future__ import annotations

from contextlib import suppress

from lift_ros.bags.chunks import NOT_ORDINARY, end_of, episode_chunks
from lift_ros.bags.mcap_records import MESSAGE_HEAD, file_bytes
from lift_ros.bags.reader import RunReader
from lift_ros.messages.records import EpisodeEnd, decode_episode


def read_end(reader: RunReader, index: int) -> EpisodeEnd:
    """Return the end of an episode; where its file is not as usual the whole episode is read, which says what is wrong.

    Neither steps nor checksums are looked at: `RunReader.episode` does that when an episode is opened.
    """
    name = reader.file_names.get(index)
    if name is not None and reader.directory / name != reader.journal:
        with suppress(OSError, *NOT_ORDINARY):
            data = file_bytes(reader.directory / name, whole=False)
            for chunk in episode_chunks(data, [index]):
                records = chunk.records()
                found, end = chunk.end(records)
                if found == index:
                    return decode_episode(records[end + MESSAGE_HEAD.size : end_of(records, end)])
    return EpisodeEnd.of(reader.episode(index))
