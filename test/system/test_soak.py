"""A short soak of the whole graph: what its processes hold does not grow with the episodes they have seen."""

from __future__ import annotations

import time
from pathlib import Path

from benchmark.soak import Usage
from lift_ros.bags.reader import RunReader
from lift_ros.graph.run import meeting_settings, process_specs
from lift_ros.graph.supervisor import Supervisor
from lift_ros.graph.table import GraphOptions, graph_nodes

SETTLED, ENOUGH = 10, 80  # episodes
WAIT_S = 380.0


def test_memory_and_handles_stay_as_they_are(tmp_path: Path) -> None:
    run = tmp_path / "run"
    options = GraphOptions(scenario="po-none-d2", run=run, episodes=0, p=0.0)
    with meeting_settings(options.plant) as settings:  # the domain is this test's
        specs = process_specs(graph_nodes(options), options.namespace, tmp_path, settings)
    usage = {spec.name: Usage() for spec in specs}
    deadline = time.monotonic() + WAIT_S
    with Supervisor(specs, log=lambda _: None, colour=False) as supervisor:
        for episodes in (SETTLED, ENOUGH):
            supervisor.run(
                lambda wanted=episodes: len(list(run.glob("*.mcap"))) >= wanted or time.monotonic() > deadline
            )
            for name, item in usage.items():
                item.sample(supervisor.pid(name))
    assert len(RunReader(run)) >= ENOUGH
    assert supervisor.restarts == {}
    for name, item in usage.items():
        assert item.handles[1] <= item.handles[0] + 2, name
        assert item.memory_mib[1] <= 1.15 * item.memory_mib[0] + 10, name
