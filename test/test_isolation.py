import os
import subprocess
import sys
from pathlib import Path

import pytest
from isolation import MARK, end_processes, isolated


def _alive(process: int) -> bool:
    stat = Path(f"/proc/{process}/stat")
    return stat.exists() and stat.read_text().rsplit(")", 1)[1].split()[0] != "Z"


def test_environment_is_as_before_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROS_DOMAIN_ID", "7")
    monkeypatch.delenv("ROS_AUTOMATIC_DISCOVERY_RANGE", raising=False)
    with isolated() as domain:
        assert os.environ["ROS_DOMAIN_ID"] == str(domain)
        assert os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] == "LOCALHOST"
    assert os.environ["ROS_DOMAIN_ID"] == "7"
    assert "ROS_AUTOMATIC_DISCOVERY_RANGE" not in os.environ


def test_processes_left_behind_are_killed_and_no_others() -> None:
    sleeper = [sys.executable, "-c", "import time; print('up', flush=True); time.sleep(600)"]
    outsider = subprocess.Popen(sleeper, stdout=subprocess.PIPE)
    try:
        with isolated():
            left = subprocess.Popen(sleeper, stdout=subprocess.PIPE, start_new_session=True)
            assert left.stdout is not None
            assert left.stdout.readline() == b"up\n"
            mark = os.environ[MARK]
        assert not _alive(left.pid)
        assert outsider.poll() is None
        assert end_processes(mark) == []
    finally:
        outsider.kill()
        outsider.wait()
