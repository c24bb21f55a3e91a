"""What the guard decided in a recorded run, and why: gone through again, since it follows from the episodes alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from lift_ros.collection.guard import Guard
from lift_ros.collection.records import Episode, Mode
from lift_ros.configuration import check_mapping
from lift_ros.scenario import GUARD_KEYS, GuardSettings

UNKNOWN = "set by hand, or by another version"


class Change(NamedTuple):
    """What holds from an episode on, why, and whether augmented episodes have given cause for concern."""

    episode: int
    p: float
    budget: int
    why: str
    warns: bool

    def __str__(self) -> str:
        """Return it in a line."""
        return f"guard: from episode {self.episode}: p={self.p:g}, budget {self.budget}: {self.why}"


def guard_changes(facts: Mapping[str, Any], episodes: Iterable[Episode]) -> list[Change]:
    """Return each change of p and budget by the guard; none where a run had no guard."""
    changes: list[Change] = []
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
        change = Change(episode.index, made, decision.budget, why, decision.warns)
        if not (decision.is_plain and changes) and (not changes or changes[-1][1:] != change[1:]):
            changes.append(change)
        guard.note(episode)
    return changes


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
