"""What others may have made is read within bounds, or refused in one sentence."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lift_ros.errors import UserError
from lift_ros.scenario import load_scenario, parse_scenario
from lift_ros.untrusted import brief, parse_json, parse_yaml, read_regular

BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{name}: &{name} [{','.join(['*' + before] * 9)}]\n" for before, name in zip("abcdefg", "bcdefgh", strict=True)
)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (BOMB, "all aliases written out"),
        ("a: &a [*a]", "for itself"),
        ("[" * 100_000, "levels deep"),
        ("a: " + "9" * 10_000, "digits"),
        ("a: 2020-99-99", "month"),
        ("a: !!timestamp x", "cannot be read"),
        ("? [a]\n: b", "unhashable|found unhashable"),
        ("a: [1", "expected"),
    ],
)
def test_yaml_is_refused_in_one_line(text: str, reason: str) -> None:
    for unique_keys in (False, True):
        with pytest.raises(ValueError, match=reason) as refusal:
            parse_yaml(text, unique_keys=unique_keys)
        assert "\n" not in str(refusal.value)


def test_an_alias_that_is_small_is_welcome() -> None:
    assert parse_yaml("a: &a [1, 2]\nb: *a\nc: {<<: {d: 1}}") == {"a": [1, 2], "b": [1, 2], "c": {"d": 1}}


def test_json_is_refused_before_it_takes_all_memory() -> None:
    for text in ("[" * 1_600_000, "[" + "[]," * 800_000 + "1]"):
        with pytest.raises(ValueError, match="it holds more than"):
            parse_json(text)
    with pytest.raises(ValueError, match="nested too deeply"):
        parse_json("[" * 100_000)


def test_only_regular_files_are_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "large").write_bytes(bytes(101))
    reasons = {"pipe": "no regular file", "large": "101 bytes", ".": "folder", "x" * 300: "300 bytes", "a\0": "NUL"}
    for name, reason in reasons.items():
        with pytest.raises(OSError) as refusal:
            read_regular(f"{tmp_path}/{name}", 100)
        assert reason in refusal.value.strerror
    (tmp_path / "small").write_bytes(b"abc")
    assert read_regular(tmp_path / "small", 3) == b"abc"


def test_a_sentence_shows_little_of_a_long_value() -> None:
    for value in ("x" * 10**6, list(range(10**5)), {str(number): 1 for number in range(10**4)}, 10**5000, [[[[[1]]]]]):
        assert len(brief(value)) < 1000
    assert brief({"b": 1, "a": [None, 2.5]}) == "{'b': 1, 'a': [None, 2.5]}"


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("dim", 10**12, "plant.dim is 1000000000000; allowed: a whole number >= 1 and <= 64"),
        ("step_limit", 10**400, "plant.step_limit is 1000.*000; allowed"),
        ("threshold", 3, "threshold is 3; allowed: less than 1.* episodes would begin where they have to arrive"),
        ("threshold", 10**400, "plant.threshold is 1000.*; allowed: a number"),
        ("action_radius", float("inf"), "plant.action_radius is inf; allowed"),
    ],
)
def test_a_scenario_of_numbers_that_cannot_be_meant_is_refused(name: str, value: object, reason: str) -> None:
    data = load_scenario("po-none-d2").as_dict()
    data["plant"][name] = value
    with pytest.raises(UserError, match=reason):
        parse_scenario(data, "x", "x.yaml")


def test_a_scenario_that_is_a_pipe_or_a_bomb_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    with pytest.raises(UserError, match="no such scenario file"):
        load_scenario(tmp_path / "pipe.yaml")
    (tmp_path / "bomb.yaml").write_text(BOMB)
    with pytest.raises(UserError, match="bomb.yaml: is not valid YAML: it holds more than"):
        load_scenario(tmp_path / "bomb.yaml")
