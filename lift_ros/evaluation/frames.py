"""Frames of an episode, rendered afterwards: its seed and actions repeat it exactly in the simulator."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lift_ros.collection.records import Episode
from lift_ros.scenario import Scenario


@dataclass(frozen=True)
class Frame:
    """One rendered picture and the number of steps made before it."""

    step: int
    picture: npt.NDArray[np.uint8]


def render_episode(scenario: Scenario, episode: Episode, count: int = 8, size: int = 224) -> list[Frame]:
    """Repeat `episode` in the scenario's simulator and return `count` evenly spread frames."""
    wanted = set(np.linspace(0, len(episode.steps), min(count, len(episode.steps) + 1)).round().astype(int).tolist())
    problem = scenario.make_problem(render_size=size)
    try:
        observed = problem.reset(episode.seed)
        frames = []
        for step in range(len(episode.steps) + 1):
            if step in wanted and observed.image is not None:
                frames.append(Frame(step, observed.image))
            if step < len(episode.steps):
                observed = problem.step(episode.steps[step].action)
        return frames
    finally:
        problem.close()
