"""Processes of ours run no code of the current folder, and hear Ctrl-C wherever they were started."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from lift_ros.graph.run import node_command
from lift_ros.processes import heed_interrupts, module_command
from lift_ros.training.job import TrainingJob

TRAP = "import pathlib; pathlib.Path('trapped').touch(); raise ImportError('code of the current folder')"
COLLECT = (
    f"{Path(sys.executable).parent / 'lift'} collect --scenario po-none-d2 --out run --episodes 2 --p 0 --processes 2"
)
NAMES = ("yaml", "numpy", "json", "lift_ros", "rclpy", "runpy", "pickle", "ctypes")


@pytest.fixture
def trap(tmp_path: Path) -> Path:
    """A folder full of files that bear names of modules and leave a trace when they are run."""
    for name in NAMES:
        (tmp_path / f"{name}.py").write_text(TRAP)
    return tmp_path


def test_a_module_found_here_is_taken_without_care(trap: Path) -> None:
    subprocess.run([sys.executable, "-m", "lift_ros.cli", "--version"], cwd=trap, capture_output=True)
    assert (trap / "trapped").exists()  # else the tests below could not fail


@pytest.mark.parametrize(
    "command",
    [
        [*node_command("arbiter", {}, "lift", Path()), "--help"],
        [*module_command("lift_ros.nodes.doctor_probe"), "facts"],
        [*module_command("lift_ros.graph.guardian"), "0"],
        [*TrainingJob("no run", 1, "po-none-d2", "out", 0, 1, 0, {}).command()],
        COLLECT.split(),
    ],
    ids=["node", "doctor", "guardian", "training", "workers"],
)
def test_no_code_of_the_current_folder_is_run(command: list[str], trap: Path) -> None:
    done = subprocess.run(command, cwd=trap, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120)
    assert not (trap / "trapped").exists(), done.stderr
    assert "Traceback" not in done.stderr


def test_code_in_a_folder_that_pythonpath_names_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_routine.py").write_text("print('found')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    done = subprocess.run(module_command("my_routine"), cwd="/", capture_output=True, text=True)
    assert done.stdout == "found\n"


def test_an_inherited_deafness_to_ctrl_c_is_cured_and_own_handlers_are_kept() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        thread = threading.Thread(target=heed_interrupts)  # where nobody may set handlers, nothing is done
        thread.start()
        thread.join()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        heed_interrupts()
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        signal.signal(signal.SIGINT, lambda *_: None)
        own = signal.getsignal(signal.SIGINT)
        heed_interrupts()
        assert signal.getsignal(signal.SIGINT) is own
    finally:
        signal.signal(signal.SIGINT, before)
