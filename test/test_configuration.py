"""Values are checked against their keys; errors name the place, the value and what is allowed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lift_ros.configuration import Key, Section, check_mapping, listed, nearest, read_yaml, suggest
from lift_ros.errors import UserError


@pytest.mark.parametrize(
    ("key", "words"),
    [
        (Key(float, low=0, high=1), "a number >= 0 and <= 1"),
        (Key(int, above=0), "a whole number > 0"),
        (Key(str, choices=("a", "b"), optional=True), "one of a, b, or null"),
        (Key(list, length=3), "a list of 3 numbers"),
        (Key(list, entries=str), "a list of texts"),
        (Key(bool), "true or false"),
    ],
)
def test_what_is_allowed_in_words(key: Key, words: str) -> None:
    assert key.allowed() == words


@pytest.mark.parametrize(
    ("key", "good", "bad"),
    [
        (Key(float, low=0, high=1), [0, 1, 0.5, "1e-3"], [-0.1, 1.1, True, None, float("nan"), "much", 10**400]),
        (Key(int, above=0), [1, 10**400], [0, 1.0, True, "1"]),
        (Key(str, choices=("a", "b")), ["a"], ["c", 1]),
        (Key(list, length=2), [[1, 2.5]], [[1], [1, "x"], 1]),
        (Key(list, entries=str), [["x"], []], [[1]]),
        (Key(bool), [True], [1, "true"]),
        (Key(int, optional=True), [None], ["x"]),
    ],
)
def test_good_values_pass_and_bad_ones_do_not(key: Key, good: list[Any], bad: list[Any]) -> None:
    assert [key.accepts(value) for value in good] == [True] * len(good)
    assert [key.accepts(value) for value in bad] == [False] * len(bad)


def test_defaults_are_filled_in_and_sections_read_by_their_function() -> None:
    keys = {"a": Key(int), "b": Key(float, 0.5), "c": Section(lambda value, where: f"{where}={value}", None)}
    assert check_mapping({"a": 1}, keys, "f: ") == {"a": 1, "b": 0.5, "c": None}
    assert check_mapping({"a": 1, "c": 2}, keys, "f: x")["c"] == "f: x.c=2"


@pytest.mark.parametrize(
    ("data", "where", "text"),
    [
        ({}, "f: ", "f: size is missing; allowed: a whole number"),
        ({"size": "x"}, "f: part", "f: part.size is 'x'; allowed: a whole number"),
        ({"sise": 1}, "f: ", "f: unknown key 'sise'; did you mean 'size'?"),
        ([1], "f: ", "f is [1]; allowed: a mapping with keys size"),
    ],
)
def test_mistakes_are_named_with_their_place(data: Any, where: str, text: str) -> None:
    with pytest.raises(UserError) as caught:
        check_mapping(data, {"size": Key(int)}, where)
    assert str(caught.value) == text


def test_near_words_are_suggested_else_all_are_listed() -> None:
    assert nearest("Colection", ["collection", "plant"]) == "did you mean 'collection'?"
    assert nearest("xyz", ["b", "a"]) == "known are a, b"
    assert nearest("xyz", []) == "known are none"
    assert nearest("--scenario", ["--reward", "--seed"]) == "known are --reward, --seed"
    assert suggest("point.u", ["point.x", "point.y", "stamp"]) == "; did you mean point.y or point.x?"
    assert nearest("po-blend-2d", ["po-blend-d2", "po-blend-d5"]) == "did you mean 'po-blend-d2'?"
    assert nearest("po-blend-5d", ["po-blend-d2", "po-blend-d5"]) == "did you mean 'po-blend-d5'?"
    assert nearest("po-bland-d2", ["po-blend-d2", "po-blend-d5", "po-none-d2"]) == "did you mean 'po-blend-d2'?"
    assert suggest("y", ["point.x", "point.y"]) == "; did you mean point.y?"
    assert suggest("xyz", ["b"]) == "."


def test_long_lists_are_cut() -> None:
    assert listed([str(number) for number in range(25)]).endswith("18, 19 and 5 more")


def test_a_key_given_twice_is_refused(tmp_path: Path) -> None:
    (tmp_path / "f.yaml").write_text("a: 1\nb: 2\na: 3\n")
    with pytest.raises(UserError, match=r"f\.yaml: line 3: key 'a' is given twice"):
        read_yaml(tmp_path / "f.yaml")
