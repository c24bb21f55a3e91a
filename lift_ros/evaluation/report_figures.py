"""The report's figures, each as a PNG inside the page, so that the page stays whole when it is moved."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from lift_ros.collection.records import Episode
from lift_ros.evaluation.figures import AUGMENTED, LOGGED, draw_quartiles, draw_steps, make_figure
from lift_ros.evaluation.paths import goal_of, positions, trajectory
from lift_ros.evaluation.phases import Phase, augmentation_outcomes, distance_quartiles

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


def _tidy(axes: Any) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)


def convergence(phases: Mapping[Phase, Sequence[Episode]], threshold: float, steps: int) -> Any:
    """Draw the median distance over steps with its quartiles, one curve per phase."""
    figure = make_figure(7.5, 4)
    axes = figure.subplots()
    curves = {phase.value: distance_quartiles(episodes, steps) for phase, episodes in phases.items()}
    draw_quartiles(axes, curves, {phase.value: colour for phase, colour in COLOURS.items()}, threshold)
    axes.legend(frameon=False)
    _tidy(axes)
    return figure


def steps_per_episode(phases: Mapping[Phase, Sequence[Episode]]) -> Any:
    """Draw how long each episode took, in the order in which they were made."""
    figure = make_figure(7.5, 3.2)
    axes = figure.subplots()
    offset = 0
    for phase, episodes in phases.items():
        numbers = np.arange(offset, offset + len(episodes))
        lengths = [len(episode.steps) for episode in episodes]
        axes.bar(numbers, lengths, color=COLOURS[phase], width=0.85, label=phase.value)
        offset += len(episodes)
    axes.set(xlabel="episode", ylabel="steps")
    axes.legend(frameon=False)
    _tidy(axes)
    return figure


def augmentations(episodes: Sequence[Episode]) -> Any:
    """Draw the share of augmented steps per episode, and what became of all chances to augment."""
    figure = make_figure(7.5, 3.2)
    left, right = figure.subplots(1, 2, width_ratios=[2, 1])
    shares = [episode.augmentations / max(1, len(episode.steps)) for episode in episodes]
    left.bar(np.arange(len(shares)), shares, color=AUGMENTED, width=0.85)
    left.set(xlabel="episode with an augmentor", ylabel="share of augmented steps", ylim=(0, 1))
    outcomes = augmentation_outcomes(episodes)
    right.barh(list(outcomes), list(outcomes.values()), color=[AUGMENTED, LOGGED] + ["grey"] * 8)
    right.set(xlabel="steps")
    for axes in (left, right):
        _tidy(axes)
    return figure


def trajectories(phases: Mapping[Phase, Sequence[Episode]], shown: int = 12) -> Any | None:
    """Draw paths relative to the goal in the first two coordinates, logged steps blue and augmented ones red."""
    drawn = {phase: [item for item in episodes if _has_path(item)][:shown] for phase, episodes in phases.items()}
    drawn = {phase: episodes for phase, episodes in drawn.items() if episodes}
    if not drawn:
        return None
    figure = make_figure(3.4 * len(drawn) + 0.4, 3.6)
    grid = figure.subplots(1, len(drawn), sharex=True, sharey=True, squeeze=False)[0]
    for axes, (phase, episodes) in zip(grid, drawn.items(), strict=True):
        draw_steps(axes, episodes, [trajectory(episode)[:, :2] for episode in episodes])
        axes.plot(0, 0, marker="*", color="black", markersize=9)
        axes.set(title=phase.value, xlabel="offset from the goal, axis 1", aspect="equal")
        _tidy(axes)
    grid[0].set_ylabel("axis 2")
    return figure


def _has_path(episode: Episode) -> bool:
    return bool(episode.steps) and positions(episode).shape[1] == goal_of(episode).size >= 2


def frame_strip(frames: Sequence[npt.NDArray[np.uint8]], captions: Sequence[str]) -> Any:
    """Put rendered frames side by side, each with its caption."""
    figure = make_figure(1.6 * len(frames), 1.95)
    for axes, frame, caption in zip(figure.subplots(1, len(frames), squeeze=False)[0], frames, captions, strict=True):
        axes.imshow(frame)
        axes.set_title(caption, fontsize=8)
        axes.axis("off")
    return figure
