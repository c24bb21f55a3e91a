"""The supervisor starts, watches, restarts and ends real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from lift_ros.collection.interruption import stop_on_signals
from lift_ros.graph.guardian import left_behind
from lift_ros.graph.restarts import GraphFailed
from lift_ros.graph.supervisor import ProcessSpec, Supervisor

WAIT_FOREVER = "import time\nprint('ready', flush=True)\nwhile True: time.sleep(0.05)"
STUBBORN = """
import signal, time
for number in (signal.SIGINT, signal.SIGTERM): signal.signal(number, signal.SIG_IGN)
print('ready', flush=True)
while True: time.sleep(0.05)
"""
SAY_INTERRUPTED = """
import signal, sys, time
signal.signal(signal.SIGINT, lambda *_: (print('interrupted', flush=True), sys.exit(0)))
print('ready', flush=True)
while True: time.sleep(0.02)
"""


def ignore_interrupts() -> None:
    """Do in a new process what a script does with `&`."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def script(name: str, code: str, **options: object) -> ProcessSpec:
    return ProcessSpec(name, [sys.executable, "-S", "-c", code], **options)  # type: ignore[arg-type]


def wait_until(condition, supervisor: Supervisor, timeout: float = 60.0) -> None:  # type: ignore[no-untyped-def]
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline
        supervisor.poll(0.05)


def alive(pid: int) -> bool:
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False


def test_the_graph_is_complete_when_its_ending_process_succeeds() -> None:
    lines: list[str] = []
    specs = [script("arbiter", "print('done')", ends_graph=True), script("plant", WAIT_FOREVER)]
    with Supervisor(specs, log=lines.append, colour=False) as supervisor:
        supervisor.run()
    assert "[arbiter] done" in lines


def test_all_output_of_a_process_that_ends_at_once_is_shown() -> None:
    lines: list[str] = []
    code = "import sys\nsys.stdout.write('x\\n' * 5000)\nsys.stdout.write('last')"
    with Supervisor([script("a", code, ends_graph=True)], log=lines.append, colour=False) as supervisor:
        supervisor.run()
    assert len(lines) == 5001
    assert lines[-1] == "[a] last"


def test_a_failing_process_without_restarts_fails_the_graph() -> None:
    with (
        Supervisor([script("plant", "raise SystemExit(3)")], log=lambda _: None) as supervisor,
        pytest.raises(GraphFailed, match="plant ended with status 3"),
    ):
        supervisor.run()


def test_the_ending_process_must_succeed_to_complete_the_graph() -> None:
    with (
        Supervisor([script("arbiter", "raise SystemExit(1)", ends_graph=True)], log=lambda _: None) as supervisor,
        pytest.raises(GraphFailed, match="status 1"),
    ):
        supervisor.run()


def test_a_killed_process_is_started_again(tmp_path: Path) -> None:
    lines: list[str] = []
    spec = script("augmentor", SAY_INTERRUPTED, restarts=2)
    with Supervisor([spec], log=lines.append, colour=False, restart_delay_s=0.01) as supervisor:
        wait_until(lambda: lines.count("[augmentor] ready") == 1, supervisor)
        os.kill(supervisor.pid("augmentor"), signal.SIGKILL)
        supervisor.run(lambda: lines.count("[augmentor] ready") == 2)
    assert "[augmentor] was ended by SIGKILL; restart 1 of 2" in lines
    assert supervisor.restarts == {"augmentor": 1}


def test_restarts_are_limited() -> None:
    spec = script("augmentor", "raise SystemExit(1)", restarts=2)
    with (
        Supervisor([spec], log=lambda _: None, restart_delay_s=0.01) as supervisor,
        pytest.raises(GraphFailed, match="2 allowed"),
    ):
        supervisor.run()


def test_what_refuses_its_input_is_not_started_again() -> None:
    spec = script("plant", "raise SystemExit(2)", restarts=5)
    with (
        Supervisor([spec], log=lambda _: None, restart_delay_s=0.01) as supervisor,
        pytest.raises(GraphFailed, match="refused its input"),
    ):
        supervisor.run()
    assert supervisor.restarts == {}


