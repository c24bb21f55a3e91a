"""The live view shows what the monitor reports, on a terminal and in a log file."""

from __future__ import annotations

import io
import json
import re

import pytest

from lift_ros.graph.live_view import LiveView, RunStatus, render, sparkline


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def terminal_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw as on most terminals, whatever the tests are started from."""
    monkeypatch.setenv("TERM", "xterm")


def test_sparkline_rises_with_the_values() -> None:
    assert sparkline([0, 1, 2, 3, 4, 5, 6, 7]) == "▁▂▃▄▅▆▇█"


def test_sparkline_of_equal_values_is_flat() -> None:
    assert sparkline([2.0, 2.0]) == "▁▁"


def test_sparkline_keeps_the_newest_values() -> None:
    assert len(sparkline([float(i) for i in range(100)], width=10)) == 10


def test_sparkline_leaves_out_nan() -> None:
    assert sparkline([float("nan"), 1.0]) == "▁"
    assert sparkline([]) == ""


@pytest.mark.parametrize("line", ["", "no json", "[1]", "3"])
def test_lines_that_are_no_reports_are_ignored(line: str) -> None:
    assert RunStatus.from_json(line) is None


def test_unknown_keys_of_a_newer_monitor_are_ignored() -> None:
    status = RunStatus.from_json(json.dumps({"episode": 3, "colour": "blue"}))
    assert status is not None
    assert status.episode == 3


def test_shares_are_shown_in_percent() -> None:
    text = render(
        RunStatus(episodes_done=4, episodes_seen=4, episodes_reached=3, steps_done=10, augmented_steps=2), 8, 12.0
    )
    assert "success 75%" in text
    assert "augmented 20%" in text
    assert "about 12 s left" in text


def test_nothing_done_yet_gives_no_division_by_zero() -> None:
    assert "success –" in render(RunStatus(), None, 0.0)


def test_trouble_stands_on_a_line_of_its_own() -> None:
    assert render(RunStatus(trouble="recorder: disk full"), None, 0.0).splitlines()[-1] == "! recorder: disk full"


def test_a_log_file_gets_a_line_per_interval() -> None:
    now = [0.0]
    stream = io.StringIO()
    view = LiveView(5, stream=stream, plain_interval_s=5.0, clock=lambda: now[0])
    for second in range(11):
        now[0] = float(second)
        view.update(RunStatus(episode=second))
    assert len(stream.getvalue().splitlines()) == 3


def test_until_the_first_step_it_says_which_nodes_are_up() -> None:
    now, stream = [0.0], io.StringIO()
    view = LiveView(5, starting=["arbiter", "recorder"], stream=stream, plain_interval_s=5.0, clock=lambda: now[0])
    view.refresh()
    now[0] = 3.0
    view.node_up("recorder")
    view.refresh()  # too early for another line
    now[0] = 6.0
    view.refresh()
    now[0] = 7.0
    view.node_up("arbiter")
    view.refresh()
    view.update(RunStatus(steps_done=1))
    now[0] = 13.0
    view.update(RunStatus(steps_done=1, trouble="recorder: disk full"))
    assert [line.split(";")[0] for line in stream.getvalue().splitlines()[:3]] == [
        "starting: 0 of 2 nodes are up after 0 s, not arbiter, recorder",
        "starting: 1 of 2 nodes are up after 6 s, not arbiter",
        "all 2 nodes are up after 7 s",
    ]
    assert stream.getvalue().splitlines()[3].startswith("episodes 0 of 5")


def test_a_reader_that_went_away_is_noticed_and_nothing_is_printed_any_more() -> None:
    class Gone(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    view = LiveView(stream=Gone())
    assert not view.reader_gone
    view.log("[arbiter] hello")
    view.close()
    assert view.reader_gone


def test_a_terminal_redraws_in_place_below_the_log() -> None:
    stream = Terminal()
    view = LiveView(stream=stream)
    view.update(RunStatus(episode=1))
    view.log("[arbiter] hello")
    view.update(RunStatus(episode=2))
    view.close()
    text = re.sub(r"\x1b\[[?0-9;]*[A-Za-z]", "", stream.getvalue())
    assert text.count("[arbiter] hello\n") == 1
    assert text.index("episode 1, step 0") < text.index("[arbiter] hello") < text.index("episode 2, step 0")
    assert stream.getvalue().count("\x1b[1A\x1b[2K") >= 2  # what was drawn before is taken away
    assert text.rstrip().endswith("augmented –")


def test_the_guard_says_what_is_in_force_and_why() -> None:
    assert "guard p=0.3, budget 2: starts small" in render(RunStatus(guard="p=0.3, budget 2: starts small"), None, 1.0)


def test_a_terminal_that_takes_lines_alone_gets_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    stream = Terminal()
    view = LiveView(stream=stream)
    view.update(RunStatus(episode=1))
    assert "episode 1, step 0" in stream.getvalue() and stream.getvalue().endswith("\n")
