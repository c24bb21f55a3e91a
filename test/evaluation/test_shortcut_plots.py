"""The plot of shortcuts: that it shows what it is given."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

from lift_ros.errors import UserError
from lift_ros.evaluation.plots import draw_heatmap, make_figure, plot_shortcuts


def heatmap() -> np.ndarray:
    values = np.full((30, 25), np.nan)
    values[2:21, :19] = np.add.outer(np.arange(19.0), np.arange(19.0))
    return values


def test_heatmap_shows_only_what_is_known() -> None:
    figure = make_figure(4, 4)
    axes = figure.add_subplot()
    draw_heatmap(figure, axes, heatmap())
    shown = axes.get_images()[0].get_array()
    assert shown.shape == (21, 19)
    np.testing.assert_array_equal(np.ma.getmaskarray(shown), ~np.isfinite(heatmap()[:21, :19]))
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("start i", "length j − i")


def test_the_file_is_an_image(tmp_path: Path) -> None:
    plot_shortcuts(tmp_path / "deep" / "plot.png", heatmap(), [float("nan"), 1.0, 0.7, 0.2], "a title")
    pixels = imread(tmp_path / "deep" / "plot.png")
    assert pixels.shape[0] > 300 and pixels.std() > 0.01


def test_a_run_without_longer_shortcuts_has_a_plot_too(tmp_path: Path) -> None:
    plot_shortcuts(tmp_path / "plot.png", np.full((3, 3), np.nan), [float("nan"), 1.0])
    assert (tmp_path / "plot.png").exists()


def test_unknown_endings_and_unwritable_folders_are_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="ending"):
        plot_shortcuts(tmp_path / "plot.xyz", heatmap(), [1.0])
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot write"):
        plot_shortcuts(tmp_path / "file" / "plot.png", heatmap(), [1.0])
