from __future__ import annotations

import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml

from lift_ros import scenario as scenario_module
from lift_ros.collection.loop import collect
from lift_ros.collection.records import Outcome
from lift_ros.errors import UserError
from lift_ros.policies.protocol import begin_episode
from lift_ros.policies.sight import look
from lift_ros.positioning import DISTORTIONS
from lift_ros.positioning.pictures import PictureFormat
from lift_ros.positioning.problem import Limits, Problem
from lift_ros.scenario import config_folder, load_scenario, parse_scenario, scenario_names

WITH_PICTURES = {"lens", "light-tunnel", "fetch-reach-pictures", "fetch-reach-two-views"}
WITH_PICTURES |= {"fetch-touch-and-place-pictures"}
EXPECTED = {f"po-{name}-d{dim}" for name in DISTORTIONS for dim in (2, 5)} | {"fetch-reach", "fetch-touch-and-place"}
EXPECTED |= WITH_PICTURES | {"sensors"}

GOOD = """
plant:
  kind: positioning
  distortion: blend
  dim: 2
  action_radius: 0.3
  threshold: 0.02
logging_policy:
  name: coordinate_walk
  arguments:
    step: 0.05
"""


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    return path


def same_limits(first: Limits, second: Limits) -> bool:
    """Whether two plants can do the same; boxes are compared number by number."""
    boxes = [() if limits.workspace is None else limits.workspace for limits in (first, second)]
    same = len(boxes[0]) == len(boxes[1]) and all(map(np.array_equal, *boxes))
    return same and replace(first, workspace=None) == replace(second, workspace=None)


def test_every_distortion_and_every_plant_has_its_scenarios() -> None:
    assert set(scenario_names()) >= EXPECTED


@pytest.mark.parametrize("name", sorted(WITH_PICTURES))
def test_where_there_are_pictures_the_routine_sees_values_and_the_model_the_picture(name: str) -> None:
    scenario = load_scenario(name)
    assert (str(scenario.routine_sight), str(scenario.model_sight)) == ("values", "image")
    preprocessing = scenario.make_preprocessing()
    assert preprocessing is not None and scenario.limits.picture is not None
    assert preprocessing.settings.views * scenario.limits.picture.height == scenario.limits.picture.width


def test_of_sensors_the_routine_sees_the_displacement_and_the_model_the_readings() -> None:
    scenario = load_scenario("sensors")
    axes, size = scenario.action_size, scenario.observation_size
    assert (scenario.routine_sight.entries, scenario.model_sight.entries) == (slice(0, axes), slice(axes, size))


def test_images_to_record_are_for_scenarios_without_pictures() -> None:
    with pytest.raises(UserError, match=r"images of 32 pixels.*64×64 rgb8.*plant.picture_size"):
        load_scenario("lens").make_recorded_problem(32)
    assert load_scenario("sensors").make_recorded_problem(None).limits.picture is None


