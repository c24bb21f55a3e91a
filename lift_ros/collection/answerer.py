"""How a policy answers queries: in one place, so that it hears the same in process and in the ROS graph."""

from __future__ import annotations

import numpy as np

from lift_ros.collection.exchange import Proposal, Query
from lift_ros.collection.records import Mode, Source
from lift_ros.policies.protocol import CoveringPolicy, Policy, begin_episode
from lift_ros.policies.sight import look


class Answerer:
    """Answers queries with a policy: seeds it once per episode, resets it on hand-off, then asks for its action.

    In mode assist a policy that can tell is asked besides whether its data cover the observation; where they do not,
    its action is withheld.
    """

    def __init__(self, policy: Policy, source: Source, *, watches_coverage: bool = True) -> None:
        self.policy = policy
        self.source = source
        self._watched = policy if watches_coverage and isinstance(policy, CoveringPolicy) else None
        self._begun: tuple[str, int, int] | None = None

    def answer(self, query: Query, time_ns: int = 0) -> Proposal | None:
        """Return the proposal for `query`, or None from a logging policy that does not act in this mode."""
        if self.source is Source.LOGGING_POLICY and query.mode is Mode.EVALUATE:
            return None
        if query.step == 0 or self._begun != (query.run, query.episode, query.seed):
            begin_episode(self.policy, query.seed)
            self._begun = (query.run, query.episode, query.seed)
        elif query.handoff:
            self.policy.reset()
        seen = look(self.policy, query.values, query.image)  # a copy: whoever changes it does not change the record
        action = np.array(self.policy.act(seen), dtype=np.float64)
        if query.mode is Mode.ASSIST and self._watched is not None and not self._watched.covers(seen):
            action = np.empty(0)
        model_hash = getattr(self.policy, "hash", "")
        return Proposal(query.episode, query.step, self.source, action, model_hash, time_ns, query.run)
