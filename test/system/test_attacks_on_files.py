"""A few of the attacks in benchmark/attacks: nothing but sentences, whatever files and words hold."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from benchmark.attacks.__main__ import KINDS, main
from benchmark.attacks.worker import DEATH, MEMORY, RIGHT, TRACEBACK, attack

COUNTS = {"words": 30, "metadata": 100}


@pytest.mark.parametrize("kind", KINDS)
def test_attacks_end_in_sentences(kind: str) -> None:
    count = COUNTS.get(kind, 200)
    report = attack(KINDS[kind], count, seed=1)
    assert sum(report.counts.values()) == count
    bad = report.bad
    assert bad == 0, "\n".join(report.examples)


class Faulty:
    """Right at first, then a fault, then greedy."""

    def __init__(self, _folder: Path) -> None:
        self._number = -1

    def case(self, _rng: object) -> bool:
        self._number += 1
        if self._number == 1:
            raise KeyError("a fault")
        return self._number == 0 or bool(bytearray(2**31))


class Dying:
    """It takes its process with it."""

    def __init__(self, _folder: Path) -> None:
        pass

    def case(self, _rng: object) -> bool:
        os._exit(3)


def test_faults_are_noticed_and_the_attack_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    # Whose memory or process is gone is followed by a new one, which begins with what is right.
    assert attack("test_attacks_on_files:Faulty", 5, seed=0).counts == {RIGHT: 2, TRACEBACK: 2, MEMORY: 1}
    assert attack("test_attacks_on_files:Dying", 2, seed=0).counts == {DEATH: 2}


def test_the_command_tells_how_cases_ended(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--kind", "model", "--count", "20"]) == 0
    assert "model: 20 cases in" in capsys.readouterr().out
