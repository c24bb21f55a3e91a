"""Watches a graph and prints what it sees as JSON lines; `lift run` draws its live view from them."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from lift_ros.graph.parameters import Parameter
from lift_ros.nodes.diagnostics import Status
from lift_ros.nodes.watching import WatchingNode


class Monitor(WatchingNode):
    """Prints what it hears now and then."""

    executable = "monitor"
    summary = "prints the state of a run as JSON lines, for live views"
    parameters = (
        Parameter("period", 0.25, "s", "how often a line is printed", low=0.02, high=60.0, fixed=True),
        Parameter("diagnostics_period", 5.0, "s", "how often this node reports on /diagnostics", low=0.05, high=60.0),
        Parameter("graph", "", "text", "token of the graph that is watched; empty for whichever is there", fixed=True),
    )

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.listen_to_steps()
        self.every(self.value("period"), self._print)
        self.set_status(Status.WATCHING)

    def finish(self) -> None:
        """Print the last state, which the period may not have reached."""
        self._print()

    def _print(self) -> None:
        print(json.dumps(asdict(self.watch.status())), flush=True)


main = Monitor.main
