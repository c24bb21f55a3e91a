"""What runs tell before anything is trained or moves: room for shortcuts, arrivals, and whether it can be learned."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from lift_ros.array_types import FloatArray
from lift_ros.bags.arrays import EpisodeArrays
from lift_ros.bags.hindsight import label
from lift_ros.collection.records import Source
from lift_ros.console import format_table, shown
from lift_ros.errors import UserError
from lift_ros.policies.inputs import find_constants, find_switches, fit_inputs
from lift_ros.policies.sight import VALUES, Sight
from lift_ros.shortcuts.aims import make_aims
from lift_ros.shortcuts.motion import choose_motion
from lift_ros.shortcuts.pairs import make_rows
from lift_ros.shortcuts.rule import Rule, make_nodes
from lift_ros.training.data import make_data, make_track
from lift_ros.training.direction import Direction, measure_direction
from lift_ros.training.options import TrainingOptions

USUAL = 0.9  # quantile of the recorded lengths that counts as the usual step: routines end with ever smaller ones
ROOM = 5.0  # λ over the usual step, the paper's
_LITTLE_ROOM = 2.5  # below which a word is due
_SLACK = 1e-6  # sums in another order must not make a step too long
_EPISODES = 200  # whose shortcuts are counted, at most, evenly chosen
_FAR_SCALE = 10.0  # deviations this many times larger or smaller than 1 want scaling
_UNKNOWN = "unknown: no episode has rewards"


@dataclass(frozen=True, slots=True)
class StepLengths:
    """How long the logging policy's actions were."""

    count: int
    median: float
    usual: float
    longest: float


@dataclass(frozen=True, slots=True)
class Radius:
    """The action radius λ beside the recorded steps; None and NaN where nobody named one."""

    present: float | None
    roomy: float  # ROOM times the usual step
    limit: float | None  # what the plant allows, where a scenario says it
    longer: float  # share of recorded steps longer than λ

    @property
    def suggested(self) -> float:
        """A λ with room for shortcuts, as far as the plant allows."""
        return self.roomy if self.limit is None else min(self.roomy, self.limit)

    @property
    def is_too_short(self) -> bool:
        """Whether hardly a shortcut fits into λ, because single steps do not."""
        return self.present is not None and self.longer > 1 - USUAL

    def suggestion(self) -> str:
        """Return the suggested λ, and by which rule."""
        if self.suggested < self.roomy:
            return f"{shown(self.suggested)}, all that the scenario allows; {ROOM:g} times would be {shown(self.roomy)}"
        return f"{ROOM:g} times or more, from {shown(self.suggested)} on"

    def remedy(self) -> str:
        """Return what to do where λ is too short."""
        if self.present is not None and self.present < self.suggested * (1 - _SLACK):
            return f"give --action-radius {shown(self.suggested)}"
        return (
            f"raise plant.action_radius in the scenario to {shown(self.roomy)} where the plant can make such a move, "
            "or let the routine take shorter steps"
        )


@dataclass(frozen=True, slots=True)
class Shortcuts:
    """Shortcuts of two steps or more at the present λ, or at the suggested one where nobody named one."""

    episodes: int  # that were looked at
    count: int
    share: float  # of all pairs of steps at least two apart
    starts: float  # share of the steps from which one leads


@dataclass(frozen=True, slots=True)
class Entry:
    """The values of one entry of the observation."""

    low: float
    high: float
    deviation: float
    zeros: float  # share of steps in which it is exactly zero
    kind: str  # varies, constant, or switch: exactly zero far more often than anything else


