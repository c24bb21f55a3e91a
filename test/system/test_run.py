"""`lift run` as a user drives it: complete, interrupted, continued, side by side, and failing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from lift_ros.bags.reader import RunReader, read_run
from lift_ros.collection.records import Outcome

WAIT_S = 380
STUCK = """
def stuck(observation):
    open("stuck", "w").close()
    while True:
        pass
    yield observation
"""


def start_lift(*words: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "lift_ros.cli", *map(str, words)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def finish(process: subprocess.Popen[str]) -> str:
    output, _ = process.communicate(timeout=WAIT_S)
    return output


def wait_for_episodes(run: Path, count: int) -> None:
    deadline = time.monotonic() + WAIT_S
    while len(list(run.glob("*.mcap"))) < count:
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_a_run_is_completed_continued_and_counts_its_outcomes(tmp_path: Path) -> None:
    run = tmp_path / "run"
    first = start_lift("run", "--scenario", "po-none-d2", "--out", run, "--episodes", 3, "--p", 0)
    output = finish(first)
    assert first.returncode == 0, output
    assert output.startswith(
        "3 episodes: the logging policy alone\nstarting: 0 of 4 nodes are up after 0 s, not arbiter"
    )
    assert "[recorder             ] INFO: recorder is up" in output
    assert "all 4 nodes are up after" in output
    assert f"3 episodes recorded in {run}: 3 reached" in output
    assert "[recorder" in output
    second = start_lift("run", "--scenario", "po-none-d2", "--out", run, "--episodes", 5, "--p", 0, "--quiet")
    output = finish(second)
    assert second.returncode == 0, output
    assert "2 episodes recorded" in output
    assert "[recorder" not in output
    again = start_lift("run", "--scenario", "po-none-d2", "--out", run, "--episodes", 5, "--p", 0)
    assert (finish(again), again.returncode) == (
        f"{run} is full: 5 episodes are recorded and 5 wanted; a higher --episodes adds to it\n",
        0,
    )
    assert [episode.index for episode in read_run(run)] == [0, 1, 2, 3, 4]
    other = start_lift("run", "--scenario", "po-rot-d2", "--out", run, "--episodes", 6, "--p", 0)
    output = finish(other)
    assert other.returncode == 2
    assert "is a run of scenario 'po-none-d2', not 'po-rot-d2'" in output


def test_interrupting_keeps_every_finished_episode(tmp_path: Path) -> None:
    run = tmp_path / "run"
    process = start_lift("run", "--scenario", "po-none-d2", "--out", run, "--episodes", 100000, "--p", 0)
    wait_for_episodes(run, 2)
    process.send_signal(signal.SIGINT)
    output = finish(process)
    assert process.returncode == 0, output
    outcomes = [RunReader(run).episode(index).outcome for index in RunReader(run).episode_indices]
    assert len(outcomes) >= 2
    assert set(outcomes[:-1]) == {Outcome.REACHED}


def test_a_reader_that_goes_away_ends_the_run_in_order(tmp_path: Path) -> None:
    run = tmp_path / "run"
    process = start_lift("run", "--scenario", "po-none-d2", "--out", run, "--episodes", 100000, "--p", 0)
    assert process.stdout is not None
    wait_for_episodes(run, 1)
    process.stdout.close()
    assert process.wait(WAIT_S) == 141
    assert _nodes_of(os.environ["ROS_DOMAIN_ID"]) == []
    assert len(RunReader(run).episode_indices) >= 1


def test_two_graphs_in_two_namespaces_of_one_domain_do_not_disturb_each_other(tmp_path: Path) -> None:
    processes = [
        start_lift("run", "--scenario", "po-none-d2", "--out", tmp_path / name, "--episodes", 4, "--p", 0,
                   "--seed", seed, "--namespace", name)
        for seed, name in enumerate(("left", "right"))
    ]  # fmt: skip
    outputs = [finish(process) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], outputs
    left, right = (read_run(tmp_path / name) for name in ("left", "right"))
    assert [episode.outcome for episode in [*left, *right]] == [Outcome.REACHED] * 8
    assert {episode.seed for episode in left}.isdisjoint(episode.seed for episode in right)


def test_a_run_that_reaches_no_goal_fails(tmp_path: Path) -> None:
    process = start_lift(
        "run", "--scenario", "po-none-d2", "--out", tmp_path / "run", "--episodes", 1, "--p", 0,
        "--set", "logging_policy.policy=no.such:Thing",
    )  # fmt: skip
    output = finish(process)
    assert process.returncode != 0
    assert "no.such" in output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--set", "delay=1"], "not of the form NODE.NAME=VALUE"),
        (["--mode", "evaluate"], "needs a model"),
        (["--mode", "shadow"], "mode shadow needs a model; give one with --model FILE"),
        (["--mode", "shadow", "--model", "missing"], "there is no model file missing"),
        (["--p", "60"], "--p is 60; allowed: between 0 and 1, it is a probability; 60 % is --p 0.6"),
        (["--seed", "-1"], "--seed is -1; allowed: a whole number >= 0"),
        (["--set", "arbiter.p=2.0"], "parameter p is 2.0"),
        (["--augmentation", "uniform", "--train-after", "3"], "uniform is never trained"),
        (["--augmentation", "uncertainty", "--data", "/nowhere/run"], "/nowhere/run"),
        (["--page", "--page-address", "8765"], "the page's address is '8765'; allowed: HOST:PORT"),
        (["--page", "--page-address", "192.0.2.1:80"], "the page cannot listen on 192.0.2.1:80"),
        (["--page", "--isolated"], "leave one of --isolated and --page out"),
    ],
)
def test_bad_wishes_end_with_one_sentence(tmp_path: Path, words: list[str], message: str) -> None:
    process = start_lift("run", "--scenario", "po-none-d2", "--out", tmp_path / "run", *words)
    output = finish(process)
    assert process.returncode == 2
    assert message in output
    assert "Traceback" not in output and "[arbiter" not in output  # no node was started
    assert not (tmp_path / "run").exists()


def test_a_run_serves_its_page_until_it_ends(tmp_path: Path) -> None:
    pytest.importorskip("nicegui", reason="pip install 'lift_ros[page]'")
    words = ("--scenario", "po-none-d2", "--out", tmp_path / "run", "--episodes", 100000, "--p", 0)
    process = start_lift("run", *words, "--page", "--page-address", "127.0.0.1:0")
    assert process.stdout is not None
    line = next(line for line in process.stdout if "the page is at " in line)
    with urllib.request.urlopen(line.split("the page is at ")[1].strip(), timeout=WAIT_S) as answer:
        assert "EMERGENCY STOP" in answer.read().decode()
    wait_for_episodes(tmp_path / "run", 1)
    process.send_signal(signal.SIGINT)
    output = finish(process)
    assert process.returncode == 0, output
    assert "Traceback" not in output


def test_killing_lift_run_leaves_no_node_behind(tmp_path: Path) -> None:
    run = tmp_path / "run"
    process = start_lift("run", "--scenario", "po-none-d2", "--out", run, "--episodes", 100000, "--p", 0)
    wait_for_episodes(run, 1)
    process.kill()
    process.wait()
    deadline = time.monotonic() + WAIT_S
    while _nodes_of(os.environ["ROS_DOMAIN_ID"]):
        assert time.monotonic() < deadline
        time.sleep(0.2)
    assert process.stdout is not None
    process.stdout.close()


def test_a_stuck_routine_dies_with_lift_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_routine.py").write_text(STUCK)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    process = start_lift(
        "run", "--scenario", "po-none-d2", "--out", tmp_path / "run", "--episodes", 1, "--p", 0,
        "--set", "logging_policy.policy=my_routine:stuck",
    )  # fmt: skip
    deadline = time.monotonic() + WAIT_S
    while not (tmp_path / "stuck").exists():
        assert time.monotonic() < deadline
        time.sleep(0.1)
    process.kill()
    process.wait()
    while _nodes_of(os.environ["ROS_DOMAIN_ID"]):
        assert time.monotonic() < deadline
        time.sleep(0.2)
    assert process.stdout is not None
    process.stdout.close()


def test_an_isolated_graph_collects_where_nobody_sees_it(tmp_path: Path) -> None:
    run = tmp_path / "run"
    words = ["--scenario", "po-none-d2", "--out", run, "--episodes", 2, "--p", 0]
    process = start_lift("run", *words, "--isolated")
    output = finish(process)
    if "allows no private network" in output:
        assert process.returncode == 2
        pytest.skip(output)
    assert process.returncode == 0, output
    assert "the graph has a network of its own" in output
    assert [episode.outcome for episode in read_run(run)] == [Outcome.REACHED] * 2


def test_an_isolated_graph_has_no_use_for_hardware_outside(tmp_path: Path) -> None:
    words = ["--scenario", "po-none-d2", "--out", tmp_path / "run", "--plant", "hardware"]
    process = start_lift("run", *words, "--isolated")
    assert "--isolated keeps everybody out, also your plant node" in finish(process)
    assert process.returncode == 2


def _nodes_of(domain: str) -> list[str]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                environment = (entry / "environ").read_bytes()
                command = (entry / "cmdline").read_bytes().decode(errors="replace")
            except OSError:
                continue
            if f"ROS_DOMAIN_ID={domain}\0".encode() in environment and "lift_ros.nodes" in command:
                found.append(command)
    return found
