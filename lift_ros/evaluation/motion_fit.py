"""How a plant moves, learned from bags: each episode's own map from action to displacement, and how far to trust it.

What is fitted is the displacement per length of the action, h(s, u) for an action of direction u at position s: a sum
of terms whose coefficients belong to an episode, or to all. Episodes of one plant resemble each other, so their
coefficients are spread around common ones; these and the spread are estimated from all episodes (empirical Bayes),
and where an episode says little about a coefficient the others speak for it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from itertools import combinations, pairwise
from operator import add
from typing import NamedTuple

import numpy as np

from lift_ros.array_types import BoolArray, FloatArray, IntArray

WORTHWHILE = 0.7  # a term is kept if it brings the error below this share of the error without it
EXACT = 0.01  # with an error below, no further term is tried
MOST_TERMS = 3
_BLOCK, _FOLDS = 4, 3  # of cross-validation: so many steps in a row are predicted from two thirds of the others
_ENOUGH = 64  # episodes to estimate what they have in common
_MANY = 10  # episodes, of which one hardly counts in what all have in common
_ITERATIONS = 12
_NOISE_FLOOR = 1e-6  # relative, of variances: no plant is known better than to a thousandth
_OCTAVES = (
    5  # of the distance to the goal, each half as far as the one before, that count alike; the last is all nearer
)
_FEWEST_OF_OCTAVE = 0.01  # share of rows; an octave with fewer counts less
_FEWEST_REPEATS = 20  # equal actions in a row from which noise is estimated
_MEDIAN_TO_DEVIATION = 1.4826
_TRACE = 1e-12  # of the largest entry of a matrix, so little that it changes nothing else
_SMALL = 1e-12
_KNOTS = 0.5 ** np.arange(_OCTAVES, 0, -1)  # scaled distances at which octaves begin, and at which the gain may bend

_LINEAR, _DISTANCE, _DRIFT, _LENGTH, _SIDES = "linear", "distance", "drift", "length", "sides"
_GAINS = (_DISTANCE, _LENGTH)  # what multiplies all terms
_LEAST_GAIN = 0.05
_TURNS = 4
_NAMES = {
    _LINEAR: "linear",
    _DISTANCE: "gain by the distance to the goal",
    _DRIFT: "drift by the position",
    _LENGTH: "gain by the length of the step",
}


class Term(NamedTuple):
    """A gain, or a group of features: its kind, the axes it looks at, and whether all episodes have it in common."""

    kind: str
    axes: tuple[int, ...] = ()
    shared: bool = False

    def __str__(self) -> str:
        axes = " and ".join(str(axis + 1) for axis in self.axes)
        return _NAMES.get(self.kind) or f"sides of the goal on axes {axes}"


@dataclass(frozen=True)
class Movements:
    """The recorded movements, one row per action, sorted by episode."""

    offset: FloatArray  # [rows, d] s − s_W
    action: FloatArray  # [rows, m], none of length zero
    moved: FloatArray  # [rows, d] displacement
    episode: IntArray  # [rows] from 0 on
    step: IntArray  # [rows] within the episode
    free: BoolArray  # [rows] no border was hit
    episodes: int  # how many there are


def _spans(episode: IntArray, episodes: int) -> list[slice]:
    """Return the rows of each episode."""
    edges = np.searchsorted(episode, np.arange(episodes + 1)).tolist()
    return [slice(begin, end) for begin, end in pairwise(edges)]


@dataclass(frozen=True)
class Features:
    """The terms of a motion, the gains that multiply them all, and the scales of what they look at."""

    scale: float  # of distances to the goal
    length: float  # of a typical action
    terms: tuple[Term, ...] = ()
    gains: tuple[tuple[str, FloatArray], ...] = ()  # by what, and the coefficients of their basis

    def matrix(self, offset: FloatArray, action: FloatArray) -> FloatArray:
        """Return one row of features per movement: [rows, features]."""
        parts = np.concatenate(self._parts(offset, action), axis=1)
        for kind, coefficients in self.gains:
            parts = parts * gain(self.basis(kind, offset, action), coefficients)[:, None]
        return parts

    def basis(self, kind: str, offset: FloatArray, action: FloatArray) -> FloatArray:
        """Return what a gain is a sum of: [rows, coefficients]; the first is constant."""
        one = np.ones((len(offset), 1))
        if kind == _LENGTH:
            longer = np.log(np.maximum(np.linalg.norm(action, axis=1, keepdims=True), _SMALL) / self.length)
            return np.concatenate([one, longer, longer**2], axis=1)
        far = np.linalg.norm(offset, axis=1, keepdims=True) / self.scale
        return np.concatenate([one, far, np.maximum(far - _KNOTS, 0.0)], axis=1)

    def own(self, offset: FloatArray, action: FloatArray) -> BoolArray:
        """Return which features of such movements have coefficients of each episode's own."""
        widths = [part.shape[1] for part in self._parts(offset[:1], action[:1])]
        return np.repeat([not term.shared for term in self.terms], widths)

    def _parts(self, offset: FloatArray, action: FloatArray) -> list[FloatArray]:
        unit = action / np.maximum(np.linalg.norm(action, axis=1, keepdims=True), _SMALL)
        return [self._columns(term, unit, offset / self.scale) for term in self.terms]

    @staticmethod
    def _columns(term: Term, unit: FloatArray, place: FloatArray) -> FloatArray:
        if term.kind == _LINEAR:
            return unit
        if term.kind == _DRIFT:
            return np.concatenate([np.ones((len(place), 1)), place, place**3], axis=1)
        first, second = (place[:, axis] >= 0 for axis in term.axes)
        sides = np.stack([first & second, first & ~second, ~first & second, ~first & ~second], axis=1)
        return np.asarray(unit[:, :, None] * sides[:, None, :]).reshape(len(unit), -1)