@dataclass(frozen=True)
class Preflight:
    """All that is told before training."""

    episodes: int
    arrivals: int
    steps: StepLengths
    radius: Radius
    shortcuts: Shortcuts | None  # None without rewards
    entries: list[Entry]
    scaled: bool  # whether training scales observations
    direction: Direction | None
    pictures: bool = False  # whether models see pictures, whose meaning nothing tells before it is learned

    def lines(self) -> list[str]:
        """Return it for a terminal, a line per matter."""
        return [f"{name}: {text}" for name, text in self._words()]

    def _words(self) -> Iterator[tuple[str, str]]:
        steps, radius, found = self.steps, self.radius, self.shortcuts
        lengths = (
            f"{shown(steps.median)} in the median, {shown(steps.usual)} in {USUAL:.0%}, {shown(steps.longest)} at most"
        )
        yield "steps", f"{steps.count} of the routine; length {lengths}"
        if radius.present is None:
            yield "λ", f"unknown; suggested: {radius.suggestion()}"
        else:
            times = shown(radius.present / steps.usual if steps.usual else math.inf)
            yield "λ", f"{shown(radius.present)}, {times} times the usual step; suggested: {radius.suggestion()}"
        shares = "" if found is None else f"{found.share:.0%} of such pairs, from {found.starts:.0%} of steps"
        yield "shortcuts", _UNKNOWN if found is None else f"{found.count} of two steps or more, {shares}"
        yield "arrivals", f"{self.arrivals} of {self.episodes} episodes reached their goal"
        yield "observations", self._scale()
        if self.pictures:
            yield "direction", "is to be found in pictures; held-out episodes tell after training whether it was"
        else:
            yield "direction", _UNKNOWN if self.direction is None else self.direction.sentence()

    def _scale(self) -> str:
        if not self.entries:
            return "pictures"
        deviations = self._deviations()
        words = f"{len(self.entries)} entries from {shown(min(entry.low for entry in self.entries))} to "
        words += shown(max(entry.high for entry in self.entries))
        if deviations:
            words += f", deviations {shown(min(deviations))} to {shown(max(deviations))}"
        words += ", scaled for training" if self.scaled else ", not scaled for training"
        for kind, verb in (("constant", "never changes"), ("switch", "is switched to exactly zero now and then")):
            names = [str(number) for number, entry in enumerate(self.entries) if entry.kind == kind]
            if names:
                words += f"; entry {', '.join(names)} {verb}"
        return words

    def _deviations(self) -> list[float]:
        return [entry.deviation for entry in self.entries if entry.kind != "constant"]

    def warnings(self) -> list[str]:
        """Return what training can be done with, but hardly well."""
        found = []
        radius, direction = self.radius, self.direction
        tight = radius.present is not None and radius.present < _LITTLE_ROOM * self.steps.usual
        if tight and not radius.is_too_short:
            found.append(
                f"λ is less than {_LITTLE_ROOM:g} times the usual step and leaves little room for shortcuts: "
                f"{radius.remedy()}"
            )
        deviations = self._deviations()
        if not self.scaled and any(not 1 / _FAR_SCALE <= deviation <= _FAR_SCALE for deviation in deviations):
            found.append(
                f"observations are not scaled, but their deviations reach from {shown(min(deviations))} to "
                f"{shown(max(deviations))}: give --option scale_observations=true"
            )
        if direction is not None and direction.is_told is False:
            found.append(direction.warning())
        return found

    def refusals(self) -> list[str]:
        """Return why training would be in vain, each with the remedy."""
        found = []
        radius = self.radius
        if radius.is_too_short:
            assert radius.present is not None
            found.append(
                f"λ is {shown(radius.present)}, but {radius.longer:.0%} of the recorded steps are longer, so that "
                f"hardly a shortcut fits into one action: {radius.remedy()}"
            )
        if not self.arrivals:
            found.append(
                f"none of {self.episodes} episodes reached its goal, so that nothing tells what arriving looks like: "
                "record a routine that arrives, or correct the goal in the mapping of `lift import`"
            )
        return found

    def doubts(self) -> list[str]:
        """Return all that speaks against training, the worst first."""
        return [*self.refusals(), *self.warnings()]

    def as_dict(self) -> dict[str, Any]:
        """Return everything as values; `for_programs` turns what is unknown into null."""
        names = ("episodes", "arrivals", "steps", "radius", "shortcuts", "entries", "direction")
        return {
            **{name: getattr(self, name) for name in names},
            "suggested_radius": self.radius.suggested,
            "rule": f"suggested λ: {ROOM:g} times the {USUAL:.0%} quantile of the routine's steps",
            "tells_direction": None if self.direction is None else self.direction.is_told,
            "warnings": self.warnings(),
            "refusals": self.refusals(),
        }

    def entry_table(self) -> str:
        """Return the entries of the observation as a table."""
        rows = [
            [number, entry.low, entry.high, entry.deviation, f"{entry.zeros:.0%}", entry.kind]
            for number, entry in enumerate(self.entries)
        ]
        return format_table(["entry", "lowest", "highest", "deviation", "exactly zero", "kind"], rows)


