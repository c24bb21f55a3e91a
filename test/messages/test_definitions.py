"""Definitions come from msg/*.msg alone, whole and as ROS has them."""

from __future__ import annotations

from pathlib import Path

import pytest
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from lift_ros.messages import definitions
from lift_ros.messages.layout import Kind, parts, prefix_dtype

SOURCES = sorted((Path(__file__).parents[2] / "msg").glob("*.msg"))
each = pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.stem)


@each
def test_every_field_of_the_file_is_known_in_its_order(source: Path) -> None:
    lines = [line.split("#")[0].split() for line in source.read_text().splitlines()]
    declared = [line[1] for line in lines if line and "=" not in "".join(line).replace("<=", "")]
    assert [field.name for field in definitions.fields(source.stem)] == declared


@each
def test_every_field_bears_comment_and_unit_and_every_sequence_a_bound(source: Path) -> None:
    for line in source.read_text().splitlines():
        if line and not line.startswith("#") and "=" not in line.split("#")[0].replace("<=", ""):
            declaration, _, comment = line.partition("#")
            assert "[" in comment and "]" in comment, f"{declaration} has no unit"
            assert "[]" not in declaration, f"{declaration} is not bounded"


@each
def test_definition_in_bags_is_what_a_full_ros_type_store_understands(source: Path) -> None:
    name = definitions.type_name(source.stem)
    store = get_typestore(Stores.ROS2_KILTED)
    store.register(get_types_from_msg(source.read_text(), name))
    assert definitions.type_hash(source.stem) == store.hash_rihs01(name)
    own, *others = definitions.full_definition(source.stem).split("=" * 80 + "\n")
    assert get_types_from_msg(own, name) == get_types_from_msg(source.read_text(), name)
    for other in others:
        head, _, text = other.partition("\n")
        full = head.removeprefix("MSG: ").replace("/", "/msg/")
        assert get_types_from_msg(text, full)[full][1] == store.fielddefs[full][1]


def test_header_is_a_stamp_and_a_frame() -> None:
    assert [(part.name, part.kind) for part in parts("Query")[:2]] == [
        ("header", Kind.STAMP),
        ("header.frame_id", Kind.TEXT),
    ]


def test_prefix_of_a_message_as_numpy_reads_it() -> None:
    layout = prefix_dtype("Step", {"observation": 2, "position": 0, "action": 1}, "source")
    assert layout.names is not None
    assert layout.names[:4] == ("encapsulation", "header", "header.frame_id_size", "header.frame_id")
    assert layout["observation"].shape == (2,)
    assert layout.fields["source"][1] == layout.itemsize - 1
