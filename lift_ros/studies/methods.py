"""The methods that studies compare, by name: which episodes one learns from, and how it learns from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from lift_ros.configuration import Key, check_mapping
from lift_ros.errors import UserError
from lift_ros.evaluation.convergence import DIRECT, LOGGING_POLICY, SECANT
from lift_ros.policies.augmentations import LEARNED, RANDOM_NAMES
from lift_ros.scenario import OPTIMAL
from lift_ros.shortcuts.rule import PLAIN

PLAIN_RUN = "plain"  # collected by the logging policy alone
IORL = "iorl"  # collected with the trained uncertainty model of iterative offline RL
COLLECTED = (PLAIN_RUN, LEARNED, *RANDOM_NAMES, IORL)
YARDSTICKS = (LOGGING_POLICY, DIRECT, SECANT, OPTIMAL)
WARM_START = "SAC warm start"  # the one that learns online, from its own steps
DIFFUSION_QL, GTA = "DiffusionQL", "GTA"
# What the paper's table 3 says of SAC beside its learning rates, which are those of all presets.
TABLE_3: Mapping[str, Any] = {"batch_size": 256, "critics": 2, "gamma": 0.99, "tau": 0.005, "updates_per_step": 5}
METHOD_KEYS = {
    "algorithm": Key(str, "CQL", meaning="CQL, clone, one of d3rlpy, DiffusionQL, GTA or SAC warm start."),
    "shortcuts": Key(bool, True, meaning="Whether it learns from shortcuts, or from the steps as they were recorded."),
    "collected": Key(
        str,
        PLAIN_RUN,
        choices=COLLECTED,
        meaning="Who acts in the later episodes beside the routine; plain: nobody.",
    ),
    "options": Key(dict, {}, meaning="Further training options, which come last."),
}


@dataclass(frozen=True)
class Method:
    """How a policy comes about."""

    algorithm: str = "CQL"
    shortcuts: bool = True
    collected: str = PLAIN_RUN
    options: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def parse(cls, data: Any, where: str) -> Method:
        """Read one from a study file."""
        return cls(**check_mapping(data, METHOD_KEYS, where))

    @property
    def is_yardstick(self) -> bool:
        """Whether it is a policy that learns nothing."""
        return self.algorithm in YARDSTICKS

    def training(self) -> dict[str, Any]:
        """Return what differs from a preset."""
        plain = {} if self.shortcuts else {"strategy": PLAIN, "anchor": 0.0}
        return {"algorithm": self.algorithm, **plain, **self.options}

    def as_dict(self) -> dict[str, Any]:
        """Return the method as JSON values."""
        return asdict(self)


def _pairs(name: str, algorithm: str, collected: str = PLAIN_RUN) -> dict[str, Method]:
    """Return an algorithm on recorded steps and on shortcuts; the paper's CQL knows no anchor."""
    free = {"anchor": 0.0} if algorithm == "CQL" else {}
    return {
        name: Method(algorithm, shortcuts=False, collected=collected),
        f"{name}-SC": Method(algorithm, collected=collected, options=free),
    }


_ANCHORED = {"anchor": 5.0}
METHODS: Mapping[str, Method] = {
    **{name: Method(name) for name in YARDSTICKS},
    **_pairs("CQL", "CQL"),
    **_pairs("LIFT", "CQL", LEARNED),
    "anchored": Method(options=_ANCHORED),
    "LIFT-anchored": Method(collected=LEARNED, options=_ANCHORED),
    "clone-SC": Method("clone"),
    **_pairs("gaussian noise", "CQL", "gaussian_noise"),
    **_pairs("random scaling", "CQL", "random_scaling"),
    **_pairs("uniform", "CQL", "uniform"),
    **_pairs("kernel density", "CQL", "uncertainty"),
    **_pairs("IORL", "CQL", IORL),
    **_pairs("BC", "BC"),
    **_pairs("TD3+BC", "TD3PlusBC"),
    **_pairs("IQL", "IQL"),
    **_pairs("AWAC", "AWAC"),
    **_pairs("CalQL", "CalQL"),
    **_pairs("DQL", DIFFUSION_QL),
    **_pairs("GTA", GTA),
    "SAC": Method(WARM_START, shortcuts=False),
}


def find_method(name: str, own: Mapping[str, Method], where: str) -> Method:
    """Return a method of the study file, or one from here."""
    from lift_ros.configuration import nearest

    known = {**METHODS, **own}
    if name not in known:
        raise UserError(f"{where}: unknown method {name!r}; {nearest(name, known)}")
    return known[name]
