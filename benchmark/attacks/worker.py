"""Many cases in one process with a limit on memory, watched by another: a fresh one only after it hung or died."""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import resource
import select
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np

from lift_ros.errors import UserError

# What becomes of a case. Only the first two are good.
REFUSED, RIGHT = "refused", "right"
WRONG, TRACEBACK, SLOW, MEMORY, HANG, DEATH = "wrong", "traceback", "slow", "memory", "hang", "death"
BAD = (WRONG, TRACEBACK, SLOW, MEMORY, HANG, DEATH)
LONGEST = {REFUSED: 1.0, RIGHT: 10.0}  # [s] of the processor; what is right may have had something to do
HANG_SECONDS = 30.0  # on the clock, of a machine that others use as well
MOST_MEMORY = 100 * 2**20  # [bytes] that a case may add to what its process had
_ADDRESS_SPACE = 2**30  # [bytes] beyond those at the start; threads reserve more than they use
_SHOWN = 5


class Attack(Protocol):
    """One kind of attack: made once per process in a folder of its own, where it prepares what it damages."""

    def __init__(self, folder: Path) -> None: ...

    def case(self, rng: np.random.Generator) -> bool:
        """Try one; False where something wrong was accepted. UserError is the answer that is wanted."""


@dataclass
class Report:
    """How cases ended, and some of those that ended badly."""

    counts: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)

    @property
    def bad(self) -> int:
        """Number of cases that ended badly."""
        return sum(self.counts[name] for name in BAD)

    @property
    def summary(self) -> str:
        """How many cases ended in which way."""
        return ", ".join(f"{count} {name}" for name, count in sorted(self.counts.items()))

    def add(self, number: int, verdict: str, detail: str = "") -> None:
        """Count a case."""
        self.counts[verdict] += 1
        if verdict in BAD and len(self.examples) < _SHOWN:
            self.examples.append(f"case {number}: {verdict} {detail}".rstrip())


def attack(kind: str, count: int, seed: int) -> Report:
    """Run the cases 0 … count - 1 of an attack, named as "module:Class"."""
    report, number = Report(), 0
    while number < count:
        with _worker(kind, seed, number, count) as process:
            while number < count:
                line = _line(process, HANG_SECONDS + 60 * (number == 0))  # imports take their time
                if line is None or not line:
                    report.add(number, HANG if line is None else DEATH, f"status {process.poll()}")
                    number += 1
                    break
                answer = json.loads(line)
                report.add(number, answer["verdict"], answer["detail"])
                number += 1
                if answer["verdict"] == MEMORY:
                    break  # what it has taken would count against the next one
    return report


@contextlib.contextmanager
def _worker(kind: str, seed: int, first: int, last: int) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", __name__, kind, str(seed), str(first), str(last)]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, bufsize=0, env=environment)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def _line(process: subprocess.Popen[bytes], seconds: float) -> bytes | None:
    """Return the next line, nothing where the process has ended, or None where it does not come in time."""
    assert process.stdout is not None
    if not select.select([process.stdout], [], [], seconds)[0]:
        return None
    return process.stdout.readline()


def _judged(subject: Attack, rng: np.random.Generator) -> tuple[str, str]:
    before, began = _memory(), time.process_time()
    verdict, detail = RIGHT, ""
    try:
        if not subject.case(rng):
            verdict = WRONG
    except UserError as error:
        verdict, detail = REFUSED, str(error)
        if "\n" in detail.strip() or len(detail) > 2000:
            verdict = WRONG  # it is no sentence
    except MemoryError:
        verdict = MEMORY
    except Exception:
        verdict, detail = TRACEBACK, traceback.format_exc(limit=-4)
    took, grown = time.process_time() - began, _memory() - before
    if took > LONGEST.get(verdict, took):
        verdict, detail = SLOW, f"{took:.1f} s, {detail}"
    if grown > MOST_MEMORY:
        verdict, detail = MEMORY, f"{grown / 2**20:.0f} MB, {detail}"
    return verdict, detail[:2000]


def _memory() -> int:
    """Return the most memory that this process ever had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main(argv: list[str]) -> int:
    """Run cases of an attack and print one line of JSON for each."""
    module, _, name = argv[0].partition(":")
    seed, first, last = map(int, argv[1:])
    out = os.fdopen(os.dup(sys.stdout.fileno()), "w", buffering=1)
    with tempfile.TemporaryDirectory(prefix="lift_attack_") as folder, contextlib.chdir(folder):
        subject: Attack = getattr(importlib.import_module(module), name)(Path(folder))
        space = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize() + _ADDRESS_SPACE
        resource.setrlimit(resource.RLIMIT_AS, (space, space))
        for number in range(first, last):
            quiet = io.StringIO()
            with contextlib.redirect_stdout(quiet), contextlib.redirect_stderr(quiet):
                verdict, detail = _judged(subject, np.random.default_rng([seed, number]))
            print(json.dumps({"verdict": verdict, "detail": detail}), file=out)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
