"""The SROS 2 policy of a graph, made from its table of channels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from xml.etree import ElementTree

from lift_ros.graph.channels import PAGE, PLANT, RECORDER, ROLES, SERVICES, TOPICS
from lift_ros.graph.enclaves import enclave_of

# People beside the nodes: who looks, with Foxglove or `ros2 topic echo`, and who also pauses and stops.
VIEWER, OPERATOR = "viewer", "operator"
_VERSION = "0.2.0"  # of the policy's format
# What every node of ROS has.
_SPOKEN_BY_ALL = ("/rosout", "/parameter_events")
_HEARD_BY_ALL = ("/clock", "/parameter_events")
_ANSWERED_BY_ALL = (
    "describe_parameters",
    "get_parameter_types",
    "get_parameters",
    "get_type_description",
    "list_parameters",
    "set_parameters",
    "set_parameters_atomically",
)


def make_policy(namespace: str, plants: Sequence[str], topics: Sequence[str] = ()) -> str:
    """Return the policy as XML: each node may do what the graph's table says, and nothing else.

    `plants` are the names of plant nodes, `topics` what the recorder records beside the graph's own.
    """
    policy = ElementTree.Element("policy", version=_VERSION)
    enclaves = ElementTree.SubElement(policy, "enclaves")
    for role in ROLES:
        for name in plants if role == PLANT else [role]:
            profile = _profile(enclaves, namespace, name)
            heard = [topic.name for topic in TOPICS if role in topic.listeners]
            _allow(profile, "topic", "publish", [topic.name for topic in TOPICS if role in topic.speakers])
            _allow(profile, "topic", "subscribe", [*heard, *(topics if role == RECORDER else ())])
            _allow(profile, "service", "reply", SERVICES.get(role, ()))
    people = [_profile(enclaves, namespace, name) for name in (VIEWER, OPERATOR)]
    for profile in people:
        _allow(profile, "topic", "subscribe", [topic.name for topic in TOPICS])
    called = [service for services in SERVICES.values() for service in services]
    nodes = [name for role in ROLES for name in (plants if role == PLANT else [role])]
    called += [f"{node}/{service}" for node in nodes for service in _ANSWERED_BY_ALL]
    page = next(profile for profile in enclaves.iter("profile") if profile.attrib["node"] == PAGE)
    for profile in (people[-1], page):  # the page does what an operator does
        _allow(profile, "service", "request", called)
    ElementTree.indent(policy)
    return ElementTree.tostring(policy, encoding="unicode", xml_declaration=True) + "\n"


def _profile(enclaves: ElementTree.Element, namespace: str, name: str) -> ElementTree.Element:
    """Add an enclave for one node, which may do what every node of ROS does, and return its profile."""
    enclave = ElementTree.SubElement(enclaves, "enclave", path=enclave_of(namespace, name))
    profiles = ElementTree.SubElement(enclave, "profiles")
    profile = ElementTree.SubElement(profiles, "profile", ns=f"/{namespace.strip('/')}", node=name)
    _allow(profile, "topic", "publish", _SPOKEN_BY_ALL)
    _allow(profile, "topic", "subscribe", _HEARD_BY_ALL)
    _allow(profile, "service", "reply", [f"~/{service}" for service in _ANSWERED_BY_ALL])
    return profile


def _allow(profile: ElementTree.Element, kind: str, what: str, names: Iterable[str]) -> None:
    if names := list(names):
        rule = ElementTree.SubElement(profile, f"{kind}s", {what: "ALLOW"})
        for name in names:
            ElementTree.SubElement(rule, kind).text = name
