"""Launch arguments: what their texts mean, and what is refused before anything starts; needs no `launch`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lift_ros.bags import RunWriter
from lift_ros.errors import UserError
from lift_ros.graph.launch_arguments import ARGUMENTS, graph_of, in_launch_words
from lift_ros.graph.table import GraphOptions, NodeEntry


def launched(folder: Path, **given: str) -> tuple[GraphOptions, dict[str, NodeEntry]]:
    defaults = {name: argument.default for name, argument in ARGUMENTS.items()}
    options, rows = graph_of({**defaults, "run": str(folder / "run"), **given})
    return options, {row.executable: row for row in rows}


def facts(rows: dict[str, NodeEntry]) -> dict[str, object]:
    return dict(json.loads(str(rows["recorder"].parameters["facts"])))


def test_defaults_describe_the_scenarios_graph(tmp_path: Path) -> None:
    options, rows = launched(tmp_path)
    assert (options.scenario, options.p, options.episodes, options.guard) == ("po-blend-d2", None, None, None)
    assert rows["arbiter"].parameters["autostart"] is True


def test_texts_become_values(tmp_path: Path) -> None:
    given = {"p": "0.25", "episodes": "7", "seed": "3", "topics": "/force, /heat", "autostart": "False"}
    options, rows = launched(tmp_path, **given, augmentation="uniform", guard="off")
    assert (options.p, options.episodes, options.seed, options.topics) == (0.25, 7, 3, ["/force", "/heat"])
    arbiter = rows["arbiter"].parameters
    assert (arbiter["autostart"], arbiter["p"], arbiter["guard_enabled"]) == (False, 0.25, False)


def test_a_page_is_an_argument(tmp_path: Path) -> None:
    _, rows = launched(tmp_path, page="true", page_address="127.0.0.1:9000")
    assert rows["page"].parameters["address"] == "127.0.0.1:9000"
    assert "page" not in launched(tmp_path)[1]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("p", "2", "p:=2 is refused; allowed: a number >= 0 and <= 1"),
        ("p", "60", "p:=60 is refused; allowed: a number >= 0 and <= 1; 60 % is p:=0.6"),
        ("p", "abc", "p:=abc is refused; allowed: a number >= 0 and <= 1"),
        ("p", "nan", "p:=nan is refused"),
        ("episodes", "-1", "episodes:=-1 is refused; allowed: a whole number >= 0"),
        ("episodes", "1e3", "episodes:=1e3 is refused"),
        ("seed", "1" * 5000, "is refused; allowed: a whole number"),
        ("mode", "xx", "mode:=xx is refused; allowed: one of collect, shadow, evaluate, assist"),
        ("mode", "shadow", "mode shadow needs a model; give one with model:=FILE"),
        ("model", "/nowhere/model", "there is no model file /nowhere/model"),
        ("autostart", "maybe", "autostart:=maybe is refused; allowed: true or false"),
        ("log_level", "loud", "log_level:=loud is refused; allowed: one of debug, info, warn, error, fatal"),
        ("scenario", "", "scenario:= is empty; allowed: name of a scenario"),
        ("parameters", "/nowhere.yaml", "/nowhere.yaml: cannot be read"),
    ],
)
def test_bad_arguments_are_refused_in_their_own_words_and_leave_nothing(
    tmp_path: Path, name: str, text: str, message: str
) -> None:
    with pytest.raises(UserError) as caught:
        launched(tmp_path, **{name: text})
    assert message in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_no_model_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model").write_bytes(bytes(range(256)))
    with pytest.raises(UserError, match="is not a valid model file"):
        launched(tmp_path, model=str(tmp_path / "model"))


def test_options_of_lift_run_are_told_as_launch_arguments(tmp_path: Path) -> None:
    said = "choose plant hardware (lift run --plant hardware), another --out, or --data RUN …; not --quiet"
    assert (
        in_launch_words(said) == "choose plant hardware (plant:=hardware), another run:=…, or data:=RUN …; not --quiet"
    )
    RunWriter(tmp_path / "run", {"scenario": "po-rot-d2"}).close()
    with pytest.raises(UserError, match="choose another run:=…"):
        launched(tmp_path)


def test_facts_know_what_a_parameter_file_says(tmp_path: Path) -> None:
    file = tmp_path / "rig.yaml"
    file.write_text(
        "/**: {ros__parameters: {p: 0.5, diagnostics_period: 0.25}}\n"
        "/lift/arbiter: {ros__parameters: {p: 0.25, seed: 9, budget: 3, autostart: false}}\n"
        "/lift/logging_policy: {ros__parameters: {policy: direct}}\n"
        "/lift/trainer: {ros__parameters: {train_after: 20}}\n"
        "/other/arbiter: {ros__parameters: {p: 0.125}}\n"
    )
    _, rows = launched(tmp_path, p="0.75", parameters=str(file))
    found = facts(rows)
    assert [found[name] for name in ("p", "seed", "budget", "policy", "train_after")] == [0.25, 9, 3, "direct", 20]
    arbiter = rows["arbiter"].parameters
    assert [arbiter[name] for name in ("p", "seed", "autostart", "model_from")] == [0.25, 9, False, 20]
    assert rows["recorder"].parameters["diagnostics_period"] == 0.25


def test_what_a_file_says_to_all_starts_no_further_node(tmp_path: Path) -> None:
    file = tmp_path / "rig.yaml"
    file.write_text("/**: {ros__parameters: {diagnostics_period: 0.25}}\n")
    _, rows = launched(tmp_path, p="0", parameters=str(file))
    assert "augmentor" not in rows
    assert rows["logging_policy"].parameters["diagnostics_period"] == 0.25
    file.write_text("/lift/augmentor: {ros__parameters: {delay: 0.25}}\n")
    assert "augmentor" in launched(tmp_path, p="0", parameters=str(file))[1]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("/lift/arbiter: {ros__parameters: {p: 2.0}}", "parameter p is 2.0; allowed"),
        ("/lift/arbiter: {ros__parameters: {speed: 2.0}}", "arbiter has no parameter speed"),
        ("/lift/arbiter: {ros__parameters: 3}", "ros__parameters of /lift/arbiter is 3; allowed: a mapping"),
        ("/lift/arbiter: 3", "/lift/arbiter is 3; allowed: node names with ros__parameters below each"),
        ("[]", r"it is \[\]; allowed: node names"),
        ("/**: {ros__parameters: {use_sim_time: true}}", "use_sim_time is True; allowed: false"),
        (
            "/**: {ros__parameters: {scenario: po-rot-d2}}",
            "is 'po-rot-d2', but the graph has 'po-blend.*scenario:=",
        ),
    ],
)
def test_bad_parameter_files_are_refused_before_anything_starts(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "rig.yaml").write_text(content)
    with pytest.raises(UserError, match=message):
        launched(tmp_path, parameters=str(tmp_path / "rig.yaml"))
    assert not (tmp_path / "run").exists()


def test_what_ros_gives_every_node_is_left_to_ros(tmp_path: Path) -> None:
    values: dict[str, object] = {
        "use_sim_time": False,
        "qos_overrides": {"/lift/step": {"depth": 3}},
    }
    (tmp_path / "rig.yaml").write_text(json.dumps({"/lift/arbiter": {"ros__parameters": values}}))
    assert "qos_overrides" not in launched(tmp_path, parameters=str(tmp_path / "rig.yaml"))[1]["arbiter"].parameters
