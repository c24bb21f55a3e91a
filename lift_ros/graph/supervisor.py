"""Runs a graph's nodes as child processes: ordered start, prefixed logs, restarts and an ordered, bounded shutdown."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field

from lift_ros.graph.guardian import Guardian
from lift_ros.graph.restarts import GraphFailed, Restarts
from lift_ros.processes import end_with_parent

LINE_LIMIT = 65536  # bytes kept of a line without an end
_COLOURS = (36, 32, 33, 35, 34, 96, 92, 93, 95, 94)


@dataclass(frozen=True)
class ProcessSpec:
    """One supervised process: how it is started and what its end means."""

    name: str
    command: Sequence[str]
    restarts: int = 0  # how many times it is started again after an unwanted end
    ends_graph: bool = False  # its successful end completes the run
    vital: bool = True  # else the graph goes on when it has no restarts left
    quiet: bool = False  # lines go to the line handler only, never to the log
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass
class _Child:
    spec: ProcessSpec
    process: subprocess.Popen[bytes]
    pending: bytes = b""
    ended: bool = False


@dataclass(eq=False)
class Supervisor:
    """Starts processes in the given order and ends them in the same one: what asks stops before what answers."""

    specs: Sequence[ProcessSpec]
    _: KW_ONLY
    log: Callable[[str], None]
    on_line: Callable[[str, str], None] = lambda _name, _line: None
    colour: bool = field(default_factory=lambda: sys.stdout.isatty())
    grace_s: float = 10.0
    restart_delay_s: float = 0.5
    enter: Callable[[], None] = lambda: None  # what each child does first, for example join a network

    def __post_init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._children: list[_Child] = []
        self._restarts_due: list[tuple[float, ProcessSpec]] = []
        self._width = max((len(spec.name) for spec in self.specs), default=0)
        self._rule = Restarts()
        self.restarts = self._rule.counts

    def __enter__(self) -> Supervisor:
        self._guardian = Guardian(self.grace_s)
        for spec in self.specs:
            self._start(spec)
        return self

    def pid(self, name: str) -> int:
        """Return the process id of the latest process of that name."""
        return next(child.process.pid for child in reversed(self._children) if child.spec.name == name)

    def run(self, should_stop: Callable[[], bool] = lambda: False) -> None:
        """Supervise until the run is complete or `should_stop`; raise `GraphFailed` if a process gives up."""
        while not should_stop():
            self.poll(0.1)
            if self._check_ends():
                return

    def poll(self, timeout_s: float) -> None:
        """Pass on the lines that processes have written, waiting at most `timeout_s` for some."""
        now = time.monotonic()
        for due in [due for due in self._restarts_due if due[0] <= now]:
            self._restarts_due.remove(due)
            self._start(due[1])
        for key, _ in self._selector.select(timeout_s):
            self._read(key.data)

    def __exit__(self, *_: object) -> None:
        """Interrupt the processes in order, waiting for each; kill what does not end within the grace time."""
        self._restarts_due.clear()
        for child in self._children:
            self._interrupt(child)
            self._guardian.forget(child.process.pid)
        for child in self._children:
            self._drain(child)
        self._children.clear()
        self._selector.close()
        self._guardian.close()

    def _start(self, spec: ProcessSpec) -> None:
        process = subprocess.Popen(
            list(spec.command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            bufsize=0,  # reading what is there never waits
            stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONUNBUFFERED": "1", **spec.environment},
            start_new_session=True,  # Ctrl-C reaches the supervisor alone, which then ends them in order
            preexec_fn=self._begin_child,
        )
        self._guardian.watch(process.pid)
        assert process.stdout is not None
        os.set_blocking(process.stdout.fileno(), False)
        child = _Child(spec, process)
        self._children.append(child)
        self._selector.register(process.stdout, selectors.EVENT_READ, child)

    def _begin_child(self) -> None:
        """Prepare a new process: it hears Ctrl-C also where we were started to ignore it, and is told when we die."""
        self.enter()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        end_with_parent(signal.SIGTERM)

    def _read(self, child: _Child) -> bool:
        """Pass on one portion of output; return whether more may be waiting."""
        assert child.process.stdout is not None
        data = child.process.stdout.read(65536)
        if not data:
            if data is not None:  # the end, not only nothing yet
                self._forget_output(child)
            return False
        *lines, child.pending = (child.pending + data).split(b"\n")
        if len(child.pending) > LINE_LIMIT:
            lines.append(child.pending)
            child.pending = b""
        for line in lines:
            self._emit(child, line)
        return True

    def _forget_output(self, child: _Child) -> None:
        stream = child.process.stdout
        if stream is not None and not stream.closed:
            self._selector.unregister(stream)
            stream.close()
        if child.pending:
            self._emit(child, child.pending)
            child.pending = b""

    def _emit(self, child: _Child, line: bytes) -> None:
        text = line.decode(errors="replace").rstrip("\r")
        self.on_line(child.spec.name, text)
        if not child.spec.quiet and text:
            self.log(self._prefix(child.spec) + text)

    def _prefix(self, spec: ProcessSpec) -> str:
        label = f"[{spec.name:<{self._width}}] "
        if not self.colour:
            return label
        colour = _COLOURS[self.specs.index(spec) % len(_COLOURS)]
        return f"\x1b[{colour}m{label}\x1b[0m"

    def _check_ends(self) -> bool:
        for child in self._children:
            if child.ended or child.process.poll() is None:
                continue
            self._drain(child)
            child.ended = True
            self._guardian.forget(child.process.pid)
            if child.spec.ends_graph and child.process.returncode == 0:
                return True
            self._restart_or_give_up(child)
        return False

    def _restart_or_give_up(self, child: _Child) -> None:
        try:
            line = self._rule.claim(child.spec.name, child.process.returncode, child.spec.restarts)
        except GraphFailed as failure:
            if child.spec.vital:
                raise
            self.log(f"{self._prefix(child.spec)}{failure}; the graph goes on without it")
            return
        self.log(self._prefix(child.spec) + line)
        self._restarts_due.append((time.monotonic() + self.restart_delay_s, child.spec))

    def _interrupt(self, child: _Child) -> None:
        for sent in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            if child.process.poll() is not None:
                return
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.process.pid, sent)
            deadline = time.monotonic() + self.grace_s / 2
            while child.process.poll() is None and time.monotonic() < deadline:
                self.poll(0.02)
            if child.process.poll() is None:
                self.log(self._prefix(child.spec) + f"did not end on {sent.name} within {self.grace_s / 2:g} s")
        child.process.wait()

    def _drain(self, child: _Child) -> None:
        """Pass on what an ended process left in its pipe; helpers it left behind must not keep us waiting."""
        stream = child.process.stdout
        while stream is not None and not stream.closed:
            if not self._read(child):
                self._forget_output(child)
