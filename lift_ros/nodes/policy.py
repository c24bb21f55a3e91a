"""What the nodes of the logging policy and the augmentor share: they answer each query once, repeats from memory."""

from __future__ import annotations

import time
from typing import Any, ClassVar

import numpy as np

import lift_ros.msg as msg
from lift_ros.collection.answerer import Answerer
from lift_ros.collection.exchange import Proposal, Query
from lift_ros.collection.records import Source
from lift_ros.graph import qos
from lift_ros.messages.records import decode_query, encode_proposal
from lift_ros.nodes.base import LiftNode
from lift_ros.nodes.diagnostics import Status
from lift_ros.nodes.senders import Roles
from lift_ros.policies.protocol import Policy, SeededPolicy
from lift_ros.scenario import load_scenario

_NOTHING = np.empty(0)


class PolicyNode(LiftNode):
    """Answers queries with a policy; without one, or where it cannot know its state, with an empty proposal."""

    source: ClassVar[Source]

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.scenario = load_scenario(self.value("scenario"))
        self.answerer: Answerer | None = None
        self._known: tuple[str, int, int] | None = None  # run, episode and seed whose first query was answered
        self._answered: tuple[str, int, int, int] | None = None  # run, episode, seed and step of the last answer
        self._last: Proposal | None = None
        self._seen = b""  # the values of that query: an episode that begins anew may begin elsewhere
        self._publisher = self.create_publisher(msg.Proposal, qos.PROPOSAL, qos.LOOP)

    def connect(self) -> None:
        """Begin to answer; called by subclasses when they are ready to."""
        size = self.scenario.observation_size
        self.listen(msg.Query, qos.QUERY, lambda data: decode_query(data, size), self._on_query, roles=Roles())

    def make_policy(self) -> Policy | None:
        """Return the policy that the parameters name, or None where they name none."""
        name = self.value("policy")
        return self.scenario.make_policy(name, self.json_value("policy_arguments")) if name else None

    def serve(self, policy: Policy) -> None:
        """Answer with this policy from the next query on."""
        self.answerer = self.make_answerer(policy)
        # A routine keeps state, and half an episode of one that lost it would not be its trajectory.
        self._keeps_state = self.source is Source.LOGGING_POLICY or isinstance(policy, SeededPolicy)
        self.set_status(Status.SERVING)

    def make_answerer(self, policy: Policy) -> Answerer:
        """Return what answers with this policy."""
        return Answerer(policy, self.source)

    def _on_query(self, query: Query) -> None:
        received_ns = time.monotonic_ns()
        key = (query.run, query.episode, query.seed, query.step)
        if key == self._answered and self._last is not None and query.values.tobytes() == self._seen:
            self.diagnostics.count("repeats")
            self._publisher.publish(encode_proposal(self._last))
            return
        proposal = self._answer(query)
        if proposal is None:
            return
        if self.value("delay") > 0.0:
            time.sleep(self.value("delay"))
        self._publisher.publish(encode_proposal(proposal))
        if proposal.action.size:
            self._answered, self._last, self._seen = key, proposal, query.values.tobytes()
        self.diagnostics.count("queries")
        self.diagnostics.latency("answer", time.monotonic_ns() - received_ns)

    def _answer(self, query: Query) -> Proposal | None:
        nothing = Proposal(query.episode, query.step, self.source, _NOTHING, "", time.time_ns(), query.run)
        answerer = self.answerer
        if answerer is None:
            return nothing
        if query.step == 0:
            self._known = (query.run, query.episode, query.seed)
        elif self._known != (query.run, query.episode, query.seed) and self._keeps_state:
            self.drop("query of an episode whose beginning was missed", f"episode {query.episode}, step {query.step}")
            return nothing
        elif self._answered is not None and self._answered[:3] == self._known and query.step <= self._answered[3]:
            self.drop("query of a step that was answered before", f"episode {query.episode}, step {query.step}")
            return None
        return self._ask(answerer, query, nothing)

    def _ask(self, answerer: Answerer, query: Query, nothing: Proposal) -> Proposal | None:
        try:
            proposal = answerer.answer(query, time.time_ns())
        except Exception as error:  # a routine is somebody else's code; whatever it raises must not end the node
            self.diagnostics.count("errors of the policy")
            self.warn_sometimes("policy", f"the policy raised {type(error).__name__}: {error}")
            self.set_status(Status.POLICY_FAILED, f"{type(error).__name__}: {error}")
            # Before the first move the arbiter asks again; later it must know at once that no action comes.
            return None if query.step == 0 and self.source is Source.LOGGING_POLICY else nothing
        if self.diagnostics.status is Status.POLICY_FAILED:
            self.set_status(Status.SERVING)
        return proposal