def gain(basis: FloatArray, coefficients: FloatArray) -> FloatArray:
    """Return by what each row is multiplied: no motion turns back because of a gain."""
    return np.maximum(basis @ coefficients, _LEAST_GAIN)


@dataclass(frozen=True)
class Sums:
    """All that a fit needs of the movements: sums of products per episode."""

    gram: FloatArray  # [episodes, features, features]
    cross: FloatArray  # [episodes, features, d]
    square: FloatArray  # [episodes, d]
    count: FloatArray  # [episodes] of rows

    def __add__(self, other: Sums) -> Sums:
        return Sums(*(getattr(self, name) + getattr(other, name) for name in _SUMS))

    def __sub__(self, other: Sums) -> Sums:
        return Sums(*(getattr(self, name) - getattr(other, name) for name in _SUMS))

    def part(self, most: int) -> Sums:
        """Return the sums of at most so many episodes, evenly chosen."""
        chosen = np.unique(np.linspace(0, len(self.count) - 1, min(most, len(self.count))).round().astype(int))
        return Sums(*(getattr(self, name)[chosen] for name in _SUMS))


_SUMS = ("gram", "cross", "square", "count")


def _sums_of(features: FloatArray, target: FloatArray, weight: FloatArray, spans: list[slice]) -> Sums:
    left, right, used = features * weight[:, None], target * weight[:, None], (weight > 0).astype(np.float64)
    return Sums(
        gram=np.stack([left[span].T @ left[span] for span in spans]),
        cross=np.stack([left[span].T @ right[span] for span in spans]),
        square=np.stack([(right[span] ** 2).sum(axis=0) for span in spans]),
        count=np.array([used[span].sum() for span in spans]),
    )


@dataclass(frozen=True)
class Population:
    """What the episodes of a plant have in common, per output: means, spreads over episodes, and noise."""

    own: BoolArray  # [features] whose coefficients differ between episodes
    mean: FloatArray  # [features, d]
    spread: FloatArray  # [own features, d], variances
    noise: FloatArray  # [d], variances

    def covariances(self, sums: Sums, output: int) -> FloatArray:
        """Return how uncertain each episode's own coefficients are, given its rows: [episodes, own, own]."""
        gram = sums.gram[:, self.own][:, :, self.own]
        return _posterior(gram, self.spread[:, output], float(self.noise[output]))

    def coefficients(self, sums: Sums) -> FloatArray:
        """Return each episode's most probable coefficients: [episodes, features, d]."""
        found = np.repeat(self.mean[None], len(sums.count), axis=0)
        surprise = (sums.cross - sums.gram @ self.mean) / self.noise
        for output in range(found.shape[2]):
            inverse = self.covariances(sums, output)
            found[:, self.own, output] += (inverse @ surprise[:, self.own, output, None])[:, :, 0]
        return found

    def doubt(self, sums: Sums, features: FloatArray, episode: IntArray) -> FloatArray:
        """Return how uncertain that leaves predictions, as variances: [rows, d]."""
        used = np.ascontiguousarray(features[:, self.own])
        found = np.empty((len(used), self.mean.shape[1]))
        spans = _spans(episode, len(sums.count))
        for output in range(found.shape[1]):
            for span, inverse in zip(spans, self.covariances(sums, output), strict=True):
                found[span, output] = (used[span] @ inverse * used[span]).sum(axis=1)
        return found


