"""The table of nodes: what is started, with which parameters, and what is refused before anything starts."""

from __future__ import annotations

import ast
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from live_graph import write_model

from lift_ros.bags import RunWriter
from lift_ros.errors import UserError
from lift_ros.graph.parameters import PARAMETERS, Value, find
from lift_ros.graph.run import node_command, process_specs
from lift_ros.graph.table import GraphOptions, NodeEntry, graph_nodes
from lift_ros.scenario import DEFAULT_ASSIST, load_scenario

ROOT = Path(__file__).parents[2]


def rows(**options: object) -> dict[str, NodeEntry]:
    given = GraphOptions(**{"scenario": "po-blend-d2", "run": Path("/tmp/run"), **options})  # type: ignore[arg-type]
    return {row.executable: row for row in graph_nodes(given)}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A model for po-blend-d2."""
    write_model(tmp_path / "model", 2, 2, 0.3)
    return tmp_path / "model"


def test_with_security_every_node_has_its_enclave(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("ROS_SECURITY_ENABLE", raising=False)
    assert "--enclave" not in node_command("arbiter", {}, "lens", tmp_path)
    monkeypatch.setenv("ROS_SECURITY_ENABLE", "true")
    assert node_command("arbiter", {}, "lens", tmp_path)[-2:] == ["--enclave", "/lens/arbiter"]


def test_collecting_starts_arbiter_first_and_recorder_last() -> None:
    expected = ["arbiter", "logging_policy", "augmentor", "positioning_simulator", "trainer", "recorder"]
    assert list(rows()) == expected


def test_no_augmentor_where_nobody_would_ask_it(model: Path) -> None:
    assert "augmentor" not in rows(p=0.0)
    assert "augmentor" in rows(p=0.0, model=model)
    assert "augmentor" in rows(p=0.0, train_after=3)
    assert "augmentor" in rows(p=0.0, mode="shadow", model=model)
    assert "augmentor" in rows(p=0.0, parameters={"augmentor": {"delay": 0.1}})


@pytest.mark.parametrize(("wish", "number"), [(None, 50), (7, 7)])
def test_a_trainer_is_started_as_the_scenario_or_the_user_says_and_waited_for(wish: int | None, number: int) -> None:
    table = rows(train_after=wish)
    assert table["trainer"].parameters["train_after"] == number
    assert table["arbiter"].parameters["model_from"] == number


@pytest.mark.parametrize("wish", [{"train_after": 0}, {"p": 0.0}, {"episodes": 50}])
def test_no_trainer_where_no_model_would_act(wish: dict[str, object]) -> None:
    assert "trainer" not in rows(**wish)


def test_a_given_model_is_trained_anew_only_on_request(model: Path) -> None:
    assert "trainer" not in rows(model=model)
    assert "trainer" in rows(model=model, train_after=5)
    assert rows(model=model)["arbiter"].parameters["model_from"] == 0


@pytest.mark.parametrize("name", ["gaussian_noise", "random_scaling", "uniform"])
def test_a_random_augmentation_is_there_from_the_first_move(name: str) -> None:
    table = rows(augmentation=name)
    assert table["augmentor"].parameters["policy"] == name
    assert table["arbiter"].parameters["model_from"] == 0
    assert "trainer" not in table


def test_a_random_augmentation_may_be_set_by_hand() -> None:
    table = rows(parameters={"augmentor": {"policy": "uniform"}})
    assert table["arbiter"].parameters["model_from"] == 0
    assert "trainer" not in table


def test_the_uncertainty_model_is_fitted_to_the_run_itself_or_to_runs_that_are_named(tmp_path: Path) -> None:
    own = rows(augmentation="uncertainty")
    assert (own["augmentor"].parameters["data"], own["augmentor"].parameters["data_episodes"]) == ("/tmp/run", 50)
    assert own["arbiter"].parameters["model_from"] == 50
    runs = [tmp_path / "a", tmp_path / "b"]
    for run in runs:
        RunWriter(run, {}).close()
    named = rows(augmentation="uncertainty", data=runs)
    assert named["augmentor"].parameters["data"] == f"{runs[0]}:{runs[1]}"
    assert named["augmentor"].parameters["data_episodes"] == 0
    assert named["arbiter"].parameters["model_from"] == 0


def test_the_scenario_names_the_augmentation(tmp_path: Path) -> None:
    scenario = tmp_path / "mine.yaml"
    text = (ROOT / "config" / "po-blend-d2.yaml").read_text()
    scenario.write_text(text.replace("  p: 0.6", "  p: 0.6\n  augmentation: uniform"))
    assert rows(scenario=str(scenario))["augmentor"].parameters["policy"] == "uniform"
    assert "policy" not in rows(scenario=str(scenario), augmentation="learned")["augmentor"].parameters


def test_a_run_of_another_scenario_is_not_gone_on_with(tmp_path: Path) -> None:
    RunWriter(tmp_path / "run", {"scenario": "po-rot-d2"}).close()
    with pytest.raises(UserError, match="'po-rot-d2', not 'po-blend-d2'"):
        rows(run=tmp_path / "run")


def test_waiting_for_the_model_can_be_turned_off() -> None:
    assert "model_from" not in rows(train_after=7, wait_for_model=False)["arbiter"].parameters


def test_evaluation_needs_no_routine(model: Path) -> None:
    table = rows(mode="evaluate", model=model)
    assert "logging_policy" not in table
    assert table["augmentor"].parameters["model"] == str(model)


def test_assist_tells_arbiter_and_augmentor_when_it_stalls(model: Path) -> None:
    by_hand: dict[str, dict[str, Value]] = {"arbiter": {"assist_budget": 7}, "augmentor": {"assist_coverage": False}}
    table = rows(mode="assist", model=model, parameters=by_hand)
    arbiter, augmentor = table["arbiter"].parameters, table["augmentor"].parameters
    assert (arbiter["mode"], arbiter["model_from"], arbiter["assist_budget"]) == ("assist", 0, 7)
    assert arbiter["assist_window"] == DEFAULT_ASSIST.window
    assert augmentor["assist_coverage"] is False
    assert "logging_policy" in table and "trainer" not in table
    assert json.loads(str(table["recorder"].parameters["facts"]))["assist"]["budget"] == 7
    for executable, row in table.items():
        for name, value in row.parameters.items():
            parameter = find(PARAMETERS[executable], name)
            assert parameter is not None
            parameter.check(value)


def test_other_modes_say_nothing_of_assist(model: Path) -> None:
    table = rows(model=model)
    assert not [name for row in table.values() for name in row.parameters if name.startswith("assist")]


def test_hardware_brings_its_own_plant_and_keeps_tight_deadlines() -> None:
    table = rows(plant="hardware")
    assert "positioning_simulator" not in table
    assert "plant_deadline" not in table["arbiter"].parameters


def test_a_rig_with_drivers_waits_for_policies_and_for_its_longest_move() -> None:
    arbiter = rows(scenario="micromanager-beads")["arbiter"].parameters
    rig = load_scenario("micromanager-beads").make_rig()
    assert arbiter["plant_deadline"] == rig.patience
    assert 0 < arbiter["augmentor_deadline"] < arbiter["logging_policy_deadline"] < rig.patience


@pytest.mark.parametrize("name", ["fetch-reach", "fetch-touch-and-place-pictures"])
def test_fetch_has_a_simulator_of_its_own(name: str) -> None:
    assert "fetch_simulator" in rows(scenario=name)


@pytest.mark.parametrize("name", ["lens", "light-tunnel", "sensors"])
def test_plants_on_paper_share_a_simulator(name: str) -> None:
    assert "positioning_simulator" in rows(scenario=name)


def test_only_the_arbiter_ends_the_graph() -> None:
    assert [name for name, row in rows(train_after=3).items() if row.ends_graph] == ["arbiter"]


def test_the_scenario_decides_what_the_user_leaves_open() -> None:
    arbiter = rows()["arbiter"].parameters
    assert (arbiter["p"], arbiter["budget"], arbiter["episodes"]) == (0.6, 20, 100)


@pytest.mark.parametrize("executable", ["arbiter", "logging_policy", "augmentor", "positioning_simulator", "trainer"])
def test_every_parameter_of_the_table_exists_and_has_its_type(executable: str) -> None:
    for name, value in rows(train_after=3)[executable].parameters.items():
        parameter = find(PARAMETERS[executable], name)
        assert parameter is not None
        parameter.check(value)


def test_own_parameters_win() -> None:
    table = rows(parameters={"augmentor": {"delay": 0.5}, "arbiter": {"budget": 3}})
    assert table["augmentor"].parameters["delay"] == 0.5
    assert table["arbiter"].parameters["budget"] == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"plant": "robot"}, "plant is 'robot'; allowed: simulator, or hardware"),
        ({"mode": "evaluate"}, "needs a model"),
        ({"mode": "watch"}, "mode is 'watch'; allowed: collect, shadow, evaluate, assist"),
        ({"augmentation": "noise"}, "augmentation is 'noise'; allowed: learned, gaussian_noise"),
        ({"model": Path("/nowhere/model")}, "there is no model file /nowhere/model"),
        ({"parameters": {"arbiter": {"speed": 1}}}, "arbiter has no parameter speed"),
        ({"parameters": {"arbiter": {"p": 1.5}}}, "parameter p is 1.5"),
        ({"scenario": "po-blend-d3"}, "po-blend-d3"),
        ({"mode": "shadow"}, "mode shadow needs a model"),
        ({"namespace": "9lives"}, "namespace is '9lives'; allowed: letters"),
        ({"parameters": {"augmentor": {"model": "/nowhere/model"}}}, "there is no model file /nowhere/model"),
    ],
)
def test_bad_wishes_are_refused_before_anything_starts(options: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        rows(**options)


def test_a_model_that_does_not_fit_the_plant_is_refused_before_anything_starts(tmp_path: Path) -> None:
    write_model(tmp_path / "model", 2, 2, 0.5)
    with pytest.raises(UserError, match=r"makes steps up to 0.5, but po-blend-d2 allows 0.3"):
        rows(model=tmp_path / "model")


def test_a_routine_of_a_workspace_that_is_not_sourced_is_refused_before_anything_starts(tmp_path: Path) -> None:
    scenario = tmp_path / "rig.yaml"
    scenario.write_text(
        "plant: {kind: hardware, observation_size: 2, action_size: 2, action_radius: 0.4, threshold: 0.02}\n"
        "logging_policy: {name: a_package_of_nobody.routine:search}\n"
    )
    rig: dict[str, Any] = {"scenario": str(scenario), "plant": "hardware", "p": 0.0}
    with pytest.raises(UserError, match=r"no module 'a_package_of_nobody' in this terminal: source the workspace"):
        rows(**rig)
    by_hand = {"logging_policy": {"policy": "coordinate_walk"}}
    assert "logging_policy" in rows(**rig, parameters=by_hand)


@pytest.mark.parametrize("mode", ["collect", "shadow", "evaluate", "assist"])
def test_a_model_of_another_size_is_refused_in_every_mode(tmp_path: Path, mode: str) -> None:
    write_model(tmp_path / "model", 5, 5, 0.3)
    message = "observations of size 5 to actions of size 5, but po-blend-d2 has 2 and 2"
    with pytest.raises(UserError, match=message):
        rows(mode=mode, model=tmp_path / "model")
    with pytest.raises(UserError, match=message):
        rows(mode=mode, parameters={"augmentor": {"model": str(tmp_path / "model")}})


def test_a_shadow_may_be_trained_on_the_way(model: Path) -> None:
    assert "trainer" in rows(mode="shadow", train_after=7)
    assert "trainer" not in rows(mode="shadow", model=model)


def test_a_logging_policy_that_cannot_work_with_the_plants_size_is_refused(tmp_path: Path) -> None:
    scenario = tmp_path / "mine.yaml"
    scenario.write_text(
        "plant: {kind: hardware, observation_size: 3, action_size: 2, action_radius: 0.3, threshold: 0.01}\n"
        "logging_policy: {name: coordinate_walk}\n"
    )
    with pytest.raises(UserError, match="reads displacements of 2 entries from an observation, but it has 3"):
        rows(scenario=str(scenario), plant="hardware")


def test_a_page_is_served_where_it_is_asked_for_and_the_graph_can_do_without() -> None:
    assert "page" not in rows()
    page = rows(page=True, page_address="0.0.0.0:80")["page"]
    assert (page.vital, page.ends_graph) == (False, False)
    assert page.parameters["address"] == "0.0.0.0:80"
    assert page.parameters["model_folders"] == rows()["augmentor"].parameters["model_folders"]
    assert all(row.vital for row in rows().values())
    with pytest.raises(UserError, match="the page's address is 'nowhere'; allowed: HOST:PORT"):
        rows(page_address="nowhere")


def test_only_the_page_is_told_its_token(tmp_path: Path) -> None:
    specs = process_specs(rows(page=True).values(), "lift", tmp_path, {}, {"LIFT_PAGE_TOKEN": "secret"})
    assert [spec.name for spec in specs if "LIFT_PAGE_TOKEN" in spec.environment] == ["page"]
    assert not [path for path in tmp_path.iterdir() if "secret" in path.read_text()]


def test_facts_of_the_run_name_scenario_and_seed() -> None:
    facts = json.loads(str(rows(seed=5)["recorder"].parameters["facts"]))
    assert facts["scenario"] == "po-blend-d2"
    assert facts["seed"] == 5
    assert (facts["made_by"], facts["augmentation"], facts["train_after"]) == ("graph", "learned", 50)


def test_facts_of_the_run_know_what_was_set_by_hand() -> None:
    table = rows(parameters={"arbiter": {"p": 0.2, "budget": 3}})
    facts = json.loads(str(table["recorder"].parameters["facts"]))
    assert (facts["p"], facts["budget"]) == (0.2, 3)


def test_parameter_files_keep_types(tmp_path: Path) -> None:
    parameters = {"facts": '{"a": 1}', "p": 1.0, "seed": 3, "autostart": True}
    command = node_command("recorder", parameters, "lift", tmp_path)
    written = yaml.safe_load(Path(command[-1]).read_text())
    assert written == {"/**": {"ros__parameters": parameters}}


def test_every_process_gets_the_settings_with_which_all_of_them_meet(tmp_path: Path) -> None:
    specs = process_specs(
        list(rows().values()), "lift", tmp_path, {"ROS_DOMAIN_ID": "42", "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST"}
    )
    assert {spec.environment["ROS_DOMAIN_ID"] for spec in specs} == {"42"}
    assert {spec.environment["ROS_AUTOMATIC_DISCOVERY_RANGE"] for spec in specs} == {"LOCALHOST"}
    assert specs[-1].name == "monitor"


def test_every_executable_of_the_table_is_a_module() -> None:
    for executable in [*rows(train_after=3), "fetch_simulator", "monitor"]:
        assert (ROOT / "lift_ros" / "nodes" / f"{executable}_node.py").is_file()


@pytest.mark.parametrize("name", ["assist", "collect", "evaluate", "fetch"])
def test_launch_files_build_on_the_same_table(name: str) -> None:
    tree = ast.parse((ROOT / "launch" / f"{name}.launch.py").read_text())
    imports = [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert "lift_ros.graph.launch_description" in imports


@pytest.mark.parametrize("name", ["assist", "collect", "evaluate", "fetch"])
def test_launch_files_describe_the_graph(name: str) -> None:
    pytest.importorskip("launch_ros", reason="launch_ros is not on PyPI; it comes with a ROS installation")
    import runpy

    namespace = runpy.run_path(str(ROOT / "launch" / f"{name}.launch.py"))
    assert namespace["generate_launch_description"]().entities


def test_the_guard_is_on_and_starts_small_on_hardware(model: Path) -> None:
    simulated, rig = (rows(model=model, plant=plant)["arbiter"].parameters for plant in ("simulator", "hardware"))
    assert (simulated["guard_enabled"], simulated["guard_start"]) == (True, "full")
    assert (rig["guard_enabled"], rig["guard_start"]) == (True, "small")
    assert str(simulated["run"]).endswith("run")
    assert simulated["model"] == hashlib.sha256(model.read_bytes()).hexdigest()


def test_the_guard_can_be_switched_off(model: Path) -> None:
    assert rows(model=model, guard="off")["arbiter"].parameters["guard_enabled"] is False
    by_hand: dict[str, dict[str, Value]] = {"arbiter": {"guard_enabled": False}}
    assert rows(model=model, parameters=by_hand)["arbiter"].parameters["guard_enabled"] is False
    with pytest.raises(UserError, match="guard is 'perhaps'; allowed: on, off"):
        rows(model=model, guard="perhaps")


def test_the_augmentor_takes_models_of_its_trainer_alone() -> None:
    assert rows()["augmentor"].parameters["model_folders"] == "/tmp/run-models"
    by_hand = rows(parameters={"trainer": {"models": "/tmp/elsewhere"}})
    assert by_hand["augmentor"].parameters["model_folders"] == "/tmp/elsewhere"
