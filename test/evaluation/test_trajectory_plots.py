from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from report_samples import assert_inside

from lift_ros.collection.records import Episode, Mode, Outcome, Source, Step
from lift_ros.errors import UserError
from lift_ros.evaluation.convergence import measure_expertness, with_step
from lift_ros.evaluation.paths import distances, find_paths
from lift_ros.evaluation.plots import (
    AUGMENTED,
    EPISODE_LIMIT,
    LOGGED,
    plot_distances,
    plot_expertness,
    plot_trajectories,
    save_figure,
)
from lift_ros.scenario import Units, load_scenario

PNG = b"\x89PNG"


def make_episode(size: int = 2, steps: int = 4, goal: bool = True, positions: bool = True) -> Episode:
    """An episode that goes straight to a goal at (1, …, 1); every second step is the augmentor's."""
    points = np.linspace(0.0, 1.0, steps + 1)[:, None] * np.ones(size)
    nothing = np.empty(0)
    made = [
        Step(
            episode=0,
            index=index,
            time_ns=0,
            observation=points[index] - 1,
            action=points[index + 1] - points[index],
            source=Source.AUGMENTOR if index % 2 else Source.LOGGING_POLICY,
            position=points[index] if positions else nothing,
            reward=-float(np.linalg.norm(points[index + 1] - 1)),
        )
        for index in range(steps)
    ]
    return Episode(
        0,
        0,
        Mode.COLLECT,
        Outcome.REACHED,
        made,
        points[-1] - 1,
        final_position=points[-1] if positions else nothing,
        goal=np.ones(size) if goal else nothing,
    )


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """Collect the figures that are drawn, beside writing them."""
    made: list[Figure] = []

    def keep(figure: Figure, path: str | Path) -> None:
        made.append(figure)
        save_figure(figure, path)

    monkeypatch.setattr("lift_ros.evaluation.plots.save_figure", keep)
    return made


def test_positions_are_shown_relative_to_the_goal() -> None:
    found = find_paths([make_episode()], Units("mm"))
    np.testing.assert_allclose(found.lines[0][[0, -1]], [[-1, -1], [0, 0]])
    assert (found.kind, found.axes, found.relative) == ("offset from the goal", ["axis 1 [mm]", "axis 2 [mm]"], True)


def test_the_goal_is_known_in_hindsight_where_the_episode_reached_it() -> None:
    episode = make_episode(goal=False)
    np.testing.assert_allclose(find_paths([episode]).lines[0][0], [-1, -1])
    aborted = find_paths([replace(episode, outcome=Outcome.ABORTED)])
    np.testing.assert_allclose(aborted.lines[0][0], [0, 0])
    assert (aborted.kind, aborted.relative, aborted.left_out) == ("position", False, 0)


def test_paths_relative_to_the_goal_and_absolute_ones_share_no_axes(tmp_path: Path, drawn: list[Figure]) -> None:
    reached = make_episode(goal=False)
    episodes = [reached, replace(reached, outcome=Outcome.STEP_LIMIT)]
    found = find_paths(episodes)
    assert (len(found.lines), found.relative, found.left_out) == (1, True, 1)
    plot_trajectories(episodes, tmp_path / "plot.png")
    assert "1 without a known goal left out" in drawn[0].get_suptitle()


def test_without_positions_the_observations_are_shown() -> None:
    found = find_paths([make_episode(positions=False)], Units("mm", ["dB", ""]))
    np.testing.assert_allclose(found.lines[0][[0, -1]], [[-1, -1], [0, 0]])
    assert (found.kind, found.axes) == ("observation", ["entry 1 [dB]", "entry 2"])


def test_rewards_that_are_no_distances_are_not_taken_for_them() -> None:
    episode = make_episode(positions=False, goal=False)
    episode.steps[1].reward = 0.5
    assert np.isnan(distances(episode)).all()


def test_distances_from_positions_and_from_rewards_agree() -> None:
    known, unknown = distances(make_episode()), distances(make_episode(positions=False, goal=False))
    np.testing.assert_allclose(known, np.sqrt(2) * np.array([1, 0.75, 0.5, 0.25, 0]))
    assert np.isnan(unknown[0])
    np.testing.assert_allclose(unknown[1:], known[1:])


