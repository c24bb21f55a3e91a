from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from timeless import without_times

from lift_ros.bags import RunReader, read_run
from lift_ros.cli import main
from lift_ros.collection.loop import collect
from lift_ros.collection.records import Episode, Mode, Outcome, Rejection, Source, same
from lift_ros.policies.learned import MODEL_KIND, MODEL_VERSION
from lift_ros.policies.model_file import write_tensor_file
from lift_ros.scenario import load_scenario

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_SECONDS = 120.0
UNGUARDED = ("--guard", "off")


def lift_collect(out: Path, *words: str, scenario: str = "po-blend-d2") -> int:
    return main(["collect", "--scenario", scenario, "--out", str(out), "--quiet", *words])


def timeless(episodes: list[Episode]) -> list[Episode]:
    return [without_times(episode) for episode in episodes]


def test_what_is_written_is_what_was_collected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert lift_collect(tmp_path / "run", "--episodes", "3", "--seed", "5") == 0
    expected = collect(load_scenario("po-blend-d2"), episodes=3, seed=5, progress=False)
    assert same(timeless(read_run(tmp_path / "run")), timeless(expected))
    assert "episodes 0 to 2; 3 reached" in capsys.readouterr().out


def test_the_run_says_how_it_was_made(tmp_path: Path) -> None:
    lift_collect(tmp_path / "run", "--episodes", "1", "--seed", "5", "--augmentation", "uniform", "--p", "0.25")
    facts = RunReader(tmp_path / "run").facts
    assert facts["scenario"] == "po-blend-d2"
    assert facts["parameters"]["plant"]["distortion"] == "blend"
    assert (facts["seed"], facts["p"], facts["budget"]) == (5, 0.25, 20)
    assert (facts["policy"], facts["augmentation"], facts["model"]) == ("coordinate_walk", "uniform", "")
    assert set(facts["versions"]) == {"lift_ros", "numpy", "python"}


def test_an_augmentation_by_name_with_the_scenarios_p(tmp_path: Path) -> None:
    lift_collect(tmp_path / "run", "--episodes", "2", "--augmentation", "gaussian_noise", "--budget", "4", *UNGUARDED)
    episodes = read_run(tmp_path / "run")
    scenario = load_scenario("po-blend-d2")
    augmentation = scenario.make_augmentation("gaussian_noise")
    p = scenario.collection.p
    expected = collect(scenario, None, augmentation, episodes=2, seed=0, p=p, budget=4, progress=False)
    assert same(timeless(episodes), timeless(expected))
    assert {episode.augmentations for episode in episodes} == {4}


def write_model(path: Path, radius: float) -> str:
    """Write a model that goes against the sign of each coordinate, as far as the radius allows."""
    tensors = {
        "actor.0.weight": -50 * np.eye(2, dtype=np.float32),
        "actor.0.bias": np.zeros(2, dtype=np.float32),
        "observation.mean": np.zeros(2, dtype=np.float32),
        "observation.deviation": np.ones(2, dtype=np.float32),
    }
    description = {
        "kind": MODEL_KIND,
        "version": MODEL_VERSION,
        "algorithm": "by hand",
        "observation_size": 2,
        "action_size": 2,
        "action_radius": radius,
        "critics": 0,
    }
    return write_tensor_file(path, tensors, description)


def test_a_model_as_augmentor_is_recorded_with_its_hash(tmp_path: Path) -> None:
    digest = write_model(tmp_path / "model.safetensors", radius=0.3)
    words = ("--episodes", "2", "--model", str(tmp_path / "model.safetensors"), *UNGUARDED)
    assert lift_collect(tmp_path / "run", *words) == 0
    steps = [step for episode in read_run(tmp_path / "run") for step in episode.steps]
    augmented = [step for step in steps if step.source is Source.AUGMENTOR]
    assert augmented
    assert {step.model_hash for step in augmented} == {RunReader(tmp_path / "run").facts["model"]} == {digest}


def test_a_model_is_evaluated_alone(tmp_path: Path) -> None:
    write_model(tmp_path / "model.safetensors", radius=0.3)
    words = ("--episodes", "1", "--mode", "evaluate", "--model", str(tmp_path / "model.safetensors"))
    assert lift_collect(tmp_path / "run", *words, scenario="po-none-d2") == 0
    episode = read_run(tmp_path / "run")[0]
    assert episode.augmentations == len(episode.steps) > 0


def test_a_model_with_longer_steps_is_refused_and_one_with_shorter_steps_is_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = tmp_path / "model.safetensors"
    write_model(model, radius=0.7)
    assert lift_collect(tmp_path / "run", "--model", str(model)) == 2
    assert "makes steps up to 0.7, but po-blend-d2 allows 0.3" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
    write_model(model, radius=0.2)
    assert lift_collect(tmp_path / "run", "--model", str(model), "--episodes", "1") == 0