def _fit_population(sums: Sums, own: BoolArray) -> Population:
    """Estimate by maximum likelihood, output by output."""
    sums = sums.part(_ENOUGH)
    fits = [_fit_output(sums, output, own) for output in range(sums.cross.shape[2])]
    means, spreads, noises = zip(*fits, strict=True)
    return Population(own, np.stack(means, axis=1), np.stack(spreads, axis=1), np.array(noises))


def _fit_output(sums: Sums, output: int, own: BoolArray) -> tuple[FloatArray, FloatArray, float]:
    gram, cross = sums.gram, sums.cross[:, :, output]
    wide, square = np.ascontiguousarray(gram[:, own]), np.ascontiguousarray(gram[:, own][:, :, own])
    size = gram.shape[1]
    total, count = float(sums.square[:, output].sum()), max(float(sums.count.sum()), 1.0)
    floor = max(total / count, _SMALL) * _NOISE_FLOOR
    ridge = np.eye(size) * max(float(np.trace(gram.sum(axis=0))) / size, _SMALL) * 1e-9
    mean = np.linalg.solve(gram.sum(axis=0) + ridge, cross.sum(axis=0))
    noise = max((total - float(mean @ cross.sum(axis=0))) / count, floor)
    spread = np.full(square.shape[1], 0.1)
    for _ in range(_ITERATIONS):
        inverse = _posterior(square, spread, noise)
        weighed = wide.transpose(0, 2, 1) @ inverse / noise
        precision = (gram - weighed @ wide).sum(axis=0) + ridge
        mean = np.linalg.solve(precision, (cross - (weighed @ cross[:, own, None])[:, :, 0]).sum(axis=0))
        apart = (inverse @ ((cross[:, own] - wide @ mean) / noise)[:, :, None])[:, :, 0]
        known = np.clip(1.0 - np.einsum("epp->ep", inverse) / spread, 0.0, 1.0)
        # As if there were one episode more, in which nothing is spread: what no episode tells does not vary.
        spread = np.clip((apart**2).sum(axis=0) / (known.sum(axis=0) + 1.0), _SMALL, 1e4)
        found = np.repeat(mean[None], len(gram), axis=0)
        found[:, own] += apart
        left = total - 2 * float((found * cross).sum()) + float((found * (gram @ found[:, :, None])[:, :, 0]).sum())
        noise = max(left / max(count - float(known.sum()) - size, 0.1 * count), floor)
    return mean, spread, noise


def _posterior(gram: FloatArray, spread: FloatArray, noise: float) -> FloatArray:
    root = np.sqrt(spread)
    scaled = gram * (root[:, None] * root / noise)
    index = np.arange(len(spread))
    # Without noise, rows that depend on each other leave a singular matrix: a trace of the largest entry prevents it.
    scaled[:, index, index] += 1.0 + _TRACE * scaled[:, index, index].max(axis=1, initial=0.0, keepdims=True)
    return np.asarray(np.linalg.inv(scaled) * (root[:, None] * root))


@dataclass(frozen=True)
class MotionFit:
    """A fitted motion, and how well it predicts movements that its fit has not seen."""

    features: Features
    population: Population
    sums: Sums
    kappa: float  # of a displacement that grows like length^(1 + κ)
    errors: dict[str, float]  # relative, after each term that was kept, without noise
    error: float  # relative, beyond what noise and the stated uncertainty of the maps explain
    noise: float  # relative, that measuring positions adds to a displacement

    @property
    def depends_on_length(self) -> bool:
        """Whether long steps go further or less far, each by its length, than short ones."""
        return any(kind == _LENGTH for kind, _ in self.features.gains)

    def draw(self, copies: int, rng: np.random.Generator) -> FloatArray:
        """Return maps as the rows leave them possible: [copies, episodes, features, d]."""
        drawn = np.repeat(self.population.coefficients(self.sums)[None], copies, axis=0)
        for output in range(drawn.shape[3]):
            inverse = self.population.covariances(self.sums, output)
            values, vectors = np.linalg.eigh((inverse + inverse.transpose(0, 2, 1)) / 2)
            root = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
            normal = rng.standard_normal((copies, *inverse.shape[:2]))
            drawn[:, :, self.population.own, output] += np.einsum("epq,ceq->cep", root, normal)
        return drawn

    def displacement(self, maps: FloatArray, offset: FloatArray, action: FloatArray) -> FloatArray:
        """Return how far each row moves under its own map."""
        rates = np.einsum("np,npd->nd", self.features.matrix(offset, action), maps)
        return np.asarray(rates * np.linalg.norm(action, axis=1, keepdims=True) ** (1 + self.kappa))


