from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lift_ros.errors import UserError
from lift_ros.policies.encoder import DARK, EncoderPlan, PictureEncoder, grid_cells, places

PLAN = EncoderPlan(16, 12, 1, 1, (1,), (1,), (1,), 0)


def identity() -> PictureEncoder:
    return PictureEncoder(PLAN, [(np.full((1, 1, 1, 1), 40.0, np.float32), np.zeros(1, np.float32))], [])


def spot(row: int, column: int, size: int = 1) -> np.ndarray:
    picture = np.zeros((1, 16, 12, 1), np.float32)
    picture[0, row : row + size, column : column + size] = 1.0
    return picture


def test_features_say_where_a_map_is_bright() -> None:
    column, row, *_ = identity().features(spot(3, 9))[0].tolist()
    assert column == pytest.approx(-1 + 2 * 9 / 11, abs=1e-3) and row == pytest.approx(-1 + 2 * 3 / 15, abs=1e-3)


def test_features_say_how_much_and_how_widely() -> None:
    small, large = (identity().features(spot(4, 4, size))[0] for size in (1, 4))
    assert large[2] > 3 * small[2] + 0.1
    mean = [np.exp(features[3]) - DARK for features in (small, large)]
    assert mean[1] == pytest.approx(16 * mean[0], rel=1e-3)


def test_a_grid_tells_brightness_by_place() -> None:
    plan = replace(PLAN, grid=2)
    encoder = PictureEncoder(plan, [(np.ones((1, 1, 1, 1), np.float32), np.zeros(1, np.float32))], [])
    features = encoder.features(spot(12, 1))[0]
    assert len(features) == plan.features and int(np.argmax(features[4:])) == 2  # below, on the left


def test_cells_cover_all_pixels_and_are_means() -> None:
    cells = grid_cells(5, 7, 3)
    assert cells.shape == (9, 35) and (cells.sum(axis=0) > 0).all()
    assert cells.sum(axis=1) == pytest.approx(1.0)


def test_places_reach_from_border_to_border() -> None:
    assert places(2, 3).tolist() == [[-1.0, 0.0, 1.0, -1.0, 0.0, 1.0], [-1.0, -1.0, -1.0, 1.0, 1.0, 1.0]]


def test_views_go_through_the_same_layers_one_after_the_other() -> None:
    plan = replace(PLAN, width=6, views=2)
    layers = [(np.full((1, 1, 1, 1), 40.0, np.float32), np.zeros(1, np.float32))]
    left, right = np.random.default_rng(0).random((2, 1, 16, 6, 1), dtype=np.float32)
    both = PictureEncoder(plan, layers, []).features(np.concatenate([left, right], axis=2))[0]
    one = PictureEncoder(replace(plan, views=1), layers, [])
    assert both.tolist() == [*one.features(left)[0].tolist(), *one.features(right)[0].tolist()]


def test_a_plan_survives_its_description() -> None:
    plan = EncoderPlan(64, 64, 3, 2, (16, 32), (5, 3), (2, 2), 4)
    assert EncoderPlan.parse(plan.as_dict()) == plan


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"kernels": (2,)}, "odd numbers"),
        ({"strides": (9,)}, "from 1 to 4"),
        ({"maps": (4, 4)}, "one per layer"),
        ({"grid": 13}, "at most the side of the last maps"),
        ({"kernels": (15,), "flat": True, "width": 8}, "do not fit"),
    ],
)
def test_sizes_that_cannot_be_are_refused(change: dict[str, object], words: str) -> None:
    with pytest.raises(UserError, match=words):
        replace(PLAN, **change)


def test_a_readout_is_a_dense_network_on_the_features() -> None:
    plan = replace(PLAN, readout=(2, 1))
    layers = [(np.full((1, 1, 1, 1), 40.0, np.float32), np.zeros(1, np.float32))]
    first = (np.array([[1, 0, 0, 0], [-1, 0, 0, 0]], np.float32), np.zeros(2, np.float32))
    second = (np.array([[1, 1]], np.float32), np.ones(1, np.float32))
    read = PictureEncoder(plan, layers, [first, second]).read(np.array([[-3.0, 5, 5, 5]], np.float32))
    assert plan.outputs == 1 and read.tolist() == [[4.0]]
