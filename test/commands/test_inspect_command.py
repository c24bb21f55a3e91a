from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from sample_run import drive, write_run

from lift_ros.cli import main
from lift_ros.collection.records import Outcome


@pytest.fixture
def runs(tmp_path: Path) -> tuple[Path, Path]:
    slow = write_run(tmp_path / "slow", [drive(0, 10), drive(1, 8), drive(2, 6, outcome=Outcome.ABORTED)])
    quick = write_run(tmp_path / "quick", [drive(0, 2, augmented=1), drive(1, 2, augmented=2)])
    return slow, quick


def inspected(capsys: pytest.CaptureFixture[str], *words: object) -> list[dict[str, Any]]:
    assert main(["inspect", *map(str, words), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)["runs"]
    assert isinstance(result, list)
    return result


def test_programs_get_every_episode_and_score(runs: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    slow, quick = inspected(capsys, *runs)
    assert [line["steps"] for line in slow["table"]] == [10, 8, 6]
    assert [line["outcome"] for line in slow["table"]] == ["reached", "reached", "aborted"]
    assert slow["table"][2]["reason"] == "told so"
    assert slow["table"][0]["duration"] == pytest.approx(1.0)
    assert slow["table"][0]["rate"] == pytest.approx(10.0)
    assert slow["outcomes"] == {"reached": 2, "aborted": 1}
    assert slow["success"] == pytest.approx(2 / 3)
    assert (slow["rewards"], slow["gaps"], slow["augmented"]) == ("measured", 0, 0)
    assert quick["augmented"] == 0.75
    assert [line["augmentations"] for line in quick["table"]] == [1, 2]
    assert quick["scores"]["trajectory_quality"] == pytest.approx(1.0)
    assert slow["scores"]["trajectory_quality"] < quick["scores"]["trajectory_quality"]
    assert slow["scores"]["coverage"] == 1.0 > quick["scores"]["coverage"]
    assert slow["mean_return"] < quick["mean_return"] < 0


def test_people_get_tables(runs: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", *map(str, runs)]) == 0
    output = capsys.readouterr().out
    for word in ("aborted:", "trajectory", "coverage", "steps/episode", str(runs[1])):
        assert word in output


def test_says_how_a_run_moves_and_what_that_rests_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = tmp_path / "walk"
    assert main(["collect", "--scenario", "po-sqrt-d2", "--out", str(run), "--episodes", "12", "--seed", "3"]) == 0
    capsys.readouterr()
    assert main(["inspect", str(run), "--json"]) == 0
    (motion,) = json.loads(capsys.readouterr().out)["motion"]
    assert motion["kappa"] == pytest.approx(0.5, abs=0.1)
    assert (motion["run"], motion["source"], motion["episodes"]) == (str(run), "positions", 12)
    assert motion["evidence"]["error"] < 0.7 * motion["evidence"]["linear_error"]
    assert main(["inspect", str(run)]) == 0
    output = " ".join(capsys.readouterr().out.split())
    assert f"{run}: κ = {motion['kappa']:.2f}, since {motion['reason']}" in output and "linear error" in output


def test_a_run_that_tells_nothing_of_its_motion_says_why(
    runs: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["inspect", str(runs[0])]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "κ = 0.00, since fewer than 5 episodes tell too little" in printed


def test_says_before_training_what_a_run_is_good_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    facts = {"parameters": {"plant": {"action_radius": 0.01}}}
    run = write_run(tmp_path / "run", [drive(number, 8) for number in range(6)], facts)
    empty = write_run(tmp_path / "empty", [drive(0, 0, outcome=Outcome.ABORTED)])
    assert main(["inspect", str(run), str(empty)]) == 0
    told = capsys.readouterr().out.partition("before training on")[2]
    for word in ("steps: 48", "λ: 0.01", "arrivals: 6 of 6", "direction: ", "warning: λ is 0.01", "deviation"):
        assert word in told
    assert "nothing, since there is no step in it" in told
    assert all(len(line) <= 80 for line in told.splitlines()[1:] if str(empty) not in line)
    assert main(["inspect", str(run), str(empty), "--json"]) == 0
    known, unknown = json.loads(capsys.readouterr().out)["preflight"]
    assert (known["arrivals"], known["radius"]["longer"], unknown) == (6, 1.0, None)


def test_reference_run_can_be_chosen(runs: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    slow, quick = inspected(capsys, *runs, "--reference", runs[1])
    assert quick["scores"]["coverage"] == 1.0 < slow["scores"]["coverage"]
    assert main(["inspect", str(runs[0]), "--reference", str(runs[1])]) == 2
    assert "none of the runs to inspect" in capsys.readouterr().err


def test_references_of_the_return_can_be_given(runs: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    (slow,) = inspected(capsys, runs[0], "--lowest-return", -100, "--highest-return", 0)
    assert slow["scores"]["trajectory_quality"] == pytest.approx(1 + slow["mean_return"] / 100)
    assert main(["inspect", str(runs[0]), "--lowest-return", "-3"]) == 2
    assert "belong together" in capsys.readouterr().err


def test_rewards_in_hindsight(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    measured = write_run(tmp_path / "measured", [drive(0, 4)])
    episodes = [drive(0, 4, rewarded=False), drive(1, 4, rewarded=False, outcome=Outcome.ABORTED)]
    hidden = write_run(tmp_path / "hidden", episodes)
    blind = write_run(tmp_path / "blind", [drive(0, 4, rewarded=False, outcome=Outcome.STEP_LIMIT)])
    known, labelled, unknown = inspected(capsys, measured, hidden, blind)
    assert (labelled["rewards"], unknown["rewards"]) == ("hindsight, 1 unknown", "unknown")
    assert labelled["table"][0]["episode_return"] == pytest.approx(known["mean_return"])
    assert labelled["mean_return"] == pytest.approx(known["mean_return"])
    assert labelled["table"][1]["episode_return"] is None
    assert labelled["scores"]["trajectory_quality"] == pytest.approx(known["scores"]["trajectory_quality"])
    assert unknown["mean_return"] is None
    assert unknown["scores"]["trajectory_quality"] is None


def test_gaps_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torn = drive(0, 10)
    for step in torn.steps[5:]:
        step.time_ns += 3_000_000_000
    torn.end_time_ns += 3_000_000_000
    (summary,) = inspected(capsys, write_run(tmp_path / "run", [torn, drive(1, 10)]))
    assert [line["gaps"] for line in summary["table"]] == [1, 0]
    assert summary["table"][0]["longest_pause"] == pytest.approx(3.1)
    assert summary["gaps"] == 1


def test_action_radius_of_the_scenario_is_the_bar(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    facts = {"parameters": {"plant": {"action_radius": 5.0}}}
    (plain,) = inspected(capsys, write_run(tmp_path / "plain", [drive(0, 4)]))
    (known,) = inspected(capsys, write_run(tmp_path / "known", [drive(0, 4)], facts))
    assert known["scores"]["trajectory_quality"] < plain["scores"]["trajectory_quality"] == pytest.approx(1.0)
    assert known["facts"]["parameters"] == facts["parameters"]


def test_long_tables_are_cut_unless_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = str(write_run(tmp_path / "run", [drive(index, 1) for index in range(25)]))
    assert main(["inspect", run]) == 0
    assert "… and 5 more; --all shows them" in capsys.readouterr().out
    assert main(["inspect", run, "--all"]) == 0
    assert "--all shows them" not in capsys.readouterr().out


def test_bad_episodes_are_left_out_and_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = write_run(tmp_path / "run", [drive(index, 3) for index in range(3)])
    file = sorted(run.glob("*.mcap"))[1]
    file.write_bytes(file.read_bytes()[:200])
    assert main(["inspect", str(run)]) == 2
    assert "episode 1" in capsys.readouterr().err
    (summary,) = inspected(capsys, run, "--skip-bad")
    assert [line["episode"] for line in summary["table"]] == [0, 2]
    assert any("episode 1" in line for line in summary["left_out"])


def test_nothing_to_inspect_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect"]) == 2
    assert "name at least one RUN" in capsys.readouterr().err
    assert main(["inspect", str(tmp_path / "absent")]) == 2
    assert "does not exist" in capsys.readouterr().err


def test_plots_are_written_for_each_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = [write_run(tmp_path / side / "run", [drive(0, 5), drive(1, 4, augmented=2)]) for side in ("a", "b")]
    folder = tmp_path / "plots"
    assert main(["inspect", *map(str, runs), "--plots", str(folder)]) == 0
    names = [f"run-{number}-{what}.png" for number in (0, 1) for what in ("distances", "shortcuts", "trajectories")]
    assert sorted(path.name for path in folder.iterdir()) == names
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in folder.iterdir())
    output = capsys.readouterr().out
    assert f"{folder / names[0]} written" in output
    for word in ("Theorem", "contracting", "shortcuts"):
        assert word in output


def test_programs_get_the_shortcuts_of_each_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = write_run(tmp_path / "run", [drive(0, 5), drive(1, 4)], {"parameters": {"plant": {"action_radius": 2.0}}})
    assert main(["inspect", str(run), "--plots", str(tmp_path / "plots"), "--json"]) == 0
    (shortcuts,) = json.loads(capsys.readouterr().out)["shortcuts"]
    assert (shortcuts["run"], shortcuts["episodes"], shortcuts["action_radius"]) == (str(run), 2, 2.0)
    assert shortcuts["by_length"] == [None, 1, 1, 1, 1, 1]
    assert shortcuts["contracting"] == 1


def test_unknown_distances_are_not_plotted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    blind = write_run(tmp_path / "blind", [drive(0, 4, rewarded=False, outcome=Outcome.STEP_LIMIT)])
    still = write_run(tmp_path / "still", [drive(0, 0, outcome=Outcome.ABORTED)])
    assert main(["inspect", str(blind), str(still), "--plots", str(tmp_path / "plots")]) == 0
    assert [path.name for path in (tmp_path / "plots").iterdir()] == ["blind-trajectories.png"]
    assert "Trajectory quality needs rewards" in capsys.readouterr().out


def test_expertness_of_a_scenario(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["inspect", "--scenario", "po-blend-d2", "--episodes", "2"]
    assert main([*words, "--plots", str(tmp_path), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    steps = [entry["step"] for entry in result["expertness"]]
    means = [entry["mean"] for entry in result["expertness"]]
    assert steps == sorted(steps)
    assert means == sorted(means, reverse=True)
    assert result["plots"] == [str(tmp_path / "po-blend-d2-expertness.png")]
    assert (tmp_path / "po-blend-d2-expertness.png").exists()
    assert main(words) == 0
    assert "initial step l" in capsys.readouterr().out


def test_steps_of_routine_and_lift_are_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)  # so that the run's name fits into its column
    write_run(Path("mixed"), [drive(0, 10), drive(1, 8), drive(2, 2, augmented=1)])
    assert main(["inspect", "mixed"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any("logging policy" in line and line.split()[-3:] == ["2", "1", "9"] for line in lines)
    assert any("LIFT collection" in line and line.split()[-3:] == ["1", "1", "2"] for line in lines)


def test_a_model_file_says_what_it_is_beside_runs(
    runs: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, model = tmp_path / "walk", tmp_path / "policy"
    assert main(["collect", "--scenario", "po-none-d2", "--out", str(run), "--episodes", "5", "--quiet"]) == 0
    assert main(["train", str(run), "--out", str(model), "--updates", "3", "--option", "hidden=8x6", "--json"]) == 0
    digest = json.loads(capsys.readouterr().out.splitlines()[-1])["hash"]
    assert main(["inspect", str(model), str(runs[0]), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert [line["run"] for line in printed["runs"]] == [str(runs[0])]
    (said,) = printed["models"]
    assert (said["hash"], said["algorithm"], said["action_radius"]) == (digest, "CQL", 0.3)
    assert (said["actor"], said["critics"], said["scaled"]) == ([2, 8, 6, 2], 2, True)
    assert said["training"]["options"]["hidden"] == [8, 6]
    assert main(["inspect", str(model)]) == 0
    output = capsys.readouterr().out
    for words in ("2 → 8 → 6 → 2, 2", "hidden=[8, 6]", "updates=3", digest[:16], "walk", "lift evaluate"):
        assert words in output


def test_a_model_of_an_earlier_version_says_what_it_knows(capsys: pytest.CaptureFixture[str]) -> None:
    folder = Path(__file__).parents[1] / "fixtures" / "version_0_1"
    assert main(["inspect", *(str(path) for path in sorted(folder.glob("*.safetensors")))]) == 0
    output = capsys.readouterr().out
    assert "not known to the version that wrote it: motion" in " ".join(output.split())
    assert "TD3PlusBC" in output


def test_a_missing_model_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(tmp_path / "none.safetensors")]) == 2
    assert "there is no model file" in capsys.readouterr().err


def test_pictures_are_told_with_format_and_size_and_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    episodes = [drive(0, 6, pictures=True), drive(1, 3, augmented=2, pictures=True)]
    run, blind = write_run(tmp_path / "seen", episodes), write_run(tmp_path / "blind", [drive(0, 6)])
    assert main(["inspect", str(run), str(blind), "--plots", str(tmp_path / "plots")]) == 0
    output = capsys.readouterr().out
    assert f"pictures of {run}: 11 of 6×4 rgb8, 0.072 kB each" in output
    assert f"pictures of {blind}" not in output
    assert sorted(path.name for path in (tmp_path / "plots").glob("frames-*.png")) == [
        "frames-seen-LIFT-collection.png",
        "frames-seen-logging-policy.png",
    ]
    told, untold = inspected(capsys, run, blind)
    assert (told["pictures"], untold["pictures"]) == ([{"format": "6×4 rgb8", "count": 11, "bytes": 792}], [])