def test_a_run_in_two_parts_equals_one_in_a_single_part(tmp_path: Path) -> None:
    lift_collect(tmp_path / "whole", "--episodes", "4")
    for count in ("2", "4"):
        assert lift_collect(tmp_path / "parts", "--episodes", count) == 0
    assert same(timeless(read_run(tmp_path / "parts")), timeless(read_run(tmp_path / "whole")))


def test_a_full_run_says_that_it_is_full(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert lift_collect(tmp_path / "run", "--episodes", "2") == 0
    capsys.readouterr()
    assert lift_collect(tmp_path / "run", "--episodes", "2") == 0
    assert "is full: 2 episodes are recorded and 2 wanted; a higher --episodes adds to it" in capsys.readouterr().out
    assert len(read_run(tmp_path / "run")) == 2


def test_several_processes_write_the_same_run(tmp_path: Path) -> None:
    for out, processes in ((tmp_path / "one", "1"), (tmp_path / "two", "2")):
        lift_collect(out, "--episodes", "4", "--augmentation", "random_scaling", "--processes", processes)
    assert same(timeless(read_run(tmp_path / "one")), timeless(read_run(tmp_path / "two")))


def test_a_run_of_another_scenario_is_not_gone_on_with(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lift_collect(tmp_path / "run", "--episodes", "1")
    assert lift_collect(tmp_path / "run", "--episodes", "1", scenario="po-rot-d2") == 2
    assert "'po-blend-d2', not 'po-rot-d2'" in capsys.readouterr().err
    assert len(read_run(tmp_path / "run")) == 1


def test_a_changed_scenario_file_is_not_gone_on_with(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (ROOT / "config" / "po-none-d2.yaml").read_text()
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    assert lift_collect(tmp_path / "run", "--episodes", "1", scenario=str(path)) == 0
    path.write_text(text.replace("step: 0.025", "step: 0.05"))
    assert lift_collect(tmp_path / "run", "--episodes", "1", scenario=str(path)) == 2
    assert "logging_policy" in capsys.readouterr().err


def test_shadow_records_both_proposals(tmp_path: Path) -> None:
    lift_collect(tmp_path / "run", "--episodes", "1", "--mode", "shadow", "--augmentation", "uniform")
    episode = read_run(tmp_path / "run")[0]
    assert (episode.mode, episode.augmentations) == (Mode.SHADOW, 0)
    assert all(step.augmentor_proposal.size == 2 for step in episode.steps)


def test_assist_records_a_run_that_can_be_inspected_and_trained_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, model = tmp_path / "run", tmp_path / "model.safetensors"
    words = ("--episodes", "4", "--mode", "assist", "--augmentation", "uniform")
    assert lift_collect(run, *words, "--budget", "12") == 0
    episodes = read_run(run)
    assert {episode.mode for episode in episodes} == {Mode.ASSIST}
    assert {episode.outcome for episode in episodes} == {Outcome.REACHED}
    assert all(episode.augmentations <= 12 for episode in episodes)
    assert any(episode.augmentations for episode in episodes)
    assert RunReader(run).facts["assist"]["budget"] == 12
    assert main(["inspect", str(run)]) == 0
    assert "assist" in capsys.readouterr().out
    assert main(["train", str(run), "--out", str(model), "--updates", "5"]) == 0
    assert lift_collect(tmp_path / "again", "--episodes", "1", "--mode", "assist", "--model", str(model)) == 0


def test_assist_needs_an_augmentor(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert lift_collect(tmp_path / "run", "--mode", "assist") == 2
    assert "--mode assist needs an augmentor: give --model FILE" in capsys.readouterr().err


def test_the_uncertainty_model_learns_from_the_runs_it_is_given(tmp_path: Path) -> None:
    lift_collect(tmp_path / "plain", "--episodes", "2")
    words = ("--episodes", "1", "--augmentation", "uncertainty", "--budget", "2", *UNGUARDED)
    assert lift_collect(tmp_path / "explored", *words, "--data", str(tmp_path / "plain")) == 0
    assert read_run(tmp_path / "explored")[0].augmentations == 2


def test_a_guarded_run_of_two_parts_is_the_whole_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--augmentation", "uniform", "--p", "0.9")
    assert lift_collect(tmp_path / "whole", "--episodes", "14", *words) == 0
    assert "guard: p=" in capsys.readouterr().out
    for count in ("6", "14"):
        assert lift_collect(tmp_path / "parts", "--episodes", count, *words) == 0
    whole = read_run(tmp_path / "whole")
    assert same(timeless(whole), timeless(read_run(tmp_path / "parts")))
    assert {step.p for step in whole[0].steps} == {0.0}
    assert any(episode.augmentations for episode in whole)
    assert RunReader(tmp_path / "whole").facts["guard"]["start"] == "full"


@pytest.fixture
def short(tmp_path: Path) -> str:
    """A scenario whose training takes a moment."""
    path = tmp_path / "short.yaml"
    path.write_text((ROOT / "config" / "po-blend-d2.yaml").read_text() + "training:\n  updates: 20\n")
    return str(path)


@pytest.mark.parametrize("name", ["learned", "uncertainty"])
def test_what_is_trained_on_the_way_acts_afterwards_also_in_a_run_of_two_parts(
    tmp_path: Path, short: str, name: str
) -> None:
    words = ("--augmentation", name, "--train-after", "3", *UNGUARDED)
    assert lift_collect(tmp_path / "whole", "--episodes", "5", *words, scenario=short) == 0
    whole = read_run(tmp_path / "whole")
    assert not any(episode.augmentations for episode in whole[:3])
    assert all(episode.augmentations for episode in whole[3:])
    assert {step.rejection for episode in whole[:3] for step in episode.steps} == {Rejection.NONE, Rejection.MISSING}
    for count in ("2", "4", "5"):
        assert lift_collect(tmp_path / "parts", "--episodes", count, *words, scenario=short) == 0
    parts = read_run(tmp_path / "parts")
    for step in [step for episode in [*parts, *whole] for step in episode.steps]:
        step.model_hash = ""  # a model names its bags, and these hold times
    assert same(timeless(parts), timeless(whole))


def test_more_episodes_of_the_logging_policy_than_are_asked_for(tmp_path: Path) -> None:
    assert lift_collect(tmp_path / "run", "--episodes", "2", "--augmentation", "learned") == 0
    assert [episode.augmentations for episode in read_run(tmp_path / "run")] == [0, 0]
    facts = RunReader(tmp_path / "run").facts
    assert (facts["augmentation"], facts["train_after"], facts["p"]) == ("learned", 50, 0.6)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--p", "0.5"], "--p 0.5 needs an augmentor"),
        (["--mode", "evaluate"], "--mode evaluate needs an augmentor"),
        (["--augmentation", "uniform", "--p", "1.5"], "--p is 1.5; allowed: between 0 and 1"),
        (["--augmentation", "uniform", "--p", "nan"], "--p is nan"),
        (["--augmentation", "uniform", "--p", "60"], "it is a probability; 60 % is --p 0.6"),
        (["--augmentation", "uniform", "--budget", "-1"], "--budget is -1; allowed: a whole number >= 0"),
        (["--augmentation", "uncertainty", "--train-after", "0"], "--data RUN"),
        (["--data", "somewhere"], "data belong to the augmentation uncertainty"),
        (["--augmentation", "uniform", "--train-after", "3"], "uniform is never trained"),
        (["--episodes", "0"], "--episodes is 0; allowed: a whole number >= 1"),
        (["--processes", "0"], "--processes is 0; allowed: a whole number >= 1"),
        (["--seed", "-1"], "--seed is -1; allowed: a whole number >= 0"),
        (["--model", "missing.safetensors"], "missing.safetensors"),
    ],
)
def test_mistakes_are_named_and_leave_nothing_behind(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    assert lift_collect(tmp_path / "run", *words) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_a_folder_with_other_things_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    assert lift_collect(tmp_path, "--episodes", "1") == 2
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


@pytest.mark.parametrize("processes", [1, 2])
def test_ctrl_c_keeps_all_finished_episodes_and_is_quiet(tmp_path: Path, processes: int) -> None:
    out = tmp_path / "run"
    words = ["collect", "--scenario", "po-none-d2", "--episodes", "100000", "--out", str(out)]
    with (tmp_path / "errors").open("w") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "lift_ros.cli", *words, "--processes", str(processes)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
            # Where the tests run in the background Ctrl-C is ignored, and a child would inherit that.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        try:
            wait_for_episodes(process, out, 3)
            os.killpg(process.pid, signal.SIGINT)
            output, _ = process.communicate(timeout=PATIENCE_SECONDS)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    assert process.returncode == 130
    assert "Traceback" not in (tmp_path / "errors").read_text()
    indices = RunReader(out).episode_indices
    assert list(indices) == list(range(len(indices)))
    assert len(indices) >= 3
    assert f"episodes 0 to {len(indices) - 1}" in output


def wait_for_episodes(process: subprocess.Popen[str], out: Path, count: int) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while len(list(out.glob("*.mcap"))) < count:
        assert process.poll() is None, "ended before it was interrupted"
        assert time.monotonic() < end, "no episodes were written"
        time.sleep(0.05)


def test_a_compressed_run_holds_the_same_episodes(tmp_path: Path) -> None:
    for compression in ("none", "zstd"):
        assert lift_collect(tmp_path / compression, "--episodes", "2", "--compression", compression) == 0
    assert same(timeless(read_run(tmp_path / "zstd")), timeless(read_run(tmp_path / "none")))
    contents = [path.read_bytes() for path in sorted((tmp_path / "zstd").glob("*.mcap"))]
    assert len(contents) == 2
    assert all(b"\4\0\0\0zstd" in content for content in contents)
