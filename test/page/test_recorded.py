"""Looking back at a run: rows are read when they are shown, and a step tells who acted and why."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from live_graph import write_model

from lift_ros.bags.ends import read_end
from lift_ros.bags.reader import RunReader
from lift_ros.cli import main
from lift_ros.collection.records import Outcome, Rejection, Source, Step, same
from lift_ros.errors import UserError
from lift_ros.messages.records import EpisodeEnd
from lift_ros.page import charts, recorded
from lift_ros.page.recorded import REJECTIONS, RecordedRun, decision_of
from lift_ros.policies.learned import load_model


def collect(out: Path, *words: str) -> Path:
    given = ["--scenario", "po-blend-d2", "--train-after", "0", "--guard", "off", "--quiet", "--out", str(out), *words]
    assert main(["collect", *given]) == 0
    return out


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run in which a random augmentation acts now and then."""
    words = ("--episodes", "6", "--augmentation", "uniform", "--p", "0.3")
    return collect(tmp_path_factory.mktemp("view") / "run", *words)


@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_ends_are_those_of_the_episodes(tmp_path: Path, compression: str) -> None:
    run = collect(tmp_path / "run", "--episodes", "4", "--p", "0", "--compression", compression)
    reader = RunReader(run)
    for index in reader.episode_indices:
        end, whole = read_end(reader, index), EpisodeEnd.of(reader.episode(index))
        whole.episode.steps = []
        assert same(end.episode, whole.episode)
        assert (end.steps, end.augmentations) == (whole.steps, whole.augmentations)
        assert end.episode_return == pytest.approx(whole.episode_return)


def test_rows_are_read_when_they_are_shown(folder: Path) -> None:
    run = RecordedRun(folder)
    assert run.rows == {}
    assert [row.index for row in run.page(2, 2)] == [2, 3]
    assert sorted(run.rows) == [2, 3]
    assert [row.index for row in run.page(0, 2, descending=True)] == [5, 4]
    assert not run.is_listed
    run.list_all()
    assert run.is_listed
    steps = [row.steps for row in run.page(0, 6, "steps", descending=True)]
    assert steps == sorted(steps, reverse=True)
    assert len(steps) == 6


@pytest.mark.parametrize("key", ["outcome", "who", "augmented", "seconds"])
def test_every_column_can_be_sorted(folder: Path, key: str) -> None:
    run = RecordedRun(folder)
    run.list_all()
    assert {row.index for row in run.page(0, 6, key)} == set(range(6))


def test_a_damaged_file_ends_the_list_with_a_sentence_and_the_rest_can_be_seen(folder: Path, tmp_path: Path) -> None:
    import shutil

    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    victim = sorted(copy.glob("*.mcap"))[3]
    victim.write_bytes(victim.read_bytes()[:200])
    run = RecordedRun(copy)
    run.list_all()
    assert "Restore" in run.trouble or "epair" in run.trouble or victim.name in run.trouble
    assert run.is_listed
    assert run.episode(1).episode.index == 1
    with pytest.raises(UserError):
        run.episode(3)


def test_an_episode_shows_its_path_goal_and_distances(folder: Path) -> None:
    shown = RecordedRun(folder).episode(0)
    count = len(shown.steps)
    assert (shown.known, shown.path.shape, shown.goal.shape) == (True, (count + 1, 2), (2,))
    assert shown.distances[-1] == pytest.approx(np.linalg.norm(shown.path[-1] - shown.goal))
    assert shown.picture(0) is None and shown.picture(count) is None


def test_shortcuts_are_those_of_algorithm_1(folder: Path) -> None:
    run = RecordedRun(folder)
    shown = run.episode(0)
    reached = [stop for step in range(len(shown.steps)) for stop in [*shown.shortcuts(step)]]
    assert reached
    for step in range(len(shown.steps)):
        for stop in shown.shortcuts(step):
            way = np.sum([each.action for each in shown.steps[step:stop]], axis=0)
            assert np.linalg.norm(way) <= 0.3 * (1 + 1e-6)
            assert stop > step + 1


def test_charts_of_a_step_hold_proposals_shortcuts_and_goal(folder: Path) -> None:
    shown = RecordedRun(folder).episode(0)
    words = RecordedRun(folder).words
    arrow = {"routine proposes": np.array([0.1, 0.0]), "augmentor proposes": np.array([0.0, 0.1]), "a": np.ones(2)}
    options = charts.episode_chart(
        shown.path, [step.source for step in shown.steps], 2, words,
        known=True, goal=shown.goal, arrows=arrow, stops=[4, 5],
    )  # fmt: skip
    names = [series["name"] for series in options["series"]]
    assert names.count("shortcut") == 2
    assert {"routine proposes", "here", "goal", "start"} <= set(names)
    arrow_drawn = next(series["data"] for series in options["series"] if series["name"] == "routine proposes")
    assert np.allclose(np.subtract(arrow_drawn[1], arrow_drawn[0]), [0.1, 0.0])
    colours = {series["name"]: series["itemStyle"]["color"] for series in options["series"]}
    assert colours["routine proposes"] == colours["routine"]
    assert colours["augmentor proposes"] == colours["augmentor"]
    assert colours["a"] not in (colours["routine"], colours["augmentor"])
    json.dumps(options, allow_nan=False)
    line = charts.episode_line(shown.distances, [step.observation for step in shown.steps], 2, words)
    assert line["series"][-1]["markLine"]["data"] == [{"xAxis": 2}]
    json.dumps(line, allow_nan=False)


def test_models_propose_for_what_was_seen_and_say_where_they_do_not_fit(folder: Path, tmp_path: Path) -> None:
    shown = RecordedRun(folder).episode(0)
    for observations in (2, 5):
        write_model(tmp_path / f"{observations}.safetensors", observations, 2, 0.3)
    fitting = load_model(tmp_path / "2.safetensors")
    assert np.array_equal(shown.proposal(fitting, 3), fitting.act(shown.steps[3].observation))
    with pytest.raises(UserError, match="expects observations of size 5"):
        shown.proposal(load_model(tmp_path / "5.safetensors"), 3)


def test_every_rejection_has_its_words() -> None:
    assert REJECTIONS.keys() == set(Rejection)


def test_a_decision_is_told_with_draw_and_reason() -> None:
    step = Step(0, 0, 0, np.zeros(2), np.zeros(2), Source.LOGGING_POLICY, draw=0.25, p=0.5, rejection=Rejection.LATE)
    words = decision_of(step)
    assert words.startswith("u = 0.250 ≤ p = 0.5; the routine acted; the augmentor's proposal was refused: it answered")
    plain = Step(0, 0, 0, np.zeros(2), np.zeros(2), Source.AUGMENTOR, p=1.0, augmentations_left=3)
    assert decision_of(plain) == "p = 1, nothing was drawn; the augmentor acted; 3 augmentations left"


def test_a_run_without_rewards_or_radius_has_no_shortcuts(folder: Path) -> None:
    run = RecordedRun(folder)
    run._radius = None
    episode = run.episode(0)
    assert episode.shortcuts(0) == []
    assert episode.episode.outcome is Outcome.REACHED
    assert recorded.RecordedRun(folder).gamma < 1
