"""What the page of the operator costs the graph, in turns of one run, and how long an emergency stop takes."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from argparse import Namespace
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmark.timing import RESULTS, markdown_table, replace_section
from lift_ros.bags.reader import RunReader
from lift_ros.graph.domains import reserved_domain
from lift_ros.graph.run import node_command
from lift_ros.graph.transport import DOMAIN, LOCALHOST, RANGE

SCENARIO = "po-blend-d2"
STEP_TIME = 0.01  # [s]
ENOUGH = 120.0  # seconds; whoever needs longer is not measured
BROWSER_NICENESS = 19  # the operator's browser usually runs on a machine of its own
_ARGUMENTS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
              "--disable-component-update", "--disable-sync", "--window-size=1280,900")  # fmt: skip
NOBODY, SERVED, LOOKED_AT = "no page", "page, no browser", "page, one browser"
ELSEWHERE = "page, a browser that is sent everything and draws nothing"  # as one on another machine
Window = tuple[int, int, float]  # from and to [ns], and the seconds of a processor that the graph's nodes took


class Pace(NamedTuple):
    """How quick a graph was, and what its own nodes, all but the page, worked for a step."""

    rate: float  # [steps/s]
    work: float  # [ms of a processor per step]


class Page:
    """The page's process, which is started and ended while the graph goes on."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._log = folder / "page.log"
        parameters = {"scenario": SCENARIO, "address": "127.0.0.1:0"}
        command = node_command("page", parameters, "lift", folder)
        with self._log.open("w") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, env={**environment})
        wait_for(lambda: "page is up" in self._log.read_text())

    @property
    def url(self) -> str:
        """Where it is."""
        return re.findall(r"the page is at (\S+)", self._log.read_text())[-1]

    def close(self) -> None:
        """End it."""
        self._process.send_signal(signal.SIGINT)
        self._process.wait(ENOUGH)


@contextlib.contextmanager
def open_browser(url: str) -> Iterator[Any]:
    """Look at the page."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = str(shutil.which("chromium"))
    for argument in _ARGUMENTS:
        options.add_argument(argument)
    before = os.getpriority(os.PRIO_PROCESS, 0)
    service = Service(shutil.which("chromedriver"), popen_kw={"preexec_fn": lambda: os.nice(BROWSER_NICENESS - before)})
    driver = webdriver.Chrome(options=options, service=service)
    try:
        driver.get(url)
        wait_for(lambda: driver.execute_script("return document.getElementById('state')?.innerText") == "running")
        yield driver
    finally:
        driver.quit()


@contextlib.contextmanager
def asleep(driver: Any) -> Iterator[None]:
    """Let the browser's processes rest; what they are sent waits for them."""
    processes = descendants(driver.service.process.pid)
    for process in processes:
        os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        for process in processes:
            os.kill(process, signal.SIGCONT)


def descendants(parent: int) -> list[int]:
    """Return the processes that a process has started, and those that they have."""
    children = defaultdict(list)
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            words = entry.read_text()
            children[int(words.rpartition(")")[2].split()[1])].append(int(words.split(" ", 1)[0]))
    found = [parent]
    for process in found:
        found += children[process]
    return found[1:]


def wait_for(until: Callable[[], Any]) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + ENOUGH
    while not until():
        if time.monotonic() > deadline:
            raise TimeoutError("the graph or its page does not come up; see what lift run says")
        time.sleep(0.02)


def cpu_seconds(parent: int) -> float:
    """Return how long processors have worked for the children of a process."""
    ticks = 0
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            words = entry.read_text().rpartition(")")[2].split()
            ticks += int(words[11]) + int(words[12]) if int(words[1]) == parent else 0
    return ticks / os.sysconf("SC_CLK_TCK")


def take_turns(
    graph: int, folder: Path, environment: Mapping[str, str], turns: int, seconds: float
) -> list[dict[str, Window]]:
    """Return in which times of the run there was no page, a page, and a page that somebody looked at."""

    def window() -> Window:
        time.sleep(2.0)  # what has just started or ended is not counted
        begin, before = time.time_ns(), cpu_seconds(graph)
        time.sleep(seconds)
        return begin, time.time_ns(), cpu_seconds(graph) - before

    found = []
    for _ in range(turns):
        turn = {NOBODY: window()}
        with contextlib.closing(Page(folder, environment)) as page:
            turn[SERVED] = window()
            with open_browser(page.url) as driver:
                turn[LOOKED_AT] = window()
                with asleep(driver):
                    turn[ELSEWHERE] = window()
        found.append(turn)
    return found


