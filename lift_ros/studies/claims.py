"""What a paper says of an experiment, compared with what was found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from lift_ros.configuration import Key, check_mapping, nearest
from lift_ros.errors import UserError
from lift_ros.studies.metrics import METRICS, Metric, Row, Summary, summarise

CLAIM_KEYS = {
    "says": Key(str, meaning="The claim, in one sentence."),
    "where": Key(str, "", meaning="Where it stands."),
    "better": Key(dict, {}, meaning="Values of axes of the cells that are said to be better; {} compares nothing."),
    "than": Key(dict, {}, meaning="Values of axes of the cells that they are better than, if all others are the same."),
    "by": Key(str, "distance_30", choices=tuple(METRICS), meaning="The metric."),
    "in": Key(dict, {}, meaning="Values of axes that the claim is about."),
    "equal": Key(bool, False, meaning="Whether as good is good enough."),
    "only": Key(list, None, entries=dict, optional=True, meaning="Where it is said to hold; elsewhere not. Null: all."),
    "why": Key(str, "", meaning="What explains a difference, where it is known."),
}


class Verdict(Enum):
    """What comes of a comparison."""

    AGREES = "agrees"
    DIFFERS = "differs"
    TIE = "tie"  # both arrive, so that nothing tells them apart
    NOT_RUN = "not run yet"
    NOT_COMPARABLE = "not comparable"


@dataclass(frozen=True)
class Comparison:
    """One dot: the same experiment on both sides."""

    labels: Mapping[str, Any]
    expected: bool
    better: Summary
    than: Summary
    verdict: Verdict


@dataclass(frozen=True)
class Finding:
    """A claim with all that was found about it."""

    claim: Claim
    verdict: Verdict
    comparisons: tuple[Comparison, ...] = ()

    def count(self, verdict: Verdict) -> int:
        """Return how many comparisons ended like this."""
        return sum(each.verdict is verdict for each in self.comparisons)

    @property
    def text(self) -> str:
        """The verdict with its counts."""
        if not self.comparisons:
            return self.verdict.value
        counts = [(self.count(verdict), verdict.value) for verdict in (Verdict.AGREES, Verdict.DIFFERS, Verdict.TIE)]
        told = ", ".join(f"{count} {word}" for count, word in counts if count)
        return f"{self.verdict.value} ({told})"


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper that can be held against cells."""

    says: str
    where: str
    better: Mapping[str, Any]
    than: Mapping[str, Any]
    by: str
    inside: Mapping[str, Any]
    equal: bool = False
    only: Sequence[Mapping[str, Any]] | None = None
    why: str = ""
    metric: Metric = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "metric", METRICS[self.by])

    @classmethod
    def parse(cls, data: Any, where: str, axes: Mapping[str, Key]) -> Claim:
        """Read one from a study file."""
        checked = check_mapping(data, CLAIM_KEYS, where)
        named = [*checked["better"], *checked["than"], *checked["in"]]
        named += [axis for entry in checked["only"] or () for axis in entry]
        for axis in named:
            if axis not in axes:
                raise UserError(f"{where}: unknown axis {axis!r}; {nearest(axis, axes)}")
        if bool(checked["better"]) != bool(checked["than"]):
            raise UserError(f"{where}: `better` and `than` belong together; give both or none")
        return cls(**{"inside" if name == "in" else name: value for name, value in checked.items()})

    def examine(self, cells: Sequence[Row]) -> Finding:
        """Compare the claim with cells, each given as its labels and its result."""
        if not self.better:
            return Finding(self, Verdict.NOT_COMPARABLE)
        sides = [self._side(cells, {**self.inside, **side}, side) for side in (self.better, self.than)]
        comparisons = []
        for key, ours in sides[0].items():
            theirs = sides[1].get(key)
            if theirs is None:
                continue
            labels = dict(key)
            first, second = summarise(ours, self.metric), summarise(theirs, self.metric)
            if first is not None and second is not None:
                expected = self.only is None or any(matches(labels, entry) for entry in self.only)
                comparisons.append(Comparison(labels, expected, first, second, self._judge(first, second, expected)))
        if not comparisons:
            return Finding(self, Verdict.NOT_RUN)
        differs = any(each.verdict is Verdict.DIFFERS for each in comparisons)
        tie = all(each.verdict is Verdict.TIE for each in comparisons)
        verdict = Verdict.DIFFERS if differs else Verdict.TIE if tie else Verdict.AGREES
        return Finding(self, verdict, tuple(comparisons))

    def _side(self, cells: Sequence[Row], wanted: Mapping[str, Any], own: Any) -> dict[tuple[Any, ...], list[Row]]:
        """Return the cells of one side by what they have in common with the other side."""
        groups: dict[tuple[Any, ...], list[Row]] = {}
        for labels, result in cells:
            if matches(labels, wanted):
                free = {*own, *self.better, *self.than, "data", "training"}
                key = tuple((axis, value) for axis, value in labels.items() if axis not in free)
                groups.setdefault(key, []).append((labels, result))
        return groups

    def _judge(self, better: Summary, than: Summary, expected: bool) -> Verdict:
        if better.middle == than.middle:
            return Verdict.AGREES if self.equal and expected else Verdict.TIE
        is_better = (better.middle > than.middle) == self.metric.more_is_better
        return Verdict.AGREES if is_better == expected else Verdict.DIFFERS


def matches(labels: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Whether labels have the wanted values; a list allows each of its entries."""
    return all(labels.get(axis) in (value if isinstance(value, list) else [value]) for axis, value in wanted.items())
