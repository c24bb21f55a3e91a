"""Where nodes of a graph meet, and what to tell people where somebody is missing there; needs no ROS."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lift_ros.collection.exchange import Party
from lift_ros.graph.transport import DOMAIN, RANGE

# Which topic shows that somebody is there, and the type by which it is known in other namespaces.
SIGNS = {
    Party.PLANT: ("observation", "Observation"),
    Party.LOGGING_POLICY: ("proposal", "Proposal"),
    Party.AUGMENTOR: ("proposal", "Proposal"),
    Party.RECORDER: ("ready", "Receipt"),
}
_STARTED_AS = {Party.PLANT: "your plant node"}
_NO_MODEL = "has no model yet: a trainer announces one, or its parameter model names one."


@dataclass(frozen=True)
class Place:
    """All that two nodes must share to meet."""

    namespace: str  # with its leading slash
    domain: int
    reach: str  # how far others are looked for

    def __str__(self) -> str:
        return f"namespace {self.namespace}, domain {self.domain}, discovery range {self.reach}"

    def topic(self, name: str) -> str:
        """Return the full name of a topic of the graph."""
        return f"{self.namespace.rstrip('/')}/{name}"


def explain_waiting(party: Party, place: Place, publishers: Mapping[str, Sequence[str]]) -> str:
    """Say in one sentence why a party does not answer and what to do; `publishers` are nodes by topic of its type."""
    name, _ = SIGNS[party]
    topic, who = place.topic(name), _STARTED_AS.get(party, f"the {party.value}")
    elsewhere = {other: nodes for other, nodes in publishers.items() if other.endswith(f"/{name}") and nodes}
    if here := elsewhere.pop(topic, ()):
        silence = _NO_MODEL if party is Party.AUGMENTOR else "has not answered yet; its log says why."
        verb = "publishes" if len(here) == 1 else "publish"
        return f"{' and '.join(here)} {verb} {topic}, but the {party.value} {silence}"
    where = f"Nobody publishes {topic} in domain {place.domain} (discovery range {place.reach})"
    if elsewhere:
        other, nodes = next(iter(sorted(elsewhere.items())))
        return (
            f"{where}, but {nodes[0]} publishes {other}: start it with --ros-args -r __ns:={place.namespace}, or start "
            f"the graph in namespace {other.removesuffix(f'/{name}') or '/'} (lift run --namespace)."
        )
    return f"{where}: start {who} in namespace {place.namespace}, in a terminal with the same {DOMAIN} and {RANGE}."
