"""What the facts of a run may hold where commands read them; anybody can write a bag, and further facts are welcome."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lift_ros.configuration import Key, check_mapping, check_value

_MAP, _TEXT = Key(dict, optional=True), Key(str, optional=True)
_NUMBER, _COUNT = Key(float, optional=True), Key(int, low=0, high=2**64, optional=True)
_KEYS = {
    "scenario": _TEXT,
    "parameters": _MAP,
    "parameters.plant": _MAP,
    "parameters.plant.threshold": _NUMBER,
    "parameters.units": _MAP,
    "parameters.units.length": _TEXT,
    "parameters.units.observations": Key(list, entries=str, optional=True),
    "parameters.training": _MAP,
    "parameters.training.gamma": _NUMBER,
    "parameters.training.C": _NUMBER,
    "seed": _COUNT,
    "mode": _TEXT,
    "p": _NUMBER,
    "budget": _COUNT,
    "assist": _MAP,
    "guard": _MAP,
    "policy": _TEXT,
    "augmentation": _TEXT,
    "train_after": _COUNT,
    "model": _TEXT,
    "data": Key(list, entries=str, optional=True),
    "versions": _MAP,
    "made_by": _TEXT,
    "imported_from": _TEXT,
    "mapping": _MAP,
    "mapping.goal.within": _NUMBER,
}
_CONTINUATION = {"from_episode": Key(int, low=0, high=2**32), "facts": Key(dict)}


def check_facts(facts: Mapping[str, Any]) -> None:
    """Raise UserError where a fact is not of its kind."""
    for name, key in _KEYS.items():
        check_value(name, _at(facts, name), key)
    if facts.get("guard"):  # which decides on these
        for name in ("p", "budget"):
            check_value(name, facts.get(name), Key(_KEYS[name].kind))
    first, continuations = {**facts, "continuations": []}, facts.get("continuations", [])
    for number, change in enumerate(continuations if isinstance(continuations, list) else [continuations]):
        where = f"continuations[{number}]"
        entry = check_mapping(check_value(where, change, Key(dict)), _CONTINUATION, where)
        check_facts({**first, **entry["facts"]})


def _at(facts: Mapping[str, Any], name: str) -> Any:
    value: Any = facts
    for part in name.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value
