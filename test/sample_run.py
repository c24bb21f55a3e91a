"""Small runs for tests of what reads them: straight drives to the goal at the origin."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from lift_ros.bags.writer import RunWriter
from lift_ros.collection.records import Episode, Mode, Outcome, Source, Step

SECOND = 1_000_000_000
START = 1_700_000_000 * SECOND


def drive(
    index: int,
    steps: int = 4,
    *,
    rewarded: bool = True,
    outcome: Outcome = Outcome.REACHED,
    augmented: int = 0,
    period: float = 0.1,
    pictures: bool = False,
) -> Episode:
    """Return an episode from (1, 1) to the origin; its first `augmented` steps are the augmentor's."""
    positions = np.linspace([1.0, 1.0], [0.0, 0.0], steps + 1) if steps else np.ones((1, 2))
    times = [START + index * 100 * SECOND + round(i * period * SECOND) for i in range(steps + 1)]
    frames = [np.full((4, 6, 3), 10 * i + index, dtype=np.uint8) if pictures else None for i in range(steps + 1)]
    records = [
        Step(
            episode=index,
            index=i,
            time_ns=times[i],
            observation=np.append(positions[i], float(index)),
            position=positions[i].copy(),
            action=positions[i + 1] - positions[i],
            source=Source.AUGMENTOR if i < augmented else Source.LOGGING_POLICY,
            reward=-float(np.linalg.norm(positions[i + 1])) if rewarded else float("nan"),
            image=frames[i],
        )
        for i in range(steps)
    ]
    return Episode(
        index=index,
        seed=1000 + index,
        mode=Mode.COLLECT,
        outcome=outcome,
        steps=records,
        final_observation=np.append(positions[-1], float(index)),
        reason="" if outcome != Outcome.ABORTED else "told so",
        final_position=positions[-1].copy(),
        final_image=frames[-1],
        goal=np.zeros(2) if rewarded else np.empty(0),
        start_time_ns=times[0],
        end_time_ns=times[-1],
    )


def write_run(path: Path, episodes: list[Episode], facts: dict[str, Any] | None = None) -> Path:
    with RunWriter(path, facts or {}, sync=False) as writer:
        for episode in episodes:
            writer.write_episode(episode)
    return path
