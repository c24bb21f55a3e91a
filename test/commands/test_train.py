"""`lift train` as a user types it."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest
from training_samples import make_episodes

from lift_ros.bags import RunWriter
from lift_ros.cli import main
from lift_ros.collection.records import Outcome
from lift_ros.policies.learned import load_model
from lift_ros.scenario import load_scenario
from lift_ros.shortcuts import ShortcutBatch
from lift_ros.training.checkpoint import checkpoint_path
from lift_ros.training.learners import CQLLearner
from lift_ros.training.trainer import best_path

TINY = ["--option", "hidden=8x8", "--option", "batch_size=16", "--option", "action_samples=2", "--updates", "10"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "run"
    scenario = load_scenario("po-blend-d2")
    with RunWriter(path, {"scenario": scenario.name, "parameters": scenario.as_dict()}) as writer:
        for episode in make_episodes():
            writer.write_episode(episode)
    return path


def test_trains_from_a_run(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "m.safetensors"
    assert main(["train", str(run), "--out", str(out), *TINY, "--seed", "4"]) == 0
    captured = capsys.readouterr()
    assert "6 episodes, 48 steps" in captured.out and "training 10/10 updates" in captured.err
    assert captured.out.splitlines()[-1].startswith("predicted success")
    policy = load_model(out)
    training = policy.description["training"]
    assert policy.action_radius == 0.3 and training["options"]["seed"] == 4
    assert training["options"]["hidden"] == [8, 8] and training["bags"][0]["path"] == "run"
    assert len(training["bags"][0]["sha256"]) == 64


def test_json_says_everything(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "m.safetensors"
    assert main(["train", str(run), "--out", str(out), *TINY, "--no-shortcuts", "--json"]) == 0
    captured = capsys.readouterr()
    data = json.loads(captured.out)
    assert captured.err == "" and data["complete"] and data["updates"] == 10
    assert data["hash"] == load_model(out).hash
    assert 0 <= data["prediction"]["success"] <= 1 and not data["held_out"]
    assert load_model(out).description["training"]["options"]["strategy"] == "none"


def test_keeps_best_and_last_in_a_scenario(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "m.safetensors"
    words = ["train", str(run), "--out", str(out), *TINY, "--scenario", "po-blend-d2", "--evaluate-every", "5"]
    assert main(words) == 0
    assert "best model" in capsys.readouterr().out
    assert load_model(best_path(out)).description["training"]["updates"] in (5, 10)
    assert [entry["update"] for entry in load_model(out).description["training"]["evaluations"]] == [5, 10]


def test_trains_another_algorithm(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "m.safetensors"
    words = ["train", str(run), "--out", str(out), *TINY, "--algorithm", "IQL", "--option", "expectile=0.8"]
    assert main(words) == 0
    assert load_model(out).algorithm == "IQL"
    assert load_model(out).description["training"]["options"]["expectile"] == 0.8


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--updates", "0"], "updates is 0"),
        (["--option", "hidden"], "NAME=VALUE"),
        (["--option", "hiden=3"], "CQL has no option 'hiden'"),
        (["--option", "gamma=2"], "gamma is 2;"),
        (["--algorithm", "PPO"], "no algorithm 'PPO'"),
        (["--evaluate-every", "5"], "--evaluate-every needs --scenario"),
        (["--threads", "0"], "--threads is 0"),
        (["--action-radius", "-1"], "--action-radius is -1"),
        (["--scenario", "po-blend-d5"], "scenario po-blend-d5 has 5 and 5"),
        (["--resume"], "there is no checkpoint"),
    ],
)
def test_refuses_bad_input(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    out = tmp_path / "m.safetensors"
    assert main(["train", str(run), "--out", str(out), *TINY, *words]) == 2
    captured = capsys.readouterr()
    assert message in captured.err and "Traceback" not in captured.err
    assert not out.exists()


@pytest.mark.parametrize("place", ["file/m.safetensors", "/proc/m.safetensors"])
def test_a_place_that_cannot_be_written_is_told_before_training(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr("lift_ros.training.trainer.train", lambda *_, **__: pytest.fail("it was trained"))
    assert main(["train", str(run), "--out", str(tmp_path / place), *TINY]) == 2
    captured = capsys.readouterr()
    assert "cannot write" in captured.err and "Traceback" not in captured.err


def test_refuses_a_run_that_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", str(tmp_path), "--out", str(tmp_path / "m.safetensors")]) == 2
    assert main(["train", str(tmp_path / "none"), "--out", str(tmp_path / "m.safetensors")]) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_asks_for_the_action_radius_where_nobody_tells_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with RunWriter(tmp_path / "run", {}) as writer:
        for episode in make_episodes():
            writer.write_episode(episode)
    out = tmp_path / "m.safetensors"
    assert main(["train", str(tmp_path / "run"), "--out", str(out), *TINY]) == 2
    assert "--action-radius" in capsys.readouterr().err
    assert main(["train", str(tmp_path / "run"), "--out", str(out), *TINY, "--action-radius", "0.7"]) == 0
    assert load_model(out).action_radius == 0.7


def test_says_what_the_runs_tell_before_training(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "m.safetensors")
    assert main(["train", str(run), "--out", out, *TINY]) == 0
    captured = capsys.readouterr()
    lines = captured.out.splitlines()
    assert lines[0].startswith("steps: 48 of the routine") and all(len(line) <= 80 for line in lines[:8])
    for word in ("λ: 0.3,", "shortcuts: ", "arrivals: 4 of 6", "observations: 2 entries", "direction: "):
        assert any(line.startswith(word) for line in lines), word
    assert "lift train: warning: λ is less than 2.5 times the usual step" in captured.err
    assert main(["train", str(run), "--out", out, *TINY, "--json"]) == 0
    preflight = json.loads(capsys.readouterr().out)["preflight"]
    assert preflight["arrivals"] == 4 and preflight["radius"]["present"] == 0.3 and preflight["suggested_radius"] == 0.3
    assert len(preflight["warnings"]) == 1 and preflight["refusals"] == []


def test_a_radius_below_the_recorded_steps_is_refused_unless_somebody_insists(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "new" / "m.safetensors"
    words = ["train", str(run), "--out", str(out), *TINY, "--action-radius", "0.01"]
    assert main(words) == 2
    error = capsys.readouterr().err
    assert "λ is 0.01" in error and "give --action-radius 0.3; --anyway trains nevertheless" in error
    assert not out.parent.exists()
    assert main([*words, "--anyway"]) == 0
    assert "warning: λ is 0.01" in capsys.readouterr().err and load_model(out).action_radius == 0.01


def test_runs_without_arrivals_are_refused_unless_somebody_insists(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with RunWriter(tmp_path / "run", {}) as writer:
        for episode in make_episodes():
            episode.outcome = Outcome.STEP_LIMIT
            writer.write_episode(episode)
    out = tmp_path / "m.safetensors"
    words = ["train", str(tmp_path / "run"), "--out", str(out), *TINY, "--action-radius", "1"]
    assert main(words) == 2
    assert "none of 6 episodes reached its goal" in capsys.readouterr().err
    assert not out.exists()
    assert main([*words, "--anyway"]) == 0


def test_the_model_of_another_training_is_not_written_over(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "m.safetensors"
    words = ["train", str(run), "--out", str(out), *TINY]
    assert main(words) == 0
    first = out.read_bytes()
    assert main([*words, "--seed", "1"]) == 2
    assert "m.safetensors exists and is not of this training" in (error := capsys.readouterr().err)
    assert "--force" in error and out.read_bytes() == first
    assert main(words) == 0  # the very same training again
    assert out.read_bytes() == first
    assert main([*words, "--seed", "1", "--force"]) == 0
    assert out.read_bytes() != first


def test_a_best_model_and_files_that_are_no_model_are_spared_too(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "m.safetensors"
    words = ["train", str(run), "--out", str(out), *TINY]
    best_path(out).write_text("mine")
    assert main([*words, "--scenario", "po-blend-d2"]) == 2
    assert "m.best.safetensors exists" in capsys.readouterr().err
    out.write_text("mine")
    assert main(words) == 2
    assert out.read_text() == best_path(out).read_text() == "mine"


@pytest.fixture(scope="module")
def unrewarded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run as `lift import` writes it where nobody measured a reward: it names no scenario."""
    path = tmp_path_factory.mktemp("runs") / "imported"
    with RunWriter(path, {"imported_from": "bag", "mapping": {"reward": None}}) as writer:
        for episode in make_episodes():
            for step in episode.steps:
                step.reward = float("nan")
            writer.write_episode(episode)
    return path