def check_runs(
    arrays: EpisodeArrays,
    options: TrainingOptions,
    *,
    action_radius: float | None = None,
    limit: float | None = None,
    sight: Sight = VALUES,
) -> Preflight:
    """Return what the episodes tell those who see this; `limit` is the plant's longest action where it is known."""
    if not len(arrays):
        raise UserError("there is no episode with a step to look at; record one, or name another run")
    lengths = _routine_lengths(arrays)
    median, usual = np.quantile(lengths, (0.5, USUAL)).tolist()
    roomy = ROOM * usual
    longer = math.nan if action_radius is None else float(np.mean(lengths > action_radius * (1 + _SLACK)))
    shortcuts, direction = _look_ahead(arrays, options, action_radius or roomy, sight)
    return Preflight(
        episodes=len(arrays),
        arrivals=int(arrays.terminated.sum()),
        steps=StepLengths(len(lengths), median, usual, float(lengths.max())),
        radius=Radius(action_radius, roomy, limit, longer),
        shortcuts=shortcuts,
        entries=_entries(arrays.observations[:, sight.entries]),
        scaled=options.scale_observations,
        direction=direction,
        pictures=sight.image,
    )


def _routine_lengths(arrays: EpisodeArrays) -> FloatArray:
    """Return how long the routine's own moves were; all moves where it made none."""
    lengths = np.linalg.norm(arrays.actions, axis=1)
    own = (arrays.sources == int(Source.LOGGING_POLICY)) & (lengths > 0)
    chosen: FloatArray = lengths[own] if own.any() else lengths
    return chosen


def _entries(observations: FloatArray) -> list[Entry]:
    constant, switches = find_constants(observations), find_switches(observations)
    kinds = ["constant" if still else "varies" for still in constant.tolist()]
    for number in switches.tolist():
        kinds[number] = "switch"
    numbers = (
        observations.min(axis=0),
        observations.max(axis=0),
        observations.std(axis=0),
        (observations == 0).mean(0),
    )
    return [
        Entry(low, high, deviation, zeros, kind)
        for (low, high, deviation, zeros), kind in zip(np.transpose(numbers).tolist(), kinds, strict=True)
    ]


def _look_ahead(
    arrays: EpisodeArrays, options: TrainingOptions, radius: float, sight: Sight
) -> tuple[Shortcuts | None, Direction | None]:
    """Return the shortcuts of some episodes with rewards, and whether observations tell where the best of them lead."""
    usable = np.flatnonzero(~np.logical_or.reduce(list(label(arrays).unknown.values())))
    if not usable.size or not radius > 0:
        return None, None
    chosen = np.zeros(len(arrays), dtype=bool)
    chosen[usable[np.linspace(0, usable.size - 1, min(usable.size, _EPISODES)).round().astype(np.int64)]] = True
    arrays = arrays.select(chosen)
    data = make_data(arrays, "hindsight", sight)
    kappa = choose_motion(options.motion, make_track(arrays)).kappa
    rule = Rule(options.gamma, options.C, radius, kappa=kappa)
    nodes = make_nodes(data.actions, data.rewards, data.offsets, np.ones_like(data.terminated), rule)
    rows = make_rows(nodes, 0)
    pairs = int((nodes.ends * (nodes.ends - 1) // 2).sum())
    count = int((rows.count - 1).sum())
    shortcuts = Shortcuts(data.episodes, count, count / pairs if pairs else math.nan, float(np.mean(rows.count > 1)))
    if sight.image:
        return shortcuts, None
    inputs = fit_inputs(data.observations, True).of(data.observations).astype(np.float64)
    episodes = np.repeat(np.arange(len(arrays)), np.diff(arrays.offsets))
    aims = nodes.actions(make_aims(nodes, rows))
    return shortcuts, measure_direction(inputs, aims, episodes, options.seed)
