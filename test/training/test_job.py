"""What the trainer node's process does is what `lift train` does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from training_samples import make_episodes

from lift_ros.bags import RunWriter
from lift_ros.cli import main
from lift_ros.errors import UserError
from lift_ros.policies.learned import load_model
from lift_ros.training.job import TrainingJob, execute

TINY: dict[str, Any] = {"hidden": [8, 8], "batch_size": 16, "action_samples": 2, "updates": 12}
SCENARIO = "po-blend-d2"


def write_run(path: Path, rewarded: bool = True, seed: int = 0) -> None:
    with RunWriter(path, {}) as writer:
        for episode in make_episodes(seed=seed):
            for step in episode.steps:
                step.reward = step.reward if rewarded else float("nan")
            writer.write_episode(episode)


def make_job(folder: Path, **options: Any) -> TrainingJob:
    return TrainingJob(
        run=str(folder / "run"),
        episodes=4,
        scenario=SCENARIO,
        out=str(folder / "models" / "m.safetensors"),
        seed=3,
        threads=1,
        niceness=0,
        options={**TINY, **options},
    )


def reports_of(job: TrainingJob) -> list[dict[str, Any]]:
    reports: list[dict[str, Any]] = []
    execute(job, reports.append)
    return reports


def test_trains_on_the_first_episodes_and_tells_where_they_lay(tmp_path: Path) -> None:
    write_run(tmp_path / "run")
    job = make_job(tmp_path)
    assert reports_of(job)[-1]["sha256"] == load_model(job.out).hash
    training = load_model(job.out).description["training"]
    assert training["data"]["episodes"] == 4
    (bag,) = training["bags"]
    assert (bag["path"], len(bag["sha256"]), bag["episodes"]) == ("run", 64, 4)


def test_gives_the_very_model_of_the_command(tmp_path: Path) -> None:
    write_run(tmp_path / "run", rewarded=False)
    job = replace(make_job(tmp_path), episodes=6)
    execute(job, lambda _: None)
    given = {**TINY, "hidden": "8x8", "seed": 3, "held_out": 0}
    words = [word for name, value in given.items() for word in ("--option", f"{name}={value}")]
    out = tmp_path / "command.safetensors"
    assert main(["train", str(tmp_path / "run"), "--out", str(out), "--action-radius", "0.3", *words]) == 0
    assert out.read_bytes() == Path(job.out).read_bytes()


def test_says_before_training_what_speaks_against_it(tmp_path: Path) -> None:
    write_run(tmp_path / "run")
    doubts = reports_of(replace(make_job(tmp_path), episodes=6))[0]["doubts"]
    assert len(doubts) == 1 and "leaves little room for shortcuts" in doubts[0]


def test_missing_rewards_are_what_the_options_say(tmp_path: Path) -> None:
    write_run(tmp_path / "run", rewarded=False)
    with pytest.raises(UserError, match="reward=hindsight"):
        execute(make_job(tmp_path, reward="recorded"), lambda _: None)
    execute(make_job(tmp_path), lambda _: None)
    data = load_model(make_job(tmp_path).out).description["training"]["data"]
    assert (data["labelled"], data["left_out"]) == (3, {"did not reach their goal": 1})


def test_a_model_is_trained_once_for_the_same_episodes_and_options(tmp_path: Path) -> None:
    write_run(tmp_path / "run")
    job = make_job(tmp_path)

    def written_by(job: TrainingJob) -> int:
        execute(job, lambda _: None)
        return Path(job.out).stat().st_mtime_ns

    first = written_by(job)
    assert written_by(job) == first
    second = written_by(replace(job, options={**TINY, "updates": 13}))
    assert second > first
    for file in (tmp_path / "run").iterdir():
        file.unlink()
    write_run(tmp_path / "run", seed=1)
    assert written_by(replace(job, options={**TINY, "updates": 13})) > second


def test_a_model_is_known_again_although_the_file_of_its_episodes_went_on_growing(tmp_path: Path) -> None:
    episodes = make_episodes(count=6)
    job = make_job(tmp_path)
    with RunWriter(tmp_path / "run", {}, episodes_per_file=6) as writer:
        for episode in episodes[:4]:
            writer.write_episode(episode)
        execute(job, lambda _: None)
        written = Path(job.out).stat().st_mtime_ns
        for episode in episodes[4:]:
            writer.write_episode(episode)
    execute(job, lambda _: None)
    assert Path(job.out).stat().st_mtime_ns == written


def test_too_few_episodes_are_refused(tmp_path: Path) -> None:
    write_run(tmp_path / "run")
    with pytest.raises(UserError, match="episode 6: this episode is not recorded"):
        execute(replace(make_job(tmp_path), episodes=7), lambda _: None)


def test_all_episodes_are_for_training_unless_the_options_say_otherwise(tmp_path: Path) -> None:
    with RunWriter(tmp_path / "run", {}) as writer:
        for episode in make_episodes(count=12):
            writer.write_episode(episode)
    job = replace(make_job(tmp_path), episodes=12)
    execute(job, lambda _: None)
    assert load_model(job.out).description["training"]["data"]["episodes"] == 12
    told = make_job(tmp_path, held_out=0.25)
    told = replace(told, episodes=12)
    execute(told, lambda _: None)
    assert load_model(told.out).description["training"]["data"]["episodes"] == 9
    written = Path(told.out).stat().st_mtime_ns
    execute(told, lambda _: None)
    assert Path(told.out).stat().st_mtime_ns == written
