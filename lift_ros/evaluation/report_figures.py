"""The report's figures, each as a PNG inside the page, so that the page stays whole when it is moved."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from lift_ros.collection.records import Episode, Source
from lift_ros.evaluation.phases import Phase, augmentation_outcomes, distance_quartiles

COLOURS = {Phase.LOGGING_POLICY: "#2563eb", Phase.LIFT_COLLECTION: "#d97706", Phase.LEARNED_POLICY: "#16a34a"}
LOGGED_COLOUR, AUGMENTED_COLOUR = "#2563eb", "#dc2626"


def data_uri(figure: Figure) -> str:
    """Render a figure as a PNG data URI."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    return png_uri(buffer.getvalue())


def png_uri(png: bytes) -> str:
    """Return PNG bytes as a data URI."""
    return "data:image/png;base64," + base64.b64encode(png).decode()


def _figure(width: float, height: float) -> Figure:
    figure = Figure(figsize=(width, height), dpi=140, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _tidy(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)


def convergence(phases: Mapping[Phase, Sequence[Episode]], threshold: float, steps: int) -> Figure:
    """Draw the median distance over steps with its quartiles, one curve per phase."""
    figure = _figure(7.5, 4)
    axes = figure.subplots()
    for phase, episodes in phases.items():
        low, middle, high = distance_quartiles(episodes, steps)
        axes.plot(np.arange(middle.size), middle, color=COLOURS[phase], label=phase.value)
        axes.fill_between(np.arange(middle.size), low, high, color=COLOURS[phase], alpha=0.15, linewidth=0)
    axes.axhline(threshold, color="grey", linestyle=":", linewidth=1, label=f"threshold {threshold:g}")
    axes.set(xlabel="step", ylabel="distance to the goal", yscale="log")
    axes.legend(frameon=False)
    _tidy(axes)
    return figure


def steps_per_episode(phases: Mapping[Phase, Sequence[Episode]]) -> Figure:
    """Draw how long each episode took, in the order in which they were made."""
    figure = _figure(7.5, 3.2)
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


def augmentations(episodes: Sequence[Episode]) -> Figure:
    """Draw the share of augmented steps per episode, and what became of all chances to augment."""
    figure = _figure(7.5, 3.2)
    left, right = figure.subplots(1, 2, width_ratios=[2, 1])
    shares = [episode.augmentations / max(1, len(episode.steps)) for episode in episodes]
    left.bar(np.arange(len(shares)), shares, color=AUGMENTED_COLOUR, width=0.85)
    left.set(xlabel="episode with an augmentor", ylabel="share of augmented steps", ylim=(0, 1))
    outcomes = augmentation_outcomes(episodes)
    right.barh(list(outcomes), list(outcomes.values()), color=[AUGMENTED_COLOUR, LOGGED_COLOUR] + ["grey"] * 8)
    right.set(xlabel="steps")
    for axes in (left, right):
        _tidy(axes)
    return figure


def trajectories(phases: Mapping[Phase, Sequence[Episode]], shown: int = 12) -> Figure | None:
    """Draw paths relative to the goal in the first two coordinates, logged steps blue and augmented ones red."""
    drawn = {phase: [item for item in episodes if _has_path(item)][:shown] for phase, episodes in phases.items()}
    drawn = {phase: episodes for phase, episodes in drawn.items() if episodes}
    if not drawn:
        return None
    figure = _figure(3.4 * len(drawn) + 0.4, 3.6)
    grid = figure.subplots(1, len(drawn), sharex=True, sharey=True, squeeze=False)[0]
    for axes, (phase, episodes) in zip(grid, drawn.items(), strict=True):
        for episode in episodes:
            _draw_path(axes, episode)
        axes.plot(0, 0, marker="*", color="black", markersize=9)
        axes.set(title=phase.value, xlabel="offset from the goal, axis 1", aspect="equal")
        _tidy(axes)
    grid[0].set_ylabel("axis 2")
    return figure


def _has_path(episode: Episode) -> bool:
    size = episode.goal.size
    return size >= 2 and episode.final_position.size == size and all(s.position.size == size for s in episode.steps)


def _draw_path(axes: Axes, episode: Episode) -> None:
    path = np.stack([*(step.position for step in episode.steps), episode.final_position]) - episode.goal
    for source, colour in ((Source.LOGGING_POLICY, LOGGED_COLOUR), (Source.AUGMENTOR, AUGMENTED_COLOUR)):
        chosen = [index for index, step in enumerate(episode.steps) if step.source == source]
        xs = np.full((len(chosen), 3), np.nan)
        ys = np.full((len(chosen), 3), np.nan)
        for row, index in enumerate(chosen):
            xs[row, :2], ys[row, :2] = path[index : index + 2, 0], path[index : index + 2, 1]
        axes.plot(xs.ravel(), ys.ravel(), color=colour, linewidth=1, alpha=0.8, marker=".", markersize=2)


def frame_strip(frames: Sequence[npt.NDArray[np.uint8]], captions: Sequence[str]) -> Figure:
    """Put rendered frames side by side, each with its caption."""
    figure = _figure(1.6 * len(frames), 1.95)
    for axes, frame, caption in zip(figure.subplots(1, len(frames), squeeze=False)[0], frames, captions, strict=True):
        axes.imshow(frame)
        axes.set_title(caption, fontsize=8)
        axes.axis("off")
    return figure