def test_logged_steps_are_blue_and_augmented_ones_red(tmp_path: Path, drawn: list[Figure]) -> None:
    plot_trajectories([make_episode(steps=5)], tmp_path / "plot.png")
    found = {tuple(lines.get_colors()[0][:3]): len(lines.get_segments()) for lines in drawn[0].axes[0].collections[:2]}
    assert found == {to_rgba(LOGGED)[:3]: 3, to_rgba(AUGMENTED)[:3]: 2}
    assert (tmp_path / "plot.png").read_bytes().startswith(PNG)


@pytest.mark.parametrize(("size", "panels"), [(1, 1), (2, 1), (3, 3), (5, 10), (9, 10)])
def test_more_dimensions_give_pairwise_projections(tmp_path: Path, drawn: list[Figure], size: int, panels: int) -> None:
    plot_trajectories([make_episode(size)], tmp_path / "plot.png")
    assert sum(axes.get_visible() for axes in drawn[0].axes) == panels


def test_distances_are_drawn_over_steps(tmp_path: Path, drawn: list[Figure]) -> None:
    plot_distances([make_episode(steps=4), make_episode(steps=6)], tmp_path / "plot.png")
    axes = drawn[0].axes[0]
    assert axes.get_yscale() == "log"
    assert sum(len(lines.get_segments()) for lines in axes.collections) == 10


def test_of_many_episodes_some_are_drawn_and_the_title_says_so(tmp_path: Path, drawn: list[Figure]) -> None:
    plot_distances([make_episode()] * 200, tmp_path / "plot.png")
    assert f"{EPISODE_LIMIT} of 200 episodes" in drawn[0].get_suptitle()


def test_the_axis_of_distances_ends_below_the_threshold(tmp_path: Path, drawn: list[Figure]) -> None:
    plot_distances([make_episode()], tmp_path / "plot.png", threshold=0.05, unit="mm")
    axes = drawn[0].axes[0]
    assert 0.001 < axes.get_ylim()[0] <= 0.005  # although the last distance is 0
    assert axes.get_ylabel() == "distance to the goal [mm]"


def test_long_titles_and_labels_stay_inside_the_picture(tmp_path: Path, drawn: list[Figure]) -> None:
    plot_trajectories([make_episode()], tmp_path / "plot.png", "/a/very/long/path" * 8, Units("millimetres"))
    assert_inside(drawn[0])


def test_episodes_without_a_step_are_left_out(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no episode with a step"):
        plot_trajectories([make_episode(steps=0)], tmp_path / "plot.png")
    plot_trajectories([make_episode(steps=0), make_episode()], tmp_path / "plot.png")


def test_unknown_distances_are_told(tmp_path: Path) -> None:
    episode = make_episode(positions=False, goal=False)
    for step in episode.steps:
        step.reward = float("nan")
    with pytest.raises(UserError, match="distance"):
        plot_distances([episode], tmp_path / "plot.png")


def test_episodes_of_two_plants_are_not_mixed(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"\[2, 3\]"):
        plot_trajectories([make_episode(2), make_episode(3)], tmp_path / "plot.png")


def test_an_unknown_ending_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="png"):
        plot_trajectories([make_episode()], tmp_path / "plot.doc")


def test_folders_are_made(tmp_path: Path) -> None:
    plot_trajectories([make_episode()], tmp_path / "new" / "folder" / "plot.png")
    assert (tmp_path / "new" / "folder" / "plot.png").exists()


def test_a_smaller_step_takes_more_of_them(tmp_path: Path) -> None:
    results = measure_expertness(load_scenario("po-none-d2"), steps=(0.05, 0.1), episodes=10)
    plot_expertness(tmp_path / "plot.png", results, "a walk")
    assert results[0].mean > 1.5 * results[1].mean
    assert all(result.lower_quartile <= result.upper_quartile and result.reached == 1 for result in results)
    assert (tmp_path / "plot.png").read_bytes().startswith(PNG)


def test_expertness_is_reproducible() -> None:
    scenario = load_scenario("po-rot-d2")
    first, second = (measure_expertness(scenario, (0.1,), episodes=5, seed=3) for _ in range(2))
    assert first == second


def test_a_step_beyond_the_action_radius_is_refused() -> None:
    with pytest.raises(UserError, match="step size 2 must"):
        with_step(load_scenario("po-none-d2"), 2.0)


def test_no_episodes_give_no_curve() -> None:
    with pytest.raises(UserError, match="at least 1 episode"):
        measure_expertness(load_scenario("po-none-d2"), episodes=0)
