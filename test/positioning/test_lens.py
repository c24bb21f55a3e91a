from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lift_ros.errors import UserError
from lift_ros.positioning import lens as lens_module
from lift_ros.positioning.distortions import make_distortion
from lift_ros.positioning.dynamics import Beginning, Dynamics
from lift_ros.positioning.lens import AXES, FastLens, draw_lens
from lift_ros.positioning.pictured import PicturedPositioning
from lift_ros.positioning.plants import PLANTS
from lift_ros.positioning.problem import Problem
from lift_ros.positioning.simulated import SimulatedPositioning
from lift_ros.scenario import load_scenario

pytest.importorskip("cv2", reason="the lens needs OpenCV")

START = Beginning(np.zeros(5), np.zeros(5), np.empty(0))
DISPLACEMENTS = np.random.default_rng(0).uniform(-2, 2, (9, 5))
needs_relign = pytest.mark.skipif(importlib.util.find_spec("relign") is None, reason="relign is not installed")


def parameters(**changes: Any) -> dict[str, Any]:
    given = {name: key.default for name, key in PLANTS["lens"].keys.items()}
    return given | changes


def build(**changes: Any) -> Problem:
    return PLANTS["lens"].build(parameters(**changes), None)


def quiet(size: int = 64, lens_errors: float = 0.0) -> FastLens:
    lens = FastLens(size, lens_errors, noise=0.0)
    lens.begin(0, START)
    return lens


def at(lens: FastLens, **axes: float) -> np.ndarray:
    """Return the picture at a displacement along named axes."""
    return lens.picture(np.array([axes.get(name, 0.0) for name in AXES]), 0).astype(float)


def middle(picture: np.ndarray) -> np.ndarray:
    """Return where the light is, as (x, y) in pixels."""
    light = picture.mean(axis=2) - picture.min()
    rows, columns = np.indices(light.shape)
    return np.array([(columns * light).sum(), (rows * light).sum()]) / light.sum()


def sharpness(picture: np.ndarray) -> np.ndarray:
    """Return how sharp each colour is."""
    return np.abs(np.diff(picture, axis=0)).mean(axis=(0, 1)) + np.abs(np.diff(picture, axis=1)).mean(axis=(0, 1))


def test_it_is_a_problem_that_moves_like_the_plain_one_and_sends_pictures() -> None:
    problem = build(distortion="blend")
    plain = SimulatedPositioning(Dynamics(make_distortion("blend", 5), 0.5, 0.1, 1000, "displacement"))
    assert isinstance(problem, Problem)
    assert problem.limits.picture is not None and str(problem.limits.picture) == "64×64 rgb8"
    seen, expected = problem.reset(4), plain.reset(4)
    for _ in range(5):
        assert np.array_equal(seen.values, expected.values) and np.array_equal(seen.goal, expected.goal)
        assert np.array_equal(seen.values, seen.position - seen.goal)
        assert seen.image is not None and seen.image.shape == (64, 64, 3) and seen.image.dtype == np.uint8
        seen, expected = problem.step(np.full(5, 0.1)), plain.step(np.full(5, 0.1))
    assert seen.reward == expected.reward


def test_the_same_seed_gives_the_same_pictures_bit_for_bit() -> None:
    first, second = build(), build()
    second.reset(8)
    pairs = [(first.reset(7), second.reset(7))] + [(first.step(a), second.step(a)) for a in DISPLACEMENTS[:, ::-1]]
    assert all(np.array_equal(a.image, b.image) for a, b in pairs)
    assert not np.array_equal(first.reset(9).image, first.reset(7).image)


def test_many_pictures_at_once_are_those_one_at_a_time() -> None:
    lens = FastLens()
    seeds, steps = list(range(9)), list(range(9, 18))
    together = lens.pictures(DISPLACEMENTS, seeds, steps)
    for index, displacement in enumerate(DISPLACEMENTS):
        lens.begin(seeds[index], START)
        assert np.array_equal(together[index], lens.picture(displacement, steps[index]))


def test_more_pictures_than_fit_at_once_are_drawn_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = FastLens().pictures(DISPLACEMENTS, [1] * 9, [0] * 9)
    monkeypatch.setattr(lens_module, "_ROWS", 128)
    assert np.array_equal(FastLens().pictures(DISPLACEMENTS, [1] * 9, [0] * 9), whole)


def test_the_picture_shows_the_displacement_and_not_the_position() -> None:
    lens = FastLens(noise=0.0)
    goal = np.full(5, 0.3)
    lens.begin(0, Beginning(np.zeros(5), goal, np.empty(0)))
    moved = lens.picture(goal + 0.2, 0)
    lens.begin(0, START)
    assert np.abs(moved.astype(int) - lens.picture(np.full(5, 0.2), 0)).max() <= 1


def test_tx_and_ty_shift_the_star_by_nine_pixels() -> None:
    lens = quiet()
    centre = middle(at(lens))
    assert middle(at(lens, Tx=1.0)) - centre == pytest.approx([9, 0], abs=0.3)
    assert middle(at(lens, Ty=-1.0)) - centre == pytest.approx([0, -9], abs=0.3)


