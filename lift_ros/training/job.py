"""The process in which the trainer node trains: reads the run, writes the model, reports as JSON lines on stdout."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lift_ros.errors import UserError
from lift_ros.processes import end_with_parent, module_command
from lift_ros.scenario import load_scenario
from lift_ros.training.earlier import find_earlier
from lift_ros.training.options import preset
from lift_ros.training.preflight import check_runs
from lift_ros.training.runs import load_runs

REPORT_SECONDS = 0.5


@dataclass(frozen=True)
class TrainingJob:
    """What to train and where to put it."""

    run: str
    episodes: int  # the first so many of the run, so that the model does not depend on when training began
    scenario: str
    out: str
    seed: int
    threads: int
    niceness: int
    options: dict[str, Any]

    def command(self) -> list[str]:
        """Return the command line of the process."""
        return [*module_command("lift_ros.training.job"), json.dumps(asdict(self))]


def give_way(niceness: int) -> None:
    """Let the loop have the processor first, and end when the trainer node dies, however that happens."""
    os.nice(niceness)
    end_with_parent(signal.SIGKILL)


def execute(job: TrainingJob, report: Callable[[dict[str, Any]], None]) -> None:
    """Train, unless the very same model is there already, and report it."""
    from lift_ros.training.trainer import train  # here, since torch is slow to come and only this process needs it

    scenario = load_scenario(job.scenario)
    # While a run is collected nobody asks for a judgement, so that all episodes are for training unless told.
    options = preset("fast", scenario, **{"held_out": 0.0, "seed": job.seed, **job.options})
    recorded = load_runs([job.run], episodes=job.episodes, scenario=scenario)
    out, radius = Path(job.out), scenario.action_radius
    policy = find_earlier(out, recorded, options, radius)
    if policy is None:
        if doubts := check_runs(
            recorded.arrays, options, action_radius=radius, limit=radius, sight=recorded.sight
        ).doubts():
            report({"doubts": doubts})
        stop = _reporter(options.total_updates(pictures=recorded.sight.image), report)
        policy = train(recorded, options, action_radius=radius, out=out, threads=job.threads, stop=stop).policy
    report({"model": str(out), "sha256": policy.hash, "algorithm": policy.algorithm})


def _reporter(total: int, report: Callable[[dict[str, Any]], None]) -> Callable[[], bool]:
    """Return what training asks after every update; it never stops, it only tells how far training is."""
    done = 0
    told_at = time.monotonic()

    def stop() -> bool:
        nonlocal done, told_at
        done += 1
        if time.monotonic() - told_at > REPORT_SECONDS:
            told_at = time.monotonic()
            report({"updates": done, "of": total})
        return False

    return stop


def main() -> int:
    """Do the job that the one argument describes."""
    job = TrainingJob(**json.loads(sys.argv[1]))
    give_way(job.niceness)
    try:
        execute(job, lambda facts: print(json.dumps(facts), flush=True))
    except UserError as error:
        print(json.dumps({"error": str(error)}), flush=True)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