def test_labels_what_was_not_measured_and_says_so(
    unrewarded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "m.safetensors"
    assert main(["train", str(unrewarded), "--out", str(out), *TINY, "--action-radius", "0.3"]) == 0
    printed = capsys.readouterr().out
    assert "left out: 2 episodes did not reach their goal" in printed
    assert "rewards of 4 episodes were not recorded and are labelled in hindsight" in printed
    data = load_model(out).description["training"]["data"]
    assert (data["episodes"], data["labelled"]) == (4, 4)


@pytest.mark.parametrize("words", [["--reward", "recorded"], ["--option", "reward=recorded"]])
def test_refuses_missing_rewards_where_recorded_ones_are_asked_for(
    unrewarded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    out = tmp_path / "m.safetensors"
    assert main(["train", str(unrewarded), "--out", str(out), *TINY, "--action-radius", "0.3", *words]) == 2
    assert "6 of 6 episodes have steps without reward" in (printed := capsys.readouterr().err)
    assert "--reward hindsight" in printed


def test_a_scenario_that_insists_on_recorded_rewards_is_heard_and_the_command_line_wins(tmp_path: Path) -> None:
    parameters = load_scenario("po-blend-d2").as_dict()
    parameters["training"]["reward"] = "recorded"
    with RunWriter(tmp_path / "run", {"scenario": "strict", "parameters": parameters}) as writer:
        for episode in make_episodes():
            episode.steps[0].reward = float("nan")
            writer.write_episode(episode)
    words = ["train", str(tmp_path / "run"), "--out", str(tmp_path / "m.safetensors"), *TINY]
    assert main(words) == 2
    assert main([*words, "--option", "reward=hindsight"]) == 0


def test_ctrl_c_leaves_a_usable_model_and_resume_finishes_it(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out, whole = tmp_path / "m.safetensors", tmp_path / "whole.safetensors"
    words = ["train", str(run), *TINY, "--json"]
    original = CQLLearner.update

    def interrupted_update(learner: CQLLearner, batch: ShortcutBatch) -> dict[str, float]:
        if learner._updates == 4:
            signal.raise_signal(signal.SIGINT)  # in the middle of the fifth update
        return original(learner, batch)

    with monkeypatch.context() as patch:
        patch.setattr(CQLLearner, "update", interrupted_update)
        assert main([*words, "--out", str(out)]) == 130
    data = json.loads(capsys.readouterr().out)
    assert not data["complete"] and data["updates"] == 5
    assert load_model(out).hash == data["hash"]
    assert main([*words, "--out", str(out), "--resume"]) == 0
    assert main([*words, "--out", str(whole)]) == 0
    assert out.read_bytes() == whole.read_bytes() and not checkpoint_path(out).exists()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