def fit_motion(movements: Movements, kappa: float = 0.0) -> MotionFit:
    """Fit a linear map per episode, and further terms as long as cross-validation says that they pay."""
    trial = _Trial(movements, kappa)
    best = trial.judge(replace(trial.scales, terms=(Term(_LINEAR),)))
    errors = {str(Term(_LINEAR)): best.missed}
    while best.error > EXACT and len(errors) < MOST_TERMS:
        term = trial.most_promising(best.features)
        if term is None:
            break
        better = trial.judge_with(best.features, term)
        if better.missed > WORTHWHILE * best.missed:
            break
        best = better
        errors[str(term)] = best.missed
    population = _fit_population(best.sums, best.own)
    return MotionFit(best.features, population, best.sums, kappa, errors, best.error, trial.relative(trial.noise))


class _Judged(NamedTuple):
    features: Features
    missed: float  # relative error of cross-validation, without noise
    error: float  # that part of it which the maps' stated uncertainty does not explain
    own: BoolArray
    sums: Sums


class _Trial:
    """What terms are tried on: displacements per length, their weights and their noise."""

    def __init__(self, movements: Movements, kappa: float) -> None:
        length = np.linalg.norm(movements.action, axis=1)
        typical = float(np.median(length))
        distance = np.linalg.norm(movements.offset, axis=1)
        scale = max(float(distance.max()), _SMALL)
        self.scales = Features(scale, typical)
        self._movements = movements
        self._spans = _spans(movements.episode, movements.episodes)
        stretch = length[:, None] ** (1 + kappa)
        self._target = movements.moved / stretch
        self.noise = _noise(movements) / stretch**2  # variances of the target
        # Short steps count less, since noise is the same for all: theirs is the largest in relation. Near the goal
        # success is decided, but few steps are made there.
        weight = np.minimum(length / typical, 1.0) * movements.free * _balance(distance / scale)
        self._weight = weight / max(float(np.sqrt((weight**2).mean())), _SMALL)
        self._fold = movements.step // _BLOCK % _FOLDS

    def judge(self, features: Features) -> _Judged:
        """Predict every block of steps from the others."""
        movements = self._movements
        own = features.own(movements.offset, movements.action)
        matrix = features.matrix(movements.offset, movements.action)
        folds = [self._fold == number for number in range(_FOLDS)]
        parts = [_sums_of(matrix, self._target, self._weight * chosen, self._spans) for chosen in folds]
        whole = reduce(add, parts)
        common = _fit_population(whole, own) if movements.episodes >= _MANY else None
        predicted, doubt = np.empty_like(self._target), np.empty_like(self._target)
        for chosen, part in zip(folds, parts, strict=True):
            rest, episode = whole - part, movements.episode[chosen]
            population = common or _fit_population(rest, own)
            maps = population.coefficients(rest)[episode]
            predicted[chosen] = np.einsum("np,npd->nd", matrix[chosen], maps)
            doubt[chosen] = population.doubt(rest, matrix[chosen], episode)
        missed = (self._target - predicted) ** 2 - self.noise
        return _Judged(features, self.relative(missed), self.relative(missed - doubt), own, whole)

    def judge_with(self, features: Features, term: Term) -> _Judged:
        """Judge one term more: a gain, or a term in its better variant, the same for all episodes or not."""
        if term.kind in _GAINS:
            return self.judge(self._fit_gain(features, term.kind))
        shared, own = (
            self.judge(replace(features, terms=(*features.terms, term._replace(shared=choice))))
            for choice in (True, False)
        )
        return own if own.missed < WORTHWHILE * shared.missed else shared

    def _fit_gain(self, features: Features, kind: str) -> Features:
        """Fit a gain, one for all outputs, while each episode's own maps follow it (variable projection)."""
        basis = features.basis(kind, self._movements.offset, self._movements.action)
        coefficients = np.eye(basis.shape[1])[0]
        for _ in range(_TURNS):
            left, fitted, bases = self._projected(replace(features, gains=(*features.gains, (kind, coefficients))))
            gram, cross = self._moments(fitted / gain(basis, coefficients)[:, None], basis, bases, left)
            coefficients = coefficients + np.linalg.solve(gram, cross)
        return replace(features, gains=(*features.gains, (kind, coefficients)))

    def _projected(self, features: Features) -> tuple[FloatArray, FloatArray, list[FloatArray]]:
        """Return what is left and what is explained if every episode has the features for itself, and their bases."""
        bases = [_basis(part) for part in self._split(self._weighed(features))]
        whole = self._target * self._weight[:, None]
        left = _rest(bases, self._split(whole))
        return left, whole - left, bases

    def _moments(
        self, fitted: FloatArray, basis: FloatArray, bases: list[FloatArray], left: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the normal equations of a gain's coefficients."""
        columns = (fitted[:, None, :] * basis[:, :, None]).reshape(len(fitted), -1)
        more = _rest(bases, self._split(columns)).reshape(len(fitted), basis.shape[1], -1)
        gram, cross = np.einsum("nkd,nld->kl", more, more), np.einsum("nkd,nd->k", more, left)
        return _ridged(gram), cross

    def relative(self, squares: FloatArray) -> float:
        """Return squared errors of all rows as one relative error."""
        used = (self._weight**2)[:, None]
        share = float((used * squares).sum()) / max(float((used * self._target**2).sum()), _SMALL)
        return float(np.sqrt(max(share, 0.0)))

    def most_promising(self, features: Features) -> Term | None:
        """Return the further term that explains most of what is left if every episode has the others for itself."""
        pairs = combinations(range(self._target.shape[1]), 2)
        candidates = [Term(_DISTANCE), Term(_LENGTH), Term(_DRIFT), *(Term(_SIDES, pair) for pair in pairs)]
        present = {*(term[:2] for term in features.terms), *((kind, ()) for kind, _ in features.gains)}
        candidates = [term for term in candidates if term[:2] not in present]
        left, fitted, bases = self._projected(features)

        def explained(term: Term) -> float:
            if term.kind in _GAINS:
                basis = features.basis(term.kind, self._movements.offset, self._movements.action)
                gram, cross = self._moments(fitted, basis, bases, left)
            else:
                more = _rest(bases, self._split(self._weighed(replace(features, terms=(term,)))))
                gram, cross = _ridged(more.T @ more), more.T @ left
            return float((cross * np.linalg.solve(gram, cross)).sum())

        return max(candidates, key=explained, default=None)

    def _weighed(self, features: Features) -> FloatArray:
        matrix = features.matrix(self._movements.offset, self._movements.action)
        return np.asarray(matrix * self._weight[:, None])

    def _split(self, rows: FloatArray) -> list[FloatArray]:
        return [rows[span] for span in self._spans]


def _ridged(gram: FloatArray) -> FloatArray:
    return np.asarray(gram + np.eye(len(gram)) * (1e-9 * np.trace(gram) + _SMALL))


def _balance(far: FloatArray) -> FloatArray:
    """Return weights with which all octaves of the distance count alike in sums of squares."""
    octave = np.searchsorted(_KNOTS, far)
    counts = np.maximum(np.bincount(octave, minlength=_OCTAVES + 1), _FEWEST_OF_OCTAVE * len(far))
    return np.asarray(1.0 / np.sqrt(counts[octave]))


def _basis(rows: FloatArray) -> FloatArray:
    vectors, values, _ = np.linalg.svd(rows, full_matrices=False)
    return np.asarray(vectors[:, values > 1e-8 * max(float(values.max(initial=0.0)), _SMALL)])


def _rest(bases: list[FloatArray], parts: list[FloatArray]) -> FloatArray:
    """Return what of each part lies outside its basis."""
    return np.concatenate([part - basis @ (basis.T @ part) for basis, part in zip(bases, parts, strict=True)])


def _noise(movements: Movements) -> FloatArray:
    """Estimate the variance that measuring positions adds to a displacement: equal steps in a row go equally far."""
    follows = (np.diff(movements.episode) == 0) & (np.diff(movements.step) == 1)
    repeated = follows & (np.diff(movements.action, axis=0) == 0).all(axis=1)
    if repeated.sum() < _FEWEST_REPEATS:
        return np.zeros(movements.moved.shape[1])
    bends = np.diff(movements.moved, axis=0)[repeated]  # s'' − 2s' + s: six variances of a position; we look for two
    return np.asarray((_MEDIAN_TO_DEVIATION * np.median(np.abs(bends), axis=0)) ** 2 / 3)