def test_limits_of_every_scenario_are_known_without_what_draws_or_simulates() -> None:
    program = (
        "import sys; from lift_ros.scenario import load_scenario, scenario_names\n"
        "sizes = {name: load_scenario(name).limits.observation_size for name in scenario_names()}\n"
        "print(sizes['fetch-touch-and-place'], 'mujoco' in sys.modules, 'cv2' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.split() == ["6", "False", "False"]


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_loads_and_fits_together(name: str) -> None:
    scenario = load_scenario(name)
    assert scenario.name == name and scenario.description
    if name.startswith("fetch"):
        pytest.importorskip("mujoco", reason="Fetch needs mujoco and gymnasium-robotics")
    try:
        problem, policy = scenario.make_problem(), scenario.make_logging_policy()
    except UserError as error:
        assert "OpenGL" in str(error)
        pytest.skip(str(error))
    assert isinstance(problem, Problem)
    assert same_limits(scenario.limits, problem.limits)
    begin_episode(policy, 0)
    observed = problem.reset(0)
    assert scenario.limits.picture == (None if observed.image is None else PictureFormat.of(observed.image))
    action = policy.act(look(policy, observed.values, observed.image))
    assert action.shape == (scenario.action_size,)
    assert 0 < np.linalg.norm(action) < scenario.action_radius / 2, "no room for shortcuts"
    problem.close()


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_survives_the_way_through_records_and_processes(name: str) -> None:
    scenario = load_scenario(name)
    assert parse_scenario(yaml.safe_load(yaml.safe_dump(scenario.as_dict())), name, "a record") == scenario
    assert pickle.loads(pickle.dumps(scenario)) == scenario


def test_values_that_work() -> None:
    scenario = load_scenario("po-scale-d5")
    assert scenario.plant.parameters["action_radius"] == 1.0
    assert (scenario.plant.parameters["scale_low"], scenario.plant.parameters["scale_high"]) == (0.3, 1.0)
    assert (scenario.collection.episodes, scenario.training["updates"]) == (200, None)
    scenario = load_scenario("po-sqrt-d5")
    assert (scenario.plant.parameters["step_limit"], scenario.logging_policy.arguments["step"]) == (3000, 0.05)
    scenario = load_scenario("po-blend-d2")
    assert (scenario.collection.p, scenario.collection.augmentation_budget) == (0.6, 20)
    assert scenario.plant.parameters["sigma"] == 0.2 and scenario.plant.parameters["threshold"] == 0.02


def test_a_file_of_ones_own_and_its_defaults(tmp_path: Path) -> None:
    scenario = load_scenario(write(tmp_path, GOOD))
    assert scenario.name == "mine"
    assert scenario.collection.augmentation == "learned" and scenario.training["gamma"] is None
    assert load_scenario(str(tmp_path / "mine.yaml")) == scenario


def test_policies_learn_goal_and_radius_from_the_plant(tmp_path: Path) -> None:
    text = GOOD.replace("  dim: 2\n", "  dim: 2\n  goal: [0.5, -0.5]\n").replace("coordinate_walk", "direct")
    scenario = load_scenario(write(tmp_path, text.replace("    step: 0.05\n", "    action_radius: 0.1\n")))
    assert scenario.logging_policy.arguments == {"action_radius": 0.1, "goal": [0.5, -0.5]}
    policy = scenario.make_logging_policy()
    np.testing.assert_allclose(policy.act(np.array([0.5, 0.5])), [0.0, -0.1])
    np.testing.assert_allclose(scenario.make_policy("direct").act(np.array([0.5, 0.5])), [0.0, -0.3])


def test_numbers_without_dot_are_numbers(tmp_path: Path) -> None:
    scenario = load_scenario(write(tmp_path, GOOD.replace("threshold: 0.02", "threshold: 2e-2")))
    assert scenario.plant.parameters["threshold"] == 0.02


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("action_radius: 0.3", "action_radius: -1", r"plant.action_radius is -1; allowed: a number > 0"),
        ("action_radius: 0.3", "action_radius: .inf", r"plant.action_radius is inf; allowed: a number > 0"),
        ("action_radius: 0.3", "action_radius: wide", r"plant.action_radius is 'wide'; allowed: a number > 0"),
        ("action_radius: 0.3", "action_raduis: 0.3", r"plant: unknown key 'action_raduis'; .*'action_radius'"),
        ("action_radius: 0.3\n", "\n", r"plant.action_radius is missing; allowed: a number > 0"),
        (
            "logging_policy:",
            "assist:\n  window: 2\nlogging_policy:",
            r"assist.window is 2; allowed: a whole number >= 4",
        ),
        ("logging_policy:", "assist:\n  cancel: 2\nlogging_policy:", r"assist.cancel is 2; allowed: a number >= 0 and"),
        ("logging_policy:", "assist:\n  windwo: 8\nlogging_policy:", r"assist: unknown key 'windwo'; .*'window'"),
        ("dim: 2", "dim: 2.5", r"plant.dim is 2.5; allowed: a whole number >= 1"),
        ("dim: 2", "dim: true", r"plant.dim is True; allowed: a whole number >= 1"),
        ("dim: 2", "dim: 2\n  goal: [0, 0, 0]", r"plant: goal must have 2 entries within \[-1, 1\]"),
        ("dim: 2", "dim: 2\n  goal: [0, left]", r"plant.goal is \[0, 'left'\]; allowed: a list"),
        ("blend", "bland", r"plant.distortion is 'bland'; allowed: one of none, blend"),
        ("blend", "scale\n  scale_low: 2.0", r"plant: distortion 'scale' needs 0 < low < high"),
        ("kind: positioning", "kind: robot", r"plant.kind is 'robot'; allowed: one of positioning, fetch_reach"),
        ("kind: positioning\n", "\n", r"plant.kind is missing"),
        ("step: 0.05", "step: 0.5", r"step is 0.5; allowed: at most plant.action_radius, which is 0.3"),
        ("step: 0.05", "stop: 0.05", r"logging_policy.arguments: unknown key 'stop'; did you mean 'step'"),
        ("name: coordinate_walk", "name: coordinatewalk", r"unknown policy 'coordinatewalk'; did you mean"),
        ("name: coordinate_walk", "name: coordinate_walk\n  name: direct", r"line \d+: key 'name' is given twice"),
        ("logging_policy:", "collection:\n  p: 1.5\nlogging_policy:", r"collection.p is 1.5; allowed: .*>= 0 and <= 1"),
        ("logging_policy:", "colection: {}\nlogging_policy:", r"unknown key 'colection'; did you mean 'collection'"),
        ("logging_policy:", "training: [1]\nlogging_policy:", r"training is \[1\]; allowed: a mapping"),
        ("logging_policy:", "training: {gamma: 0}\nlogging_policy:", r"gamma is 0; allowed: a number > 0 and <= 1"),
        (
            "logging_policy:",
            "collection: {augmentation: noise}\nlogging_policy:",
            r"collection.augmentation is 'noise'; allowed: one of learned, gaussian_noise",
        ),
        ("plant:", "plant: [", r"is not valid YAML"),
        (GOOD, "", r"plant is missing; allowed: a mapping"),
        (GOOD, "- 1", r"allowed: a mapping with keys description, plant"),
    ],
)
def test_errors_name_file_key_value_and_range(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = write(tmp_path, GOOD.replace(old, new, 1))
    with pytest.raises(UserError, match=message) as caught:
        load_scenario(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_files_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"unknown scenario 'po-blend-d3'; did you mean 'po-blend-d[25]'"):
        load_scenario("po-blend-d3")
    with pytest.raises(UserError, match=r"none.yaml: no such scenario file"):
        load_scenario(tmp_path / "none.yaml")
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UserError, match=r"binary.yaml: is not UTF-8"):
        load_scenario(tmp_path / "binary.yaml")


