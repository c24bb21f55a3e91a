"""The guard: while collecting, it sees to it that augmented episodes do not cost more than the routine's own.

It is told how each episode went and says with which p and budget the next one is made. Nothing else decides: the same
episodes give the same decisions, in process, in the graph, and when a recorded run is gone through again.

Two things are watched, both against the run's episodes of the routine alone (plain ones):

- Evidence. Each augmented episode is ranked among the plain ones, by steps, one that failed after all that arrived.
  Its rank is a fair bet as long as augmented and plain episodes are alike, and so is a failure at the rate at which
  plain ones fail. Bets on "worse" are multiplied and begin anew below 1. An augmentor as good as the routine makes each
  of them reach `evidence` at most once in `evidence` episodes, on average. At that, p and budget go down a level, and
  they go up a level where bets on "better" have gained enough.
- Excess. The steps by which augmented episodes exceed the routine's mean are added up, gains never below zero (Page's
  sum). An augmented episode is begun only as long as a very bad one would not lead beyond (allowance − 1) · horizon
  of the routine's episodes, less what chance may hide. So hardly a stretch of `horizon` episodes costs more than
  `allowance` times the routine's, where the leash holds: an episode longer than that goes on with the routine alone,
  from where it began.

At level 0 the routine acts alone, for the rest of the run or until there is another model.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from lift_ros.collection.exchange import FREE, Leash
from lift_ros.collection.records import Episode, Mode, Outcome
from lift_ros.scenario import DEFAULT_GUARD, START_SMALL, GuardSettings

# Shares of p and of the budget, from nothing to what the scenario says. A routine is lost by many augmentations in a
# row rather than by a single one, so the budget is cut more than p.
LEVELS = ((0.0, 0.0), (0.5, 0.1), (0.75, 0.4), (1.0, 1.0))
OFF, SMALLEST, FULL = 0, 1, len(LEVELS) - 1
RECENT = 50  # plain episodes that are compared with, so that a plant may change over weeks
STAKE = 0.8  # of the bets on ranks
FURTHER_FAILURES = 0.2  # a success rate lower by so much is what the bets on failures look for
PROOF = 3.0  # bets on "better" at which p and budget go up
CAUTION = 5.0  # a level that was left downwards needs so many times the proof
MARGIN = 3.0  # standard errors by which the routine's mean may be less than it seems
LUCK = 2.0  # standard deviations by which augmented episodes may have begun where the routine is quick
SPREAD = 0.4  # of the routine's steps, relative to their mean, where few episodes happen to be alike
MOST_PLAIN = 5  # times the wanted number of plain episodes are made where they differ much
LONG = 0.9  # the quantile of plain episodes that counts as a long one


@dataclass(frozen=True, slots=True)
class Trial:
    """What the guard sees of an episode."""

    augmented: bool
    reached: bool
    steps: int
    model: str = ""  # hash of the augmentor's model, where it has one

    @classmethod
    def of(cls, episode: Episode) -> Trial | None:
        """Return what an episode tells, or None where it compares with nothing."""
        ended = episode.outcome in (Outcome.REACHED, Outcome.STEP_LIMIT)
        if not ended or episode.mode not in (Mode.COLLECT, Mode.SHADOW):
            return None
        # Also one in which the augmentor was there but never acted: to leave it out would pick the short ones.
        heard = [step for step in episode.steps if step.augmentor_proposal.size or step.model_hash]
        augmented = episode.mode is Mode.COLLECT and bool(heard or episode.augmentations)
        model = next((step.model_hash for step in reversed(heard) if step.model_hash), "")
        return cls(augmented, episode.outcome is Outcome.REACHED, len(episode.steps), model if augmented else "")


@dataclass(frozen=True, slots=True)
class Decision:
    """How the next episode is made, and why."""

    p: float
    budget: int
    leash: Leash = FREE
    why: str = ""
    is_plain: bool = False  # the routine alone, to have something to compare with
    warns: bool = False  # augmented episodes were worse, or are too dear to try

    def __str__(self) -> str:
        """Return what is in force and why, in one line."""
        return f"p={self.p:g}, budget {self.budget}: {self.why}"


class Guard:
    """Decides on p and budget of each episode from how those before it went; the module text says how."""

    def __init__(self, settings: GuardSettings = DEFAULT_GUARD) -> None:
        self.settings = settings
        self.why = ""  # of the level in force
        self._plain: deque[Trial] = deque(maxlen=RECENT)
        self._plain_seen = 0
        self._model: str | None = None
        self._begin()

    def _begin(self) -> None:
        """Know nothing of the augmentor."""
        small = self.settings.start == START_SMALL
        self.level = SMALLEST if small else FULL
        self.why = "starts small" if small else "as the scenario says"
        self._warns = False
        self._augmented: list[Trial] = []
        self._excess = 0.0  # [steps]
        self._stretch = 0  # augmented episodes in it
        self._worse = self._failing = self._better = 1.0
        self._proof = [PROOF] * len(LEVELS)

    # What it is told ------------------------------------------------------------------------------------------------

    def serve(self, model: str) -> None:
        """Take note of the augmentor's model: another one than before is judged anew."""
        if model and model != self._model:
            if self._model is not None:
                self._begin()
            self._model = model

    def note(self, episode: Episode) -> None:
        """Take note of an episode that has ended."""
        trial = Trial.of(episode)
        if trial is not None:
            self.weigh(trial)

    def recall(self, episodes: Iterable[Episode]) -> None:
        """Take note of all that were recorded before."""
        for episode in episodes:
            self.note(episode)

    def weigh(self, trial: Trial) -> None:
        """Take note of how one episode went."""
        if not trial.augmented:
            self._plain.append(trial)
            self._plain_seen += 1
        else:
            self.serve(trial.model)
            self._model = self._model or trial.model
            self._augmented.append(trial)
            if self._plain and self.level != OFF:
                self._add_evidence(trial)
                self._add_excess(trial)
                self._change_level()
        if self.level != OFF and self._excess > 0.0 and self._is_too_dear() and self._knows_the_routine():
            cost = f"augmented episodes have cost {self._excess:.0f} steps more than the routine's"
            self._go_to(OFF, f"switched off: {cost}")

    def _add_evidence(self, trial: Trial) -> None:
        keys = [_order(plain) for plain in self._plain]
        own = _order(trial)
        rank = (sum(key < own for key in keys) + 0.5 * keys.count(own) + 0.5) / (len(keys) + 1)
        self._worse = max(1.0, self._worse) * (1.0 + STAKE * (2.0 * rank - 1.0))
        self._better = max(1.0, self._better) * (1.0 - STAKE * (2.0 * rank - 1.0))
        usual = (sum(not plain.reached for plain in self._plain) + 0.5) / (len(keys) + 1)
        more = min(1.0 - 0.5 * (1.0 - usual), usual + FURTHER_FAILURES)
        odds = (1.0 - more) / (1.0 - usual) if trial.reached else more / usual
        self._failing = max(1.0, self._failing) * odds

    def _add_excess(self, trial: Trial) -> None:
        """Add the steps above the routine's; a failure costs those of the routine besides, which must repeat it."""
        mean = self._routine_steps()
        usual = mean * (1.0 + _share_failed(self._plain))
        self._excess = max(0.0, self._excess + trial.steps + mean * (not trial.reached) - usual)
        self._stretch = self._stretch + 1 if self._excess else 0

    def _change_level(self) -> None:
        if max(self._worse, self._failing) >= self.settings.evidence ** (2 if self.level == SMALLEST else 1):
            self._proof[self.level] *= CAUTION
            words = "switched off" if self.level == SMALLEST else "lowered"
            self._go_to(self.level - 1, f"{words}: {self._comparison()}")
        elif self.level < FULL and self._better >= self._proof[self.level + 1]:
            self._go_to(self.level + 1, f"raised: {self._comparison()}")

    def _go_to(self, level: int, why: str) -> None:
        self.level, self.why, self._warns = level, why, level < self.level
        self._worse = self._failing = self._better = 1.0

    # What it says -----------------------------------------------------------------------------------------------------

    def decide(self, mode: Mode, p: float, budget: int) -> Decision:
        """Return how the next episode is made where `p` and `budget` are what the user wants."""
        if not self.settings.enabled or mode is not Mode.COLLECT or p == 0.0 or budget == 0:
            return Decision(p, budget)
        if self.level == OFF:
            return Decision(0.0, 0, why=self.why, warns=True)
        if self._plain_seen < self._plain_wanted():
            return Decision(0.0, 0, why="the routine alone, to compare with", is_plain=True)
        if self._is_too_dear():
            words = f"off: a bad episode could cost {self._worst_excess():.0f} steps more than the routine's"
            return Decision(0.0, 0, why=f"{words}, {self._allowed():.0f} are allowed", warns=True)
        share_p, share_budget = LEVELS[self.level]
        leash = Leash(self._leash_steps(), self.settings.rejections, self.settings.retreat)
        return Decision(p * share_p, math.ceil(budget * share_budget), leash, self.why, warns=self._warns)

    def _plain_wanted(self) -> int:
        """Return how many plain episodes there should be by now."""
        least, augmented = self.settings.plain, len(self._augmented)
        if self._plain_seen >= least and self._is_too_dear():  # maybe only because the routine is not known well
            return MOST_PLAIN * least
        if self._excess > 0.0:  # then they are cheaper than augmented ones, and show whether that is chance
            return least + augmented
        return least + int(math.log2(1 + augmented / least))  # one more whenever their number has doubled

    def _knows_the_routine(self) -> bool:
        return self._plain_seen >= MOST_PLAIN * self.settings.plain

    def _is_too_dear(self) -> bool:
        """Return whether another bad episode could lead beyond what is allowed."""
        return self._excess + self._worst_excess() > self._allowed()

    def _worst_excess(self) -> float:
        """Return what a bad episode may cost: its leash, and then one of the routine's long ones."""
        return self._leash_steps() + self._long_steps() - self._routine_steps()

    def _allowed(self) -> float:
        """Return the steps by which augmented episodes may exceed the routine's.

        It is less than all that is granted: the routine's mean is known only so well, and so is what it would have
        needed from where the augmented episodes began.
        """
        mean, count = self._routine_steps(), len(self._plain)
        variance = sum((trial.steps - mean) ** 2 for trial in self._plain) / max(1, count - 1)
        deviation = max(math.sqrt(variance), SPREAD * mean)
        surely = mean - MARGIN * deviation / math.sqrt(count)
        granted = (self.settings.allowance - 1.0) * self.settings.horizon * surely
        return max(0.0, granted - LUCK * deviation * math.sqrt(self._stretch))

    def _routine_steps(self) -> float:
        return sum(trial.steps for trial in self._plain) / len(self._plain)

    def _leash_steps(self) -> int:
        """Return the steps that an augmented episode has before it is left to the routine."""
        return max(1, math.ceil(self.settings.leash * self._long_steps()))

    def _long_steps(self) -> int:
        """Return the steps of a long episode of the routine."""
        steps = sorted(trial.steps for trial in self._plain)
        return steps[math.ceil(LONG * (len(steps) - 1))]

    def _comparison(self) -> str:
        recent = self._augmented[-RECENT:]
        return f"augmented episodes {_describe(recent)}, the routine's {_describe(self._plain)}"


def _order(trial: Trial) -> float:
    return trial.steps if trial.reached else math.inf


def _share_failed(trials: deque[Trial]) -> float:
    return sum(not trial.reached for trial in trials) / len(trials)


def _describe(trials: deque[Trial] | list[Trial]) -> str:
    arrived = sum(trial.reached for trial in trials)
    return f"{sum(trial.steps for trial in trials) / len(trials):.0f} steps ({arrived} of {len(trials)} arrived)"