def test_tilts_shift_a_little_so_that_they_resemble_translations() -> None:
    lens = quiet()
    centre = middle(at(lens))
    assert 1 < (middle(at(lens, Ry=1.0)) - centre)[0] < 5
    assert 1 < (middle(at(lens, Rx=1.0)) - centre)[1] < 5


def test_the_star_stays_in_the_frame_at_the_largest_displacement() -> None:
    picture = at(quiet(), Tx=2.0, Ty=-2.0)
    assert (np.array([46, 10]) < middle(picture) + 4).all() and picture.max() > 180


def test_the_optimum_is_the_sharpest_place_along_every_axis_but_the_translations() -> None:
    lens = quiet()
    best = sharpness(at(lens)).sum()
    for axis in ("Tz", "Rx", "Ry"):
        for value in (-0.6, 0.6):
            assert sharpness(at(lens, **{axis: value})).sum() < best, (axis, value)


def test_colours_tell_on_which_side_of_the_focus_one_is() -> None:
    lens = quiet()
    above, below = sharpness(at(lens, Tz=0.3)), sharpness(at(lens, Tz=-0.3))
    assert above[0] > above[1] > above[2]
    assert below[0] < below[1] < below[2]


def test_a_tilt_blurs_one_side_more_than_the_other_once_out_of_focus() -> None:
    picture = at(quiet(), Tz=0.5, Rx=1.0)
    upper, lower = sharpness(picture[:32]).sum(), sharpness(picture[32:]).sum()
    assert upper > 1.3 * lower


def test_no_two_lenses_are_alike_but_their_colours_agree_on_the_focus() -> None:
    first, second = draw_lens(1, 1.0), draw_lens(2, 1.0)
    assert not np.array_equal(first, second)
    assert first[:3].sum() == pytest.approx(0, abs=1e-12)
    assert not draw_lens(1, 0.0).any()
    assert not np.array_equal(FastLens(noise=0.0).pictures(DISPLACEMENTS[:1] * 0, [1], [0]), at(quiet())[None])


def test_noise_has_the_deviation_it_is_said_to_have() -> None:
    lens = FastLens(lens_errors=0.0, noise=0.02)
    lens.begin(0, START)
    difference = lens.picture(np.zeros(5), 0).astype(float) - lens.picture(np.zeros(5), 1)
    assert difference.std() == pytest.approx(255 * 0.02 * np.sqrt(2), rel=0.05)


def test_every_axis_is_identifiable_within_the_threshold() -> None:
    """A ridge regression on pictures of other lenses tells each axis near the optimum well within θ."""
    lens, rng = FastLens(32), np.random.default_rng(0)
    displacements = rng.uniform(-0.2, 0.2, (700, 5))
    pictures = lens.pictures(displacements, range(700), [0] * 700).reshape(700, -1) / 255.0
    pictures -= pictures[:600].mean(axis=0)
    known, fresh = pictures[:600], pictures[600:]
    weights = np.linalg.solve(known @ known.T + np.eye(600), displacements[:600])
    errors = np.sqrt(((fresh @ known.T @ weights - displacements[600:]) ** 2).mean(axis=0))
    assert (errors < 0.06).all(), dict(zip(AXES, errors, strict=True))


def test_other_sizes_show_the_same_scene() -> None:
    small, large = (at(quiet(size), Tx=1.0, Tz=0.5) for size in (32, 64))
    halved = large.reshape(32, 2, 32, 2, 3).mean(axis=(1, 3))
    assert np.abs(halved - small).mean() < 4


def test_limits_are_known_without_drawing() -> None:
    limits = PLANTS["lens"].limits(parameters(picture_size=48, renderer="relign"))
    assert str(limits.picture) == "48×48 mono8"
    assert str(PLANTS["lens"].limits(parameters()).picture) == "64×64 rgb8"


def test_another_size_than_the_scenarios_is_refused_with_the_remedy() -> None:
    with pytest.raises(UserError, match=r"lens.*picture_size"):
        load_scenario("lens").make_problem(render_size=32)


def test_without_opencv_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "cv2", None)
    with pytest.raises(UserError, match="pip install opencv-python-headless"):
        FastLens()


@pytest.mark.skipif(importlib.util.find_spec("relign") is not None, reason="relign is installed")
def test_without_relign_the_remedy_is_named() -> None:
    with pytest.raises(UserError, match=r"relign.*lift_ros\[optics\].*renderer: fast"):
        build(renderer="relign")


@needs_relign
@pytest.mark.parametrize("spec", ["l2", "od"])
def test_relign_draws_the_same_picture_for_the_same_position(spec: str, tmp_path: Path) -> None:
    given = {"renderer": "relign", "spec": spec, "samples": 1, "picture_size": 16, "cache": str(tmp_path)}
    problem = build(**given)
    assert isinstance(problem, PicturedPositioning)
    first = problem.reset(3)
    files = list(tmp_path.rglob("*.npy"))
    assert len(files) == 1 and first.image is not None
    assert first.image.shape == (16, 16) and first.image.dtype == np.uint8
    assert np.array_equal(build(**given).reset(3).image, first.image)
    assert list(tmp_path.rglob("*.npy")) == files
    assert np.array_equal(build(**given | {"cache": None}).reset(3).image, first.image)


@needs_relign
def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"plant.cache.*file"):
        build(renderer="relign", samples=1, picture_size=16, cache=str(tmp_path / "file"))
