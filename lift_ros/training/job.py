"""The process in which the trainer node trains: reads the run, writes the model, reports as JSON lines on stdout."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lift_ros.collection.records import Episode
from lift_ros.errors import UserError
from lift_ros.scenario import load_scenario

_PR_SET_PDEATHSIG = 1
REPORT_SECONDS = 0.5
READ_ATTEMPTS = 10


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
        return [sys.executable, "-m", "lift_ros.training.job", json.dumps(asdict(self))]


def give_way(niceness: int) -> None:
    """Let the loop have the processor first, and end when the trainer node dies, however that happens."""
    os.nice(niceness)
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def execute(job: TrainingJob, report: Callable[[dict[str, Any]], None]) -> None:
    """Train, unless the very same model is there already, and report it."""
    from lift_ros.training import preset, train

    scenario = load_scenario(job.scenario)
    options = preset("fast", scenario, seed=job.seed, **job.options)
    out = Path(job.out)
    if not _is_trained(out, options.as_dict(), job.episodes):
        out.parent.mkdir(parents=True, exist_ok=True)
        train(
            _read(job),
            options,
            action_radius=scenario.action_radius,
            out=out,
            threads=job.threads,
            stop=_reporter(options.updates, report),
            sources=[{"run": Path(job.run).name, "episodes": job.episodes}],
        )
    report({"model": str(out), **_facts_of(out)})


def _read(job: TrainingJob) -> list[Episode]:
    from lift_ros.bags import RunReader

    for attempt in range(READ_ATTEMPTS):
        reader = RunReader(job.run)
        try:
            episodes = [reader.episode(index) for index in reader.episode_indices if index < job.episodes]
            break
        except FileNotFoundError:  # the recorder completed, and so renamed, a file between listing and reading
            if attempt == READ_ATTEMPTS - 1:
                raise
    if any(step.reward != step.reward for episode in episodes for step in episode.steps):
        from lift_ros.bags.hindsight import hindsight

        episodes, _ = hindsight(episodes)
    return episodes


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


def _is_trained(path: Path, options: dict[str, Any], episodes: int) -> bool:
    from lift_ros.policies.learned import load_model

    if not path.is_file():
        return False
    try:
        training = load_model(path).description.get("training", {})
    except UserError:
        return False
    same_episodes = [source.get("episodes") for source in training.get("bags", [])] == [episodes]
    return same_episodes and bool(training.get("options") == options)


def _facts_of(path: Path) -> dict[str, Any]:
    from lift_ros.policies.learned import load_model

    policy = load_model(path)
    return {"sha256": policy.hash, "algorithm": policy.algorithm}


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
