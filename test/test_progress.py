from __future__ import annotations

import io
import re

import pytest

from lift_ros.progress import BAR_WIDTH, Progress, format_seconds


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def terminal_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw as on most terminals, whatever the tests are started from."""
    monkeypatch.setenv("TERM", "xterm")


def plain(text: str) -> str:
    """Return what a terminal shows, without its control sequences."""
    return re.sub(r"\x1b\[[?0-9;]*[A-Za-z]", "", text)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize(("seconds", "text"), [(0, "0:00"), (59.6, "1:00"), (61, "1:01"), (3725, "1:02:05")])
def test_durations(seconds: float, text: str) -> None:
    assert format_seconds(seconds) == text


def test_disabled_is_silent() -> None:
    stream = io.StringIO()
    with Progress(3, "collecting", enabled=False, stream=stream) as bar:
        bar.advance(3)
    assert stream.getvalue() == ""
    assert bar.done == 3


def test_rate_and_time_left() -> None:
    clock = Clock()
    with Progress(10, "collecting", unit="episodes", stream=io.StringIO(), clock=clock) as bar:
        clock.now += 8
        bar.advance(4, note="12 steps")
        assert bar.text() == "collecting 4/10 episodes, 0.5 episodes/s, 0:12 left, 12 steps"
        bar.advance(6)
        assert bar.text() == "collecting 10/10 episodes, 1.25 episodes/s, in 0:08, 12 steps"


def test_a_log_file_gets_a_line_every_few_seconds_and_one_at_the_end() -> None:
    clock, stream = Clock(), io.StringIO()
    with Progress(100, "training", stream=stream, clock=clock) as bar:
        for _ in range(100):
            clock.now += 0.1
            bar.advance()
    lines = stream.getvalue().splitlines()
    assert 2 <= len(lines) <= 4
    assert lines[-1].startswith("training 100/100 steps")
    assert "\r" not in stream.getvalue()


def test_a_terminal_gets_a_bar_on_one_line() -> None:
    clock, stream = Clock(), Terminal()
    with Progress(4, "training", stream=stream, clock=clock) as bar:
        for _ in range(4):
            clock.now += 1
            bar.advance()
    assert stream.getvalue().count("\n") == 1
    states = [plain(state) for state in stream.getvalue().split("\r")]
    assert "━" * BAR_WIDTH + " training 4/4 steps, 1 steps/s, in 0:04" in states[-1]
    assert any("training 2/4 steps, 1 steps/s, 0:02 left" in state for state in states)


def test_what_does_not_fit_goes_on_below_and_nothing_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    stream = Terminal()
    with Progress(4, "training", unit="updates", stream=stream, clock=Clock()) as bar:
        bar.advance(4, note="critic -71.8, conservative -72.4, actor 1.1, temp 2.65")
    last = plain(stream.getvalue().split("\r")[-1])
    assert max(map(len, last.splitlines())) <= 40
    assert bar.text() in " ".join(last.replace("━", "").split())


def test_brackets_in_a_note_are_shown_as_they_are() -> None:
    stream = Terminal()
    with Progress(4, "training", stream=stream) as bar:
        bar.advance(4, note="loss [0.1]")
    assert "loss [0.1]" in plain(stream.getvalue())


def test_the_state_is_shown_when_the_job_fails() -> None:
    stream = io.StringIO()
    with pytest.raises(RuntimeError), Progress(4, "training", stream=stream) as bar:
        bar.advance(2)
        raise RuntimeError
    assert "training 2/4 steps" in stream.getvalue()


def test_nothing_to_do() -> None:
    stream = Terminal()
    with Progress(0, "training", stream=stream) as bar:
        pass
    assert bar.text() == "training 0/0 steps"


def test_a_terminal_that_takes_lines_alone_gets_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    clock, stream = Clock(), Terminal()
    with Progress(4, "training", stream=stream, clock=clock) as bar:
        for _ in range(4):
            clock.now += 5
            bar.advance()
    assert stream.getvalue().startswith("training 1/4 steps, 0.2 steps/s, 0:15 left\n")
