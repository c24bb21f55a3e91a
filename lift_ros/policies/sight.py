"""What a policy sees of all that a plant reports: values, some of them, the picture, or both."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from lift_ros.array_types import FloatArray, Picture
from lift_ros.errors import UserError
from lift_ros.policies.protocol import Policy

ALLOWED = "values, image, both, values[FIRST:END], or values[FIRST:END] and image"
_VALUES = re.compile(r"values(?:\[(\d+):(\d+)\])?")


class Seen(NamedTuple):
    """The observation of a policy that sees values and picture."""

    values: FloatArray
    image: Picture


@dataclass(frozen=True)
class Sight:
    """What one policy sees; `first` and `last` bound the entries of the values that it is shown."""

    values: bool = True
    image: bool = False
    first: int = 0
    last: int | None = None

    @classmethod
    def parse(cls, text: str) -> Sight:
        """Return what these words describe."""
        words = ["values", "image"] if text == "both" else text.split(" and ")
        image = words[-1] == "image"
        of_values = [_VALUES.fullmatch(word) for word in (words[:-1] if image else words)]
        if len(of_values) > 1 or not all(of_values):
            raise UserError(f"{text!r} says nothing that can be seen; allowed: {ALLOWED}")
        entries = of_values[0].groups() if of_values and of_values[0] else (None, None)
        sight = cls(bool(of_values), image, int(entries[0] or 0), None if entries[1] is None else int(entries[1]))
        if sight.last is not None and sight.last <= sight.first:
            raise UserError(f"{text!r} shows no entry; allowed: {ALLOWED}, with FIRST below END")
        return sight

    def __str__(self) -> str:
        entries = "" if self.last is None else f"[{self.first}:{self.last}]"
        words = [f"values{entries}"] * self.values + ["image"] * self.image
        return " and ".join(words)

    @property
    def entries(self) -> slice:
        """The entries of the values that are seen; none where only the picture is."""
        return slice(self.first, self.last) if self.values else slice(0, 0)

    def size(self, observation_size: int) -> int:
        """Return how many entries are seen of a plant with so many; UserError where it has not enough."""
        if self.last is not None and self.last > observation_size:
            raise UserError(f"{self} names entries that an observation of {observation_size} values does not have")
        return len(range(observation_size)[self.entries])

    def shows(self, other: Sight, observation_size: int) -> bool:
        """Whether whoever is shown this of so many values is shown all that the other one asks for."""
        mine, theirs = (set(range(observation_size)[sight.entries]) for sight in (self, other))
        return theirs <= mine and self.image >= other.image

    def of(self, values: FloatArray, image: Picture | None) -> Any:
        """Return the observation of this policy: an array of its own, so that it may change it."""
        if not self.image:
            return values[self.entries].copy()
        if image is None:
            raise UserError(f"a policy that sees {self} was given no picture; the plant must send one")
        return Seen(values[self.entries].copy(), image.copy()) if self.values else image.copy()


VALUES = Sight()


def sight_of(policy: Policy) -> Sight:
    """Return what a policy sees; all values unless it says otherwise."""
    sight: Sight = getattr(policy, "sight", VALUES)
    return sight


def with_sight(policy: Policy, sight: Sight) -> Policy:
    """Let a policy see this from now on."""
    if sight != sight_of(policy):
        policy.sight = sight  # type: ignore[attr-defined]
    return policy


def look(policy: Policy, values: FloatArray, image: Picture | None) -> Any:
    """Return what a policy sees of an observation."""
    return sight_of(policy).of(np.asarray(values), image)
