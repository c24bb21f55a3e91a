"""Facts of a run that anybody can have written: of their kinds, or refused with their name."""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any

import pytest
from bag_samples import write_run

from lift_ros.bags import RunReader
from lift_ros.bags.metadata import CHECKSUM_KEY, FACTS_KEY, FILE_NAME, RunMetadata
from lift_ros.errors import UserError


def forge(run: Path, **changes: Any) -> None:
    """Change what metadata.yaml says."""
    tree = json.loads((run / FILE_NAME).read_bytes())
    tree["rosbag2_bagfile_information"] |= changes
    (run / FILE_NAME).write_text(json.dumps(tree))


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ([1, 2], r"are \[1, 2\], and a JSON object was written"),
        ("text", "are 'text', and a JSON object"),
        ({"parameters": 1.5}, "parameters is 1.5; allowed: a mapping"),
        ({"parameters": {"units": [1]}}, r"parameters.units is \[1\]"),
        ({"seed": "x"}, "seed is 'x'; allowed: a whole number"),
        ({"guard": {"enabled": True}}, "p is None"),
        ({"continuations": 3}, r"continuations\[0\] is 3"),
        ({"continuations": [{"from_episode": 1, "facts": {"p": []}}]}, r"p is \[\]"),
    ],
)
def test_facts_of_another_kind_are_refused(tmp_path: Path, facts: Any, reason: str) -> None:
    write_run(tmp_path / "run")
    text = json.dumps(facts)
    forge(tmp_path / "run", custom_data={FACTS_KEY: text, CHECKSUM_KEY: f"{zlib.crc32(text.encode()):08x}"})
    with pytest.raises(UserError, match=reason):
        RunReader(tmp_path / "run")


def test_a_duration_without_end_is_refused(tmp_path: Path) -> None:
    write_run(tmp_path / "run")
    tree = json.loads((tmp_path / "run" / FILE_NAME).read_bytes())["rosbag2_bagfile_information"]
    tree["files"][0]["duration"]["nanoseconds"] = float("inf")
    forge(tmp_path / "run", files=tree["files"])
    with pytest.raises(UserError, match="metadata.yaml lacks"):
        RunMetadata.load(tmp_path / "run", {})


def test_many_missing_files_are_listed_as_quickly_as_they_are_read(tmp_path: Path) -> None:
    written = write_run(tmp_path / "run")
    forge(tmp_path / "run", relative_file_paths=[f"{number}.mcap" for number in range(200_000)])
    reader = RunReader(tmp_path / "run", skip_bad=True)
    assert len(list(reader)) == len(written)
    assert len(reader.left_out) == 200_000
