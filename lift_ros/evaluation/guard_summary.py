"""What the guard decided in a recorded run, and why: gone through again, since it follows from the episodes alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lift_ros.collection.guard import Guard
from lift_ros.collection.records import Episode, Mode
from lift_ros.configuration import check_mapping
from lift_ros.scenario import GUARD_KEYS, GuardSettings

HEADER = ("from episode", "p", "budget", "why")
UNKNOWN = "set by hand, or by another version"


def guard_rows(facts: Mapping[str, Any], episodes: Iterable[Episode]) -> list[tuple[str, str, str, str]]:
    """Return a row for each change of p and budget by the guard; none where a run had no guard."""
    rows: list[tuple[str, str, str, str]] = []
    guard: Guard | None = None
    waiting = sorted(_facts_over_time(facts).items())
    wishes: dict[str, Any] = {}
    for episode in episodes:
        while waiting and waiting[0][0] <= episode.index:
            wishes |= waiting.pop(0)[1]
            guard = _guard_of(wishes, guard)
        if guard is None or episode.mode is not Mode.COLLECT or not episode.steps:
            continue
        guard.serve(str(wishes.get("model", "")))
        decision = guard.decide(episode.mode, wishes["p"], wishes["budget"])
        made = episode.steps[0].p
        why = decision.why if made == decision.p else UNKNOWN
        row = (str(episode.index), f"{made:g}", str(decision.budget), why)
        if not (decision.is_plain and rows) and (not rows or rows[-1][1:] != row[1:]):
            rows.append(row)
        guard.note(episode)
    return rows


def last_decision(rows: Sequence[Sequence[str]]) -> str:
    """Return how it ended, in a line; empty where there was no guard."""
    return "guard: from episode {}: p={}, budget {}: {}".format(*rows[-1]) if rows else ""


def _facts_over_time(facts: Mapping[str, Any]) -> dict[int, dict[str, Any]]:
    """Return what a run was told, by the episode from which on it held."""
    told = {0: {key: value for key, value in facts.items() if key != "continuations"}}
    for change in facts.get("continuations", []):
        told.setdefault(change["from_episode"], {}).update(change["facts"])
    return told


def _guard_of(wishes: Mapping[str, Any], before: Guard | None) -> Guard | None:
    if not wishes.get("guard"):
        return before
    settings = GuardSettings(**check_mapping(dict(wishes["guard"]), GUARD_KEYS, "facts: guard"))
    if before is None:
        return Guard(settings)
    before.settings = settings
    return before
