"""The commands of a report make its runs and models again."""

from __future__ import annotations

import html
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from sample_run import drive, write_run

from lift_ros.bags.reader import read_run
from lift_ros.cli import main
from lift_ros.collection.plan import CollectionPlan
from lift_ros.collection.records import same
from lift_ros.evaluation.repeating import repeat_commands
from lift_ros.policies.augmentations import RANDOM_NAMES
from lift_ros.policies.learned import load_model
from lift_ros.scenario import load_scenario, parse_scenario

RANDOM = RANDOM_NAMES[0]


def lift(*words: object) -> None:
    assert main([str(word) for word in words]) == 0


def commands_of(page: Path) -> list[str]:
    (text,) = re.findall(r"<h2>How to repeat it</h2><pre>(.*?)</pre>", page.read_text(), re.DOTALL)
    return html.unescape(text).splitlines()


def test_the_commands_of_the_page_give_the_same_runs_and_models(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in ("first", "second"):
        (tmp_path / place).mkdir()
    monkeypatch.chdir(tmp_path / "first")
    collect = ["collect", "--scenario", "po-none-d2", "--quiet"]
    lift(*collect, "--out", "runs/walk", "--episodes", 4, "--seed", 3)
    small = ["--updates", 3, "--option", "hidden=8x8", "--json"]
    lift("train", "runs/walk", "--out", "augmentor.safetensors", *small)
    lift(*collect, "--out", "runs/lift", "--episodes", 2, "--model", "augmentor.safetensors", "--p", 0.5, "--budget", 2)
    lift("train", "runs/walk", "runs/lift", "--out", "policy.safetensors", *small, "--preset", "paper", "--seed", 5)
    lift("report", "runs/walk", "runs/lift", "--model", "augmentor.safetensors", "policy.safetensors")
    commands = commands_of(Path("report.html"))
    assert [shlex.split(line)[1] for line in commands] == ["collect", "train", "collect", "train", "report"]
    monkeypatch.chdir(tmp_path / "second")
    for line in commands:
        lift(*shlex.split(line)[1:])
    for run in ("runs/walk", "runs/lift"):
        first, second = (read_run(tmp_path / place / run) for place in ("first", "second"))
        for one, other in zip(first, second, strict=True):
            assert len(one.steps) == len(other.steps)
            assert all(same(a.action, b.action) for a, b in zip(one.steps, other.steps, strict=True))
    for model in ("augmentor.safetensors", "policy.safetensors"):
        trained = [load_model(tmp_path / place / model) for place in ("first", "second")]
        answers = [policy.act(np.array([0.3, -0.2])) for policy in trained]
        assert same(*answers) and trained[0].description["training"]["options"]["hidden"] == [8, 8]


def graph_command(episodes: int = 7, **wishes: object) -> str:
    scenario = load_scenario("po-blend-d2")
    facts = CollectionPlan.make(scenario, **wishes).facts(scenario, seed=2, made_by="graph")  # type: ignore[arg-type]
    return repeat_commands({Path("runs/a"): (facts, episodes)}, [])[0]


@pytest.mark.parametrize(
    ("wishes", "ending"),
    [
        ({"p": 0.0}, "--p 0"),
        ({}, "--p 0.6 --train-after 50"),
        ({"augmentation": RANDOM, "budget": 4}, f"--p 0.6 --set arbiter.budget=4 --augmentation {RANDOM}"),
        ({"augmentation": "my.module:Mine"}, "--p 0.6 --set augmentor.policy=my.module:Mine"),
    ],
)
def test_a_run_of_the_graph_is_repeated_by_lift_run(wishes: dict[str, object], ending: str) -> None:
    assert graph_command(**wishes) == f"lift run --scenario po-blend-d2 --out runs/a --episodes 7 --seed 2 {ending}"


def test_a_scenario_of_ones_own_is_named_as_a_file_and_hardware_as_such() -> None:
    data = {
        "plant": {"kind": "hardware", "observation_size": 2, "action_size": 2, "action_radius": 1.0, "threshold": 0.1},
        "logging_policy": {"name": "lift_ros.policies.coordinate_walk:CoordinateWalk", "arguments": {"step": 0.1}},
    }
    scenario = parse_scenario(data, "lens", "lens.yaml")
    facts = CollectionPlan.make(scenario, p=0.0).facts(scenario, seed=0, made_by="graph")
    first, second, command, report = repeat_commands({Path("a"): (facts, 3)}, [], Path("page.html"))
    assert "lens.yaml is the scenario file" in first and "start the plant node" in second
    assert command == "lift run --scenario lens.yaml --out a --episodes 3 --seed 0 --plant hardware --p 0"
    assert report == "lift report a --out page.html"


def test_what_the_records_do_not_tell_is_said(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [drive(0)])
    assert repeat_commands({run: ({}, 1)}, [])[0] == f"# {run}: its facts do not tell which command recorded it"
    imported = repeat_commands({run: ({"imported_from": "old bag"}, 1)}, [])
    assert imported[1] == f"lift import 'old bag' --mapping mapping.yaml --out {run}"
    scenario = load_scenario("po-none-d2")
    model = CollectionPlan.make(scenario).facts(scenario, seed=0, made_by="collect") | {"model": "ab" * 32}
    comment, command, _ = repeat_commands({run: (model, 1)}, [])
    assert "hash abababababababab" in comment and "--model MODEL" in command


def test_a_run_that_was_gone_on_with_takes_a_command_for_each_part() -> None:
    scenario = load_scenario("po-blend-d2")
    facts = CollectionPlan.make(scenario, p=0.0).facts(scenario, seed=2, made_by="graph")
    later = {"p": 0.3, "augmentation": RANDOM, "seed": 4}
    facts = facts | {"continuations": [{"from_episode": 5, "facts": later}]}
    first, second, _ = repeat_commands({Path("a"): (facts, 8)}, [])
    assert first == "lift run --scenario po-blend-d2 --out a --episodes 5 --seed 2 --p 0"
    assert second == f"lift run --scenario po-blend-d2 --out a --episodes 8 --seed 4 --p 0.3 --augmentation {RANDOM}"