def test_positioning_has_no_camera() -> None:
    with pytest.raises(UserError, match="render_size"):
        load_scenario("po-blend-d2").make_problem(render_size=64)


def test_finds_the_installed_share(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "lib" / "python3" / "site-packages" / "lift_ros"
    monkeypatch.setattr(scenario_module, "__file__", str(package / "scenario.py"))
    monkeypatch.setenv("AMENT_PREFIX_PATH", f"{tmp_path / 'nothing'}:{tmp_path / 'overlay'}")
    with pytest.raises(UserError, match="no scenario files"):
        config_folder()
    for prefix in (tmp_path / "overlay", tmp_path):
        share = prefix / "share" / "lift_ros" / "config"
        share.mkdir(parents=True)
        (share / "po-mine.yaml").write_text(GOOD)
        (share / "nodes.yaml").write_text("/**:\n  ros__parameters: {}\n")
        assert config_folder() == share
    assert scenario_names() == ["po-mine"]
    assert load_scenario("po-mine").name == "po-mine"


def test_the_secant_policy_can_be_a_scenarios_routine() -> None:
    text = GOOD.replace("name: coordinate_walk\n  arguments:\n    step: 0.05", "name: secant")
    scenario = parse_scenario(yaml.safe_load(text), "own", "own.yaml")
    assert scenario.logging_policy.arguments == {"action_radius": 0.3, "goal": None, "gain": 1.0}
    (episode,) = collect(scenario, episodes=1, seed=0, progress=False)
    assert episode.outcome is Outcome.REACHED and len(episode.steps) < 20


def test_units_are_names_that_change_nothing_else() -> None:
    data = yaml.safe_load(GOOD)
    named = parse_scenario({**data, "units": {"length": "mm", "observations": ["V", ""]}}, "own", "own.yaml")
    assert (named.units.length, named.units.observations) == ("mm", ["V", ""])
    assert parse_scenario(named.as_dict(), "own", "facts").units == named.units
    plain = parse_scenario(data, "own", "own.yaml")
    assert (plain.units.length, plain.units.observations) == ("", [])
    assert plain == named  # runs of both are runs of one scenario


@pytest.mark.parametrize(
    ("units", "message"),
    [
        ({"length": 3}, "units.length is 3; allowed: text"),
        ({"lenght": "mm"}, "length"),
        ({"observations": ["V"]}, "units.observations names 1 units; allowed: one for each of the 2"),
        ({"observations": "V"}, "units.observations is 'V'; allowed: a list of texts"),
    ],
)
def test_wrong_units_are_refused(units: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        parse_scenario({**yaml.safe_load(GOOD), "units": units}, "own", "own.yaml")


def test_the_arm_moves_in_metres() -> None:
    assert {load_scenario(name).units.length for name in ("fetch-reach", "fetch-touch-and-place")} == {"m"}
