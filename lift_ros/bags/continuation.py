"""Whether a run may be continued: it holds the episodes of one plant and one logging policy."""

from __future__ import annotations

from pathlib import Path

from lift_ros.bags.reader import RunReader
from lift_ros.errors import UserError
from lift_ros.scenario import Scenario


def check_continuation(run: Path, scenario: Scenario) -> None:
    """Refuse to mix the episodes of two plants or logging policies in one run; a new run is always welcome."""
    if not run.is_dir() or not any(run.iterdir()):
        return
    facts = RunReader(run).facts
    if facts.get("scenario") != scenario.name:
        raise UserError(
            f"{run} is a run of scenario {facts.get('scenario')!r}, not {scenario.name!r}: choose another --out"
        )
    recorded, wanted = facts.get("parameters", {}), scenario.as_dict()
    for part in ("plant", "logging_policy"):
        if recorded.get(part) != wanted[part]:
            raise UserError(
                f"{run} was recorded with {part} {recorded.get(part)}, scenario {scenario.name} now says "
                f"{wanted[part]}: choose another --out"
            )
