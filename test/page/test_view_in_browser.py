"""`lift view` as a person uses it: two runs side by side in a real browser, sorted, opened and walked through."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator

import pytest
from browser import Browser, browser, require_browser

from lift_ros.cli import main

pytest.importorskip("nicegui", reason="pip install 'lift_ros[page]'")
require_browser()

RIGHT = "\ue014"


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """An open page with a run of values and a run of pictures."""
    folder = tmp_path_factory.mktemp("view")
    for scenario, name in (("po-blend-d2", "plain"), ("light-tunnel", "seen")):
        words = (
            f"--scenario {scenario} --episodes 30 --train-after 0 --guard off --augmentation uniform --p 0.5 --quiet"
        )
        assert main(["collect", *words.split(), "--out", str(folder / name)]) == 0
    command = [sys.executable, "-m", "lift_ros.cli", "view", "plain", "seen", "--address", "127.0.0.1:0"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as process, browser() as window:
        try:
            assert process.stdout is not None
            url = re.findall(r"http\S+", process.stdout.readline())[0]
            window.open(url)
            yield window
            assert window.hosts() == {url[7:-1]}
        finally:
            process.terminate()
        assert process.wait(60) == 0


def part(window: Browser, run: int, selector: str) -> str:
    """Return the text of a part of one run's pane."""
    find = "return document.querySelector(`#run-${arguments[0]} ${arguments[1]}`)?.innerText ?? ''"
    return str(window.run(find, run, selector))


def steps_in_table(window: Browser, run: int) -> list[int]:
    rows = "[...document.querySelectorAll(`#run-${arguments[0]} tbody tr`)].filter(row => row.cells.length > 3)"
    return [int(text) for text in window.run(f"return {rows}.map(row => row.cells[3].innerText)", run)]


def test_both_runs_stand_side_by_side_and_the_first_episode_is_open(window: Browser) -> None:
    for run in (0, 1):
        window.wait("the episode", lambda run=run: part(window, run, ".lift-opened").startswith("0 · reached"))
    assert "1-8 of 30" in part(window, 0, ".lift-run-card")


def test_a_walk_through_steps_shows_decisions_and_proposals(window: Browser) -> None:
    slider = window.driver.find_element("css selector", "#run-0 .lift-scrub [tabindex]")
    slider.send_keys(RIGHT * 3)
    window.wait("the step", lambda: part(window, 0, ".lift-place").startswith("3 of"))
    assert part(window, 0, ".lift-decision").startswith("u = ")
    assert "routine proposes" in part(window, 0, ".lift-proposals")
    assert part(window, 1, ".lift-place").startswith("0 of")


def test_pictures_are_shown_where_there_are_some(window: Browser) -> None:
    assert window.run("return document.querySelector('#run-1 .lift-picture').src.startsWith('data:image/png')")
    assert not window.run("return !!document.querySelector('#run-0 .lift-picture').offsetParent")


def test_the_table_is_sorted_by_steps_and_opens_what_is_clicked(window: Browser) -> None:
    window.run("document.querySelectorAll('#run-0 thead th')[3].click()")
    window.wait("the order", lambda: steps_in_table(window, 0) == sorted(steps_in_table(window, 0)))
    window.run("document.querySelectorAll('#run-0 thead th')[3].click()")
    window.wait("the other", lambda: steps_in_table(window, 0) == sorted(steps_in_table(window, 0), reverse=True))
    most = steps_in_table(window, 0)[0]
    window.run("document.querySelector('#run-0 tbody tr').click()")
    window.wait("the episode", lambda: part(window, 0, ".lift-opened").endswith(f"{most} steps"))
