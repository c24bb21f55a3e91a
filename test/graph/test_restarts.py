"""The rule by which `lift run` and launch files start an ended node again."""

from __future__ import annotations

import pytest

from lift_ros.graph.restarts import RESTARTS, GraphFailed, Restarts


def test_restarts_are_counted_by_name_and_limited() -> None:
    restarts = Restarts()
    lines = [restarts.claim("recorder", -9) for _ in range(RESTARTS)]
    assert lines[0] == f"was ended by SIGKILL; restart 1 of {RESTARTS}"
    assert restarts.claim("arbiter", 1) == f"ended with status 1; restart 1 of {RESTARTS}"
    with pytest.raises(GraphFailed, match=f"recorder ended with status 3 and has no restarts left .{RESTARTS} allowed"):
        restarts.claim("recorder", 3)


def test_what_was_refused_is_never_started_again() -> None:
    with pytest.raises(GraphFailed, match="arbiter refused its input and would do so again"):
        Restarts().claim("arbiter", 2)