def stop_again_and_again(folder: Path, environment: Mapping[str, str], count: int) -> list[float]:
    """Click the emergency stop while the plant moves, and return after how many milliseconds it was confirmed."""
    found = []
    with contextlib.closing(Page(folder, environment)) as page, open_browser(page.url) as driver:
        text = "return document.getElementById(arguments[0])?.innerText ?? ''"
        shown = "return !!document.getElementById(arguments[0])?.offsetParent"

        def press(name: str) -> None:
            wait_for(lambda: driver.execute_script(shown, name))
            driver.execute_script("document.getElementById(arguments[0]).click()", name)

        for _ in range(count):
            driver.execute_script("window.liftHeldAfter = null")
            press("emergency-stop")
            wait_for(lambda: driver.execute_script("return window.liftHeldAfter") is not None)
            if "the plant holds" not in driver.execute_script(text, "held"):
                raise RuntimeError(f"an emergency stop was not confirmed: {driver.execute_script(text, 'held')}")
            found.append(float(driver.execute_script("return window.liftHeldAfter")))
            press("release")
            press("resume")
            wait_for(lambda: driver.execute_script(text, "state") == "running")
    return found


def measure(
    folder: Path, turns: int, seconds: float, stops: int = 0, step_time: float = 0.0
) -> tuple[list[dict[str, Pace]], list[float]]:
    """Return the pace of each turn, and the latencies of emergency stops; moves take at least the step time."""
    run = folder / f"run-{step_time}"
    words = ["--scenario", SCENARIO, "--out", str(run), "--episodes", "0", "--p", "0", "--train-after", "0", "--quiet"]
    words += ["--set", f"positioning_simulator.step_time={step_time}"]
    with reserved_domain() as domain:
        environment = {**os.environ, DOMAIN: str(domain), RANGE: LOCALHOST}
        command = [sys.executable, "-m", "lift_ros.cli", "run", *words]
        graph = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
        try:
            wait_for(lambda: len(list(run.glob("*.mcap"))) > 2)
            windows = take_turns(graph.pid, folder, environment, turns, seconds)
            latencies = stop_again_and_again(folder, environment, stops) if stops else []
        finally:
            graph.send_signal(signal.SIGINT)
            graph.wait(ENOUGH)
    times = np.array([step.time_ns for episode in RunReader(run) for step in episode.steps])
    return [{name: pace(times, window) for name, window in turn.items()} for turn in windows], latencies


def pace(times: np.ndarray, window: Window) -> Pace:
    """Return what was done in a window."""
    begin, end, worked = window
    steps = int(((times >= begin) & (times < end)).sum())
    return Pace(steps / ((end - begin) / 1e9), 1e3 * worked / max(1, steps))


def report(turns: list[dict[str, Pace]], paced: list[dict[str, Pace]], latencies: list[float], seconds: float) -> str:
    """Return what stands in docs/results.md."""
    p50, p99 = np.percentile(latencies, [50, 99])
    return (
        f"{len(turns)} turns of one run of {SCENARIO} without pauses between steps, {seconds:g} s each; the browser is "
        "a headless Chromium on the same two cores, which gives way to everything else:\n\n"
        + table(turns)
        + f"\n\nThe same where each move takes {STEP_TIME * 1e3:g} ms, quick for a rig:\n\n"
        + table(paced)
        + "\n\nMedians, in brackets the lowest and the highest turn. Work is the time of a processor that the nodes of "
        "the graph take for a step, the page left out: what it costs the loop, whatever else the machine does.\n\n"
        f"Emergency stop, from the click in the browser until the plant has confirmed that it holds, "
        f"{len(latencies)} times while it moved: p50 {p50:.1f} ms, p99 {p99:.1f} ms, longest {max(latencies):.1f} ms.\n"
    )


def table(turns: list[dict[str, Pace]]) -> str:
    """Return the paces of turns."""
    rows = []
    for name in (NOBODY, SERVED, ELSEWHERE, LOOKED_AT):
        rates = [turn[name].rate / turn[NOBODY].rate for turn in turns]
        works = [turn[name].work / turn[NOBODY].work for turn in turns]
        middle = float(np.median([turn[name].rate for turn in turns]))
        rows.append((name, middle, spread(rates), float(np.median([turn[name].work for turn in turns])), spread(works)))
    header = ("", "steps/s", "of the same turn without a page", "work per step [ms]", "of the same turn without a page")
    return markdown_table(header, rows)


def spread(shares: list[float]) -> str:
    """Return the median of shares, the lowest and the highest."""
    return f"{np.median(shares):.1%} ({min(shares):.1%} to {max(shares):.1%})"


def main(arguments: Namespace) -> int:
    """Measure, and put the figures on the page of the results."""
    turns, seconds, stops = (1, 3.0, 3) if arguments.quick else (5, 6.0, 60)
    with tempfile.TemporaryDirectory() as folder:
        paced, _ = measure(Path(folder), turns, seconds, step_time=STEP_TIME)
        quick, latencies = measure(Path(folder), turns, seconds, stops)
        text = report(quick, paced, latencies, seconds)
    print(text)
    if not arguments.quick:
        replace_section(RESULTS, "page", text)
    return 0
