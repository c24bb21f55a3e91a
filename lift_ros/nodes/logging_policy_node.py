"""Executable `logging_policy`."""

from __future__ import annotations

from typing import Any

from lift_ros.collection.records import Source
from lift_ros.nodes.policy import PolicyNode


class LoggingPolicy(PolicyNode):
    """The policy that always arrives, slowly and on detours; often a routine that a user wrote."""

    executable = "logging_policy"
    summary = "answers queries with the routine of a scenario, or one of your own"
    source = Source.LOGGING_POLICY

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.serve(self.make_policy() or self.scenario.make_logging_policy())
        self.connect()


main = LoggingPolicy.main
