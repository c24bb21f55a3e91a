"""The compressed copy of a journal: its chunks are packed as their episodes end, and it takes the journal's place.

The journal itself stays as it is until the copy is complete, so a crash loses nothing and leaves at most a copy that is
made anew.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import zstandard
from mcap.opcode import Opcode
from mcap.records import ChunkIndex

from lift_ros.bags.appended import AppendedFile
from lift_ros.bags.files import JOURNAL_SUFFIX
from lift_ros.bags.mcap_records import CHUNK_HEAD, HEAD, PACKED_HEAD, ZSTD

LEVEL = 1  # of zstd: higher ones take a multiple of the time for a few percent


def copy_path(journal: Path) -> Path:
    """Return where the compressed copy of a journal lies while it is made; no reader looks at this name."""
    return journal.with_name(f".{journal.name.removesuffix(JOURNAL_SUFFIX)}.packed")


class PackedCopy(AppendedFile):
    """The chunks of a journal compressed, with their indexes."""

    def __init__(self, journal: Path) -> None:
        super().__init__(copy_path(journal))
        self.chunks: list[ChunkIndex] = []
        self.packed = 0  # bytes of the journal that are in the copy

    def follow(self, journal: int, chunks: Sequence[ChunkIndex]) -> None:
        """Pack what is new among the sealed chunks of a journal, given as the descriptor of its file."""
        for chunk in chunks[len(self.chunks) :]:
            end = chunk.chunk_start_offset + chunk.chunk_length + chunk.message_index_length
            begin = chunk.chunk_start_offset if self.size else 0
            aligned = begin // mmap.ALLOCATIONGRANULARITY * mmap.ALLOCATIONGRANULARITY
            with (
                mmap.mmap(journal, end - aligned, prot=mmap.PROT_READ, offset=aligned) as mapped,
                memoryview(mapped) as view,
                view[begin - aligned :] as content,
            ):
                self._pack(content, begin, chunk)
            self.packed = end

    def _pack(self, content: memoryview, begin: int, chunk: ChunkIndex) -> None:
        """Append a chunk, and before the first all that lies before it in the journal; `content` lies at `begin`."""
        start = chunk.chunk_start_offset - begin
        inside = start + CHUNK_HEAD.size
        behind = start + chunk.chunk_length
        _, _, first, last, size, crc, _, _ = CHUNK_HEAD.unpack_from(content, start)
        with content[inside:behind] as records:
            stored = zstandard.ZstdCompressor(LEVEL).compress(records)
        length = PACKED_HEAD.size + len(stored)
        name = ZSTD.encode()
        head = PACKED_HEAD.pack(Opcode.CHUNK, length - HEAD.size, first, last, size, crc, len(name), name, len(stored))
        if self._descriptor < 0:
            self._open(os.O_CREAT | os.O_TRUNC)
        place = self.size + start
        moved = place + length - (chunk.chunk_start_offset + chunk.chunk_length)
        self._append(b"".join((content[:start], head, stored, content[behind:])))
        self.chunks.append(
            replace(
                chunk,
                chunk_length=length,
                chunk_start_offset=place,
                compression=ZSTD,
                compressed_size=len(stored),
                message_index_offsets={
                    channel: offset + moved for channel, offset in chunk.message_index_offsets.items()
                },
            )
        )
