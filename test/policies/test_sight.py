from __future__ import annotations

import numpy as np
import pytest

from lift_ros.errors import UserError
from lift_ros.policies.coordinate_walk import CoordinateWalk
from lift_ros.policies.sight import VALUES, Seen, Sight, look, sight_of, with_sight

VECTOR = np.arange(6.0)
PICTURE = np.arange(12, dtype=np.uint8).reshape(2, 2, 3)


@pytest.mark.parametrize(
    ("text", "values", "image", "entries"),
    [
        ("values", True, False, slice(0, None)),
        ("image", False, True, slice(0, 0)),
        ("both", True, True, slice(0, None)),
        ("values and image", True, True, slice(0, None)),
        ("values[2:5]", True, False, slice(2, 5)),
        ("values[0:3] and image", True, True, slice(0, 3)),
    ],
)
def test_words_say_what_is_seen(text: str, values: bool, image: bool, entries: slice) -> None:
    sight = Sight.parse(text)
    assert (sight.values, sight.image, sight.entries) == (values, image, entries)
    assert Sight.parse(str(sight)) == sight


@pytest.mark.parametrize(
    "text", ["", "everything", "values[3:3]", "values[:3]", "image and values", "values and values"]
)
def test_other_words_are_refused_with_what_is_allowed(text: str) -> None:
    with pytest.raises(UserError, match=r"allowed: values, image, both, values\[FIRST:END\]"):
        Sight.parse(text)


def test_a_policy_gets_what_it_sees_as_its_own() -> None:
    assert Sight.parse("values[1:3]").of(VECTOR, None).tolist() == [1.0, 2.0]
    picture = Sight.parse("image").of(VECTOR, PICTURE)
    assert (picture == PICTURE).all() and not np.shares_memory(picture, PICTURE)
    seen = Sight.parse("values[4:6] and image").of(VECTOR, PICTURE)
    assert isinstance(seen, Seen) and seen.values.tolist() == [4.0, 5.0] and (seen.image == PICTURE).all()


def test_who_sees_pictures_is_not_left_without() -> None:
    with pytest.raises(UserError, match="was given no picture"):
        Sight.parse("both").of(VECTOR, None)


def test_entries_beyond_the_observation_are_refused() -> None:
    assert Sight.parse("values[2:6]").size(6) == 4
    with pytest.raises(UserError, match="does not have"):
        Sight.parse("values[2:7]").size(6)


@pytest.mark.parametrize(
    ("shown", "asked", "fits"),
    [
        ("values", "values[1:3]", True),
        ("values[0:3]", "values[1:4]", False),
        ("values", "image", False),
        ("both", "image", True),
        ("image", "values", False),
    ],
)
def test_nobody_may_ask_for_more_than_is_shown(shown: str, asked: str, fits: bool) -> None:
    assert Sight.parse(shown).shows(Sight.parse(asked), 6) is fits


def test_a_policy_sees_all_values_unless_told_otherwise() -> None:
    walk = CoordinateWalk(2)
    assert sight_of(walk) == VALUES
    assert look(with_sight(walk, Sight.parse("values[2:4]")), VECTOR, None).tolist() == [2.0, 3.0]
