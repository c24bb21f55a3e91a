"""Plots of the theory: that they show what they are given."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.image import imread

from lift_ros.errors import UserError
from lift_ros.evaluation.shortcut_plots import draw_heatmap, draw_pairs, plot_heatmap, plot_pairs
from lift_ros.shortcuts.theory import candidate_mask, constants_heatmap, theorem_mask


def heatmap() -> np.ndarray:
    actions = np.full((20, 1), -0.05)
    return constants_heatmap(actions, np.linspace(-1, 0, 20), [0, 20], [True], gamma=0.9)


def test_heatmap_shows_only_what_is_known() -> None:
    values = heatmap()
    axes = Figure().add_subplot()
    shown = draw_heatmap(axes, values, "a title").get_array()
    assert shown.shape == (21, 19)
    np.testing.assert_array_equal(np.ma.getmaskarray(shown), ~np.isfinite(values[:21, :19]))
    np.testing.assert_allclose(shown.compressed(), values[np.isfinite(values)])
    assert (axes.get_xlabel(), axes.get_ylabel(), axes.get_title()) == ("start i", "length j − i", "a title")


def test_pairs_show_candidates_and_guarantees() -> None:
    actions, rewards = np.full((10, 1), -0.05), np.linspace(-1, 0, 10)
    taken = candidate_mask(actions, rewards, gamma=0.9, C=0.0, action_radius=0.3)
    sure = theorem_mask(actions, rewards, gamma=0.9, L_f=0.5, L_V=10.0)
    axes = Figure().add_subplot()
    draw_pairs(axes, taken, sure, "pairs")
    shown = np.asarray(axes.get_images()[0].get_array())
    assert shown.shape == (11, 10)
    assert (shown > 0).sum() == taken.sum()
    assert 0 < (shown == 2).sum() == (taken & sure).sum() < taken.sum()


def test_files_are_images(tmp_path: Path) -> None:
    plot_heatmap(tmp_path / "deep" / "heatmap.png", heatmap(), "C")
    plot_pairs(tmp_path / "pairs.png", np.eye(4, 5, 1, dtype=bool), np.zeros((4, 5), dtype=bool))
    for path in (tmp_path / "deep" / "heatmap.png", tmp_path / "pairs.png"):
        pixels = imread(path)
        assert pixels.shape[0] > 300 and pixels.std() > 0.01


def test_nothing_to_show_is_said(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no pair"):
        plot_heatmap(tmp_path / "heatmap.png", np.full((3, 3), np.nan))


def test_masks_of_different_episodes_are_refused() -> None:
    with pytest.raises(UserError, match="same episode"):
        draw_pairs(Figure().add_subplot(), np.zeros((2, 3), dtype=bool), np.zeros((3, 4), dtype=bool))


def test_unknown_endings_and_unwritable_folders_are_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="ending"):
        plot_heatmap(tmp_path / "heatmap.xyz", heatmap())
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="Cannot write"):
        plot_heatmap(tmp_path / "file" / "heatmap.png", heatmap())