def test_processes_end_in_the_order_of_the_table() -> None:
    ended: list[str] = []
    ready: list[str] = []

    def note(name: str, line: str) -> None:
        (ready if line == "ready" else ended).append(name)

    specs = [script(name, SAY_INTERRUPTED) for name in ("arbiter", "plant", "recorder")]
    with Supervisor(specs, on_line=note, log=lambda _: None) as supervisor:
        wait_until(lambda: len(ready) == 3, supervisor)
    assert ended == ["arbiter", "plant", "recorder"]


def test_a_process_that_ignores_signals_is_killed() -> None:
    lines: list[str] = []
    with Supervisor([script("stubborn", STUBBORN)], log=lines.append, colour=False, grace_s=0.4) as supervisor:
        wait_until(lambda: "[stubborn] ready" in lines, supervisor)
        pid = supervisor.pid("stubborn")
    assert not alive(pid)
    assert any("did not end on SIGTERM" in line for line in lines)


def test_prefixes_are_coloured_on_request() -> None:
    lines: list[str] = []
    with Supervisor([script("a", "print('x')", ends_graph=True)], log=lines.append, colour=True) as supervisor:
        supervisor.run()
    assert lines == ["\x1b[36m[a] \x1b[0mx"]


def test_the_graph_goes_on_without_what_is_not_vital() -> None:
    lines: list[str] = []
    specs = [
        script("page", "raise SystemExit(2)", vital=False),
        script("arbiter", "import time; time.sleep(0.5)", ends_graph=True),
    ]
    with Supervisor(specs, log=lines.append) as supervisor:
        supervisor.run()
    told = "[page   ] page refused its input and would do so again; its log says why; the graph goes on without it"
    assert lines == [told]


def test_quiet_processes_speak_to_the_handler_alone() -> None:
    lines: list[str] = []
    heard: list[tuple[str, str]] = []
    spec = script("monitor", "print('{}')", ends_graph=True, quiet=True)
    with Supervisor([spec], on_line=lambda *args: heard.append(args), log=lines.append) as supervisor:
        supervisor.run()
    assert heard == [("monitor", "{}")]
    assert lines == []


@pytest.mark.parametrize("child", [WAIT_FOREVER, STUBBORN], ids=["child that ends when told to", "stuck child"])
@pytest.mark.parametrize("prepare", [None, ignore_interrupts], ids=["foreground", "background of a script"])
def test_children_do_not_outlive_a_killed_supervisor(child: str, prepare: Callable[[], None] | None) -> None:
    code = f"""
import sys
from lift_ros.graph.supervisor import ProcessSpec, Supervisor
spec = ProcessSpec('child', [sys.executable, '-S', '-c', {child!r}])
with Supervisor([spec], log=print, grace_s=0.5) as supervisor:
    print(supervisor.pid('child'), flush=True)
    supervisor.run()
"""
    parent = subprocess.Popen([sys.executable, "-uc", code], stdout=subprocess.PIPE, text=True, preexec_fn=prepare)
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    assert "ready" in parent.stdout.readline()
    parent.kill()
    parent.wait()
    parent.stdout.close()
    deadline = time.monotonic() + 60
    while alive(pid):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_children_hear_the_interruption_that_their_supervisor_was_started_to_ignore() -> None:
    code = f"""
import sys
from lift_ros.graph.supervisor import ProcessSpec, Supervisor
lines = []
spec = ProcessSpec('child', [sys.executable, '-S', '-c', {WAIT_FOREVER!r}])
with Supervisor([spec], log=lines.append) as supervisor:
    supervisor.run(lambda: bool(lines))
print(*lines)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, preexec_fn=ignore_interrupts
    )
    assert "KeyboardInterrupt" in done.stdout, done.stderr
    assert "did not end" not in done.stdout


def test_the_guardian_kills_whom_it_was_not_told_to_forget() -> None:
    assert left_behind(["+12\n", "+13\n", "-12\n", "+14\n"]) == [13, 14]


def test_signals_only_set_a_flag_within_the_context() -> None:
    before = signal.getsignal(signal.SIGINT)
    with stop_on_signals() as stopped:
        assert not stopped()
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0)
        assert stopped()
    assert signal.getsignal(signal.SIGINT) is before
