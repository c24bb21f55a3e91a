"""The report's figures, each as a PNG inside the page, so that the page stays whole when it is moved."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lift_ros.array_types import ByteArray
from lift_ros.collection.records import Episode
from lift_ros.evaluation.paths import goal_of, positions, trajectory
from lift_ros.evaluation.phases import Phase, augmentation_outcomes, distance_quartiles
from lift_ros.evaluation.plots import AUGMENTED, LOGGED, draw_quartiles, draw_steps, make_figure

Frames = dict[int, ByteArray]  # pictures by the number of steps made before them
COLOURS = {
    Phase.LOGGING_POLICY: "#2563eb",
    Phase.SHADOW: "#6b7280",
    Phase.LIFT_COLLECTION: "#d97706",
    Phase.LEARNED_POLICY: "#16a34a",
}


def data_uri(figure: Any) -> str:
    """Render a figure as a PNG data URI."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()


def _panels(width: float, height: float, **layout: Any) -> tuple[Any, list[Any]]:
    """Return a figure and its axes side by side, with grids and without frames."""
    figure = make_figure(width, height)
    panels = list(figure.subplots(squeeze=False, **layout)[0])
    for axes in panels:
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25)
    return figure, panels


def convergence(phases: Mapping[Phase, Sequence[Episode]], threshold: float, steps: int) -> Any:
    """Draw the median distance over steps with its quartiles, one curve per phase."""
    figure, (axes,) = _panels(7.5, 4)
    curves = {phase.value: distance_quartiles(episodes, steps) for phase, episodes in phases.items()}
    draw_quartiles(axes, curves, {phase.value: colour for phase, colour in COLOURS.items()}, threshold)
    axes.legend(frameon=False)
    return figure


def steps_per_episode(phases: Mapping[Phase, Sequence[Episode]]) -> Any:
    """Draw how long each episode took, in the order in which they were made."""
    figure, (axes,) = _panels(7.5, 3.2)
    offset = 0
    for phase, episodes in phases.items():
        lengths = [len(episode.steps) for episode in episodes]
        axes.bar(offset + np.arange(len(lengths)), lengths, color=COLOURS[phase], width=0.85, label=phase.value)
        offset += len(lengths)
    axes.set(xlabel="episode", ylabel="steps")
    axes.legend(frameon=False)
    return figure


def augmentations(episodes: Sequence[Episode]) -> Any:
    """Draw the share of augmented steps per episode, and what became of all chances to augment."""
    figure, (left, right) = _panels(7.5, 3.2, ncols=2, width_ratios=[2, 1])
    shares = [episode.augmentations / max(1, len(episode.steps)) for episode in episodes]
    left.bar(np.arange(len(shares)), shares, color=AUGMENTED, width=0.85)
    left.set(xlabel="episode with an augmentor", ylabel="share of augmented steps", ylim=(0, 1))
    outcomes = augmentation_outcomes(episodes)
    right.barh(list(outcomes), list(outcomes.values()), color=[AUGMENTED, LOGGED] + ["grey"] * 8)
    right.set(xlabel="steps")
    return figure


def trajectories(phases: Mapping[Phase, Sequence[Episode]], shown: int = 12) -> Any | None:
    """Draw paths relative to the goal in the first two coordinates, logged steps blue and augmented ones red."""
    drawn = {phase: [item for item in episodes if _has_path(item)][:shown] for phase, episodes in phases.items()}
    drawn = {phase: episodes for phase, episodes in drawn.items() if episodes}
    if not drawn:
        return None
    figure, grid = _panels(3.4 * len(drawn) + 0.4, 3.6, ncols=len(drawn), sharex=True, sharey=True)
    for axes, (phase, episodes) in zip(grid, drawn.items(), strict=True):
        draw_steps(axes, episodes, [trajectory(episode)[:, :2] for episode in episodes])
        axes.plot(0, 0, marker="*", color="black", markersize=9)
        axes.set(title=phase.value, xlabel="offset from the goal, axis 1", aspect="equal")
    grid[0].set_ylabel("axis 2")
    return figure


def _has_path(episode: Episode) -> bool:
    return bool(episode.steps) and positions(episode).shape[1] == goal_of(episode).size >= 2


def frame_strip(frames: Frames) -> Any:
    """Put rendered frames side by side, each with its step."""
    figure, panels = _panels(1.6 * len(frames), 1.95, ncols=len(frames))
    for axes, (step, picture) in zip(panels, frames.items(), strict=True):
        axes.imshow(picture)
        axes.set_title(f"step {step}", fontsize=8)
        axes.axis("off")
    return figure
