"""One episode under way: what the arbiter has noted of it, and the conditions and deeds its table names."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from lift_ros.array_types import FloatArray, Picture
from lift_ros.collection import exchange
from lift_ros.collection.assist import Assistant
from lift_ros.collection.exchange import Drop, Instruction, Party, Refusal, State
from lift_ros.collection.proposals import REJECTION_OF, check_action, describe_rejection, judge_augmentation
from lift_ros.collection.records import Episode, Mode, Outcome, Rejection, Source, Step
from lift_ros.collection.way_back import WayBack
from lift_ros.errors import UserError
from lift_ros.positioning.problem import Limits
from lift_ros.seeds import episode_seed, generator

PARTY_OF = {Source.LOGGING_POLICY: Party.LOGGING_POLICY, Source.AUGMENTOR: Party.AUGMENTOR}
BOTH = (Source.LOGGING_POLICY, Source.AUGMENTOR)
LOGGING_ALONE = (Source.LOGGING_POLICY,)
AUGMENTOR_ALONE = (Source.AUGMENTOR,)
_PARTIES_OF: Mapping[tuple[Source, ...], frozenset[Party]] = {
    sources: frozenset(PARTY_OF[source] for source in sources) for sources in (BOTH, LOGGING_ALONE, AUGMENTOR_ALONE)
}
NOTHING: FloatArray = np.empty(0)
# Proposals that speak against the augmentor, unlike those that never came.
BAD = frozenset(REJECTION_OF.values())
_WAITING_FOR = {
    State.IDLE: frozenset[Party](),
    State.RESETTING: frozenset({Party.PLANT}),
    State.CONFIRMING: frozenset({Party.RECORDER}),
    State.MOVING: frozenset({Party.PLANT}),
    State.FINISHING: frozenset({Party.RECORDER}),
}


@dataclass(slots=True)
class _Question:
    """What is known about the step being decided or made."""

    draw: float
    asked: tuple[Source, ...]
    open: frozenset[Party]  # those of them who have neither answered nor run out of time
    proposals: dict[Source, exchange.Proposal] = field(default_factory=dict)
    absence: Rejection = Rejection.MISSING  # why there is no proposal of the augmentor, where there is none
    # The choice, once it is made:
    source: Source = Source.LOGGING_POLICY
    action: FloatArray = field(default_factory=lambda: NOTHING)
    rejection: Rejection = Rejection.NONE
    time_ns: int = 0

    def choose(self, source: Source) -> None:
        """Take what `source` proposes."""
        self.source, self.action = source, self.action_of(source)

    def action_of(self, source: Source) -> FloatArray:
        proposal = self.proposals.get(source)
        return NOTHING if proposal is None else proposal.action


def _misfit(image: Picture | None, limits: Limits) -> str | None:
    """Return what is wrong with the picture of an observation, where the plant is known to send one."""
    if limits.picture is None or (image is not None and image.shape == limits.picture.shape):
        return None
    found = "no picture" if image is None else f"a picture of shape {image.shape}"
    return f"the plant reported {found}, expected {limits.picture}"


class EpisodeUnderWay:
    """One episode under way, from its start to the confirmation of its record."""

    def __init__(self, start: exchange.Start, limits: Limits, require_receipts: bool) -> None:
        if not 0.0 <= start.p <= 1.0:
            raise UserError(f"p must be between 0 and 1, not {start.p!r}: it is a probability")
        if start.budget < 0:
            raise UserError(f"the augmentation budget must be 0 or more, not {start.budget!r}")
        self.steps: list[Step] = []
        self.episode = start.episode
        self._start = start
        self._limits = limits
        self._require_receipts = require_receipts
        self._seed = episode_seed(start.run_seed, start.episode)
        self._rng = generator(self._seed, "arbiter")
        self._left = start.budget if start.mode is Mode.COLLECT else 0
        self._assistant = Assistant(start.assist, limits)
        self._way_back = WayBack(limits) if start.leash.retreat and start.mode is Mode.COLLECT else None
        self._leads_back = False
        self._bad_proposals = 0
        self._not_counted = 0  # steps that do not count against the step limit
        # In evaluate mode nobody can stand in for the augmentor, otherwise the logging policy is the one who must act.
        self._indispensable = Source.AUGMENTOR if start.mode is Mode.EVALUATE else Source.LOGGING_POLICY
        self._p = {Mode.COLLECT: start.p, Mode.SHADOW: 0.0, Mode.EVALUATE: 1.0, Mode.ASSIST: 1.0}[start.mode]
        self._question = _Question(math.nan, (), frozenset())
        self._last = exchange.Observation(self.episode, 0, NOTHING)  # of nothing, until the plant reports
        self._goal = self._context = NOTHING
        self._handoff = True
        self._refusal = Refusal.NONE
        self._unconfirmed: int | None = None
        self._episode_confirmed = False
        self._reason = ""
        self._now = start.time_ns

    def waiting_for(self, state: State) -> frozenset[Party]:
        """Return who must answer in this state before the episode goes on."""
        return self._question.open if state is State.ASKING else _WAITING_FOR[state]

    # Events: what one tells is noted here, before the table is asked what follows from it. ----------------------------

    def note(self, event: exchange.Event, state: State) -> Drop | None:
        """Note what `event` tells, or return why it is ignored."""
        drop: Drop | None = self._NOTES[type(event)](self, event, state)
        if drop is None:
            self._now = event.time_ns
        return drop

    def _foreign(self, event: exchange.Observation | exchange.Proposal | exchange.Deadline, step: int) -> Drop | None:
        if event.episode != self.episode:
            return Drop.OTHER_EPISODE
        return None if event.step == step else Drop.OTHER_STEP

    def _note_observation(self, event: exchange.Observation, state: State) -> Drop | None:
        refused, moving = event.refusal is not Refusal.NONE, state is State.MOVING
        drop = self._foreign(event, len(self.steps) + (moving and not refused))
        if drop is not None:
            return drop
        self._refusal = event.refusal
        if refused:
            self._reason = f"the plant refused: {event.refusal.name.lower().replace('_', ' ')}"
        elif event.values.shape != (self._limits.observation_size,):
            expected = self._limits.observation_size
            self._reason = f"the plant reported an observation of shape {event.values.shape}, expected ({expected},)"
        elif not all(map(math.isfinite, event.values.tolist())):
            self._reason = "the plant reported an observation that is not finite"
        elif (misfit := _misfit(event.image, self._limits)) is not None:
            self._reason = misfit
        elif moving and not np.array_equal(event.executed, self._question.action):
            executed, commanded = event.executed.tolist(), self._question.action.tolist()
            self._reason = f"the plant executed {executed}, but {commanded} was commanded"
        else:
            if moving:
                self._note_step(event.reward)
            self._last = event
            self._goal = event.goal if event.goal.size else self._goal
            self._context = event.context if event.context.size else self._context
        return None

    def _note_step(self, reward: float) -> None:
        question, before = self._question, self._last
        self._handoff = question.source is Source.AUGMENTOR and self._start.mode is not Mode.EVALUATE
        if self._start.mode is Mode.ASSIST:
            if self._handoff:
                self._assistant.note(question.action)
            self._left = self._assistant.left
            self._not_counted = self._assistant.used
        else:
            self._left = max(0, self._left - self._handoff)
            self._note_for_leash()
        proposed, proposal = question.action_of(Source.AUGMENTOR), question.proposals.get(Source.AUGMENTOR)
        step = Step(
            episode=self.episode,
            index=len(self.steps),
            time_ns=question.time_ns,
            observation=before.values,
            action=question.action,
            source=question.source,
            position=before.position,
            reward=reward,
            logging_proposal=question.action_of(Source.LOGGING_POLICY),
            # A proposal of another shape has no place in the record; the rejection tells of it.
            augmentor_proposal=proposed if proposed.shape == (self._limits.action_size,) else NOTHING,
            rejection=question.rejection,
            draw=question.draw,
            p=self._p,
            augmentations_left=self._left,
            model_hash="" if proposal is None else proposal.model_hash,
            image=before.image,
        )
        self.steps.append(step)

    def _note_for_leash(self) -> None:
        question, leash = self._question, self._start.leash
        if self._way_back is not None:
            self._way_back.note(question.action)
        self._bad_proposals += question.rejection in BAD
        if self._bad_proposals == leash.rejections > 0:
            self._left = 0

    def _note_proposal(self, event: exchange.Proposal, state: State) -> Drop | None:
        question = self._question
        drop = self._foreign(event, len(self.steps))
        if drop is not None:
            if event.source is Source.AUGMENTOR and question.absence is Rejection.MISSING:
                question.absence = Rejection.STALE
            return drop
        if event.source not in question.asked:
            return Drop.NOT_ASKED
        if event.source in question.proposals:
            return Drop.DUPLICATE
        if PARTY_OF[event.source] not in question.open:
            question.absence = Rejection.LATE
            if question.rejection in (Rejection.MISSING, Rejection.STALE):
                question.rejection = Rejection.LATE
            return Drop.TOO_LATE
        question.proposals[event.source] = event
        question.open -= {PARTY_OF[event.source]}
        if event.source is self._indispensable:
            rejection = check_action(event.action, self._limits)
            if rejection is not Rejection.NONE:
                self._reason = describe_rejection(rejection, event.source, event.action, self._limits)
        return None

    def _note_deadline(self, event: exchange.Deadline, state: State) -> Drop | None:
        if event.party not in self.waiting_for(state):
            return Drop.UNEXPECTED
        drop = self._foreign(event, len(self.steps))
        if drop is not None:
            return drop
        self._question.open -= {event.party}
        if event.party is not Party.AUGMENTOR or self._indispensable is Source.AUGMENTOR:
            self._reason = f"the {event.party.value} did not answer in time"
        return None

    def _note_receipt(self, event: exchange.Receipt, state: State) -> Drop | None:
        if event.episode != self.episode:
            return Drop.OTHER_EPISODE
        if event.step is None:
            self._episode_confirmed = state is State.FINISHING
            return None if self._episode_confirmed else Drop.UNEXPECTED
        if event.step != self._unconfirmed:
            return Drop.OTHER_STEP
        self._unconfirmed = None
        return None

    def _note_stop(self, event: exchange.Stop, state: State) -> Drop | None:
        self._reason = event.reason or "stopped"
        return None

    _NOTES: ClassVar[Mapping[type, Callable[[Any, Any, State], Drop | None]]] = {
        exchange.Observation: _note_observation,
        exchange.Proposal: _note_proposal,
        exchange.Deadline: _note_deadline,
        exchange.Receipt: _note_receipt,
        exchange.Stop: _note_stop,
    }

    # Conditions of the table ------------------------------------------------------------------------------------------

    def always(self) -> bool:
        """Return True: the last row of a list needs no condition."""
        return True

    def broken(self) -> bool:
        """Return whether something happened after which the episode cannot go on."""
        return self._reason != ""

    def replaceable(self) -> bool:
        """Return whether the plant refused the augmentor's action and the logging policy's can replace it."""
        return self._refusal in REJECTION_OF and self._question.source is not self._indispensable

    def arrived(self) -> bool:
        """Return whether the plant is at its goal."""
        return self._last.terminated

    def exhausted(self) -> bool:
        """Return whether the step limit is reached; a logging policy that took over has it to itself."""
        return len(self.steps) - self._not_counted >= self._limits.step_limit

    def undecided(self) -> bool:
        """Return whether a proposal is still awaited."""
        return bool(self._question.open)

    def confirmed(self) -> bool:
        """Return whether the recorder has every step it was given, or is not asked to confirm."""
        return not self._require_receipts or self._unconfirmed is None

    def closed(self) -> bool:
        """Return whether the recorder has the whole episode, or is not asked to confirm."""
        return not self._require_receipts or self._episode_confirmed

    # Deeds of the table -----------------------------------------------------------------------------------------------

    def nothing(self) -> list[Instruction]:
        """Wait on."""
        return []

    def reset(self) -> list[Instruction]:
        """Have the plant begin the episode."""
        return [exchange.Reset(self.episode, self._seed)]

    def ask(self) -> list[Instruction]:
        """Draw u and put the one query that carries reset and question."""
        seen, start = self._last, self._start
        draw = self._rng.random() if start.mode is Mode.COLLECT else math.nan
        sources = self._whom_to_ask()
        self._question = _Question(draw, sources, _PARTIES_OF[sources])
        step, handoff = len(self.steps), self._handoff
        query = exchange.Query(self.episode, step, self._seed, seen.values, handoff, start.mode, seen.image)
        return [exchange.Ask(query, sources)]

    def _whom_to_ask(self) -> tuple[Source, ...]:
        mode = self._start.mode
        if mode is Mode.ASSIST:
            return BOTH if self._assistant.acting else LOGGING_ALONE
        if mode is Mode.COLLECT:
            # At every step while it may still act, whatever the draw: augmentations that follow the logging policy and
            # those with a random stream of their own must see the same queries however fast anybody answers.
            return BOTH if self._p > 0.0 and self._left > 0 else LOGGING_ALONE
        return BOTH if mode is Mode.SHADOW else AUGMENTOR_ALONE

    def choose(self) -> list[Instruction]:
        """Make the p-switch: decide who acts, and note why the augmentor does not where it was its turn."""
        question, mode = self._question, self._start.mode
        question.choose(self._indispensable)
        if mode is Mode.ASSIST:
            self._choose_in_assist()
            return []
        if self._start.leash.steps and mode is Mode.COLLECT and self._choose_on_leash():
            return []
        turn = question.draw <= self._p if mode is Mode.COLLECT else mode is Mode.SHADOW
        if turn and Source.AUGMENTOR in question.asked:
            question.rejection = self._judge_augmentor()
            if mode is Mode.COLLECT and question.rejection is Rejection.NONE:
                question.choose(Source.AUGMENTOR)
        return []

    def _choose_on_leash(self) -> bool:
        """Return whether the augmentor has had its steps; what it did is then undone, and the routine goes on alone."""
        question, made, way_back = self._question, len(self.steps), self._way_back
        if way_back is not None:
            way_back.see(self._last.position)
        # The last step before the limit is the last chance to arrive after all.
        ends = made == min(self._start.leash.steps, self._limits.step_limit - 1)
        if ends:
            has_acted = any(step.source is Source.AUGMENTOR for step in self.steps)
            self._left, self._leads_back = 0, has_acted
            self._not_counted = made if has_acted else 0
            question.rejection = Rejection.LEASH
        if not self._leads_back or way_back is None:
            return ends
        back = way_back.next()
        self._leads_back = back is not None
        if back is not None:
            question.source, question.action = Source.AUGMENTOR, back
            self._not_counted += 1
        return True

    def _choose_in_assist(self) -> None:
        """Let the augmentor act until it stalls, then take back what was erratic, then leave it to the routine."""
        question, assistant = self._question, self._assistant
        assistant.see(self._last.position)
        if assistant.acting:
            question.rejection = self._judge_assistance()
            if question.rejection is Rejection.NONE:
                question.choose(Source.AUGMENTOR)
            else:
                assistant.hand_over(question.rejection)
        if not assistant.acting and (back := assistant.next_back()) is not None:
            question.source, question.action = Source.AUGMENTOR, back

    def _judge_assistance(self) -> Rejection:
        proposal = self._question.proposals.get(Source.AUGMENTOR)
        if proposal is not None and proposal.model_hash and not proposal.action.size:
            return Rejection.UNCOVERED
        rejection = self._judge_augmentor()
        return rejection if rejection or proposal is None else self._assistant.judge(proposal.action)

    def _judge_augmentor(self) -> Rejection:
        proposal = self._question.proposals.get(Source.AUGMENTOR)
        if proposal is None:
            return self._question.absence
        return judge_augmentation(proposal.action, self._last.position, self._limits)

    def command(self) -> list[Instruction]:
        """Command the chosen action."""
        question = self._question
        question.time_ns = self._now
        return [exchange.Move(self.episode, len(self.steps), question.action)]

    def fall_back(self) -> list[Instruction]:
        """Command the logging policy's action in place of the augmentor's, which the plant refused."""
        question, assistant = self._question, self._assistant
        question.choose(Source.LOGGING_POLICY)
        question.rejection = REJECTION_OF[self._refusal]
        self._reason = ""
        self._leads_back = False  # if it was a move back, it was the last
        if assistant.acting:
            assistant.hand_over(question.rejection)
        else:
            assistant.stay()
        return self.command()

    def ask_and_record(self) -> list[Instruction]:
        """Ask for the next step and record the one just made, while the policies think."""
        return [*self.ask(), *self._record()]

    def record_and_arrive(self) -> list[Instruction]:
        """Record the step just made, if there was one, and end at the goal."""
        return [*self._record(), self._end(Outcome.REACHED)]

    def record_and_give_up(self) -> list[Instruction]:
        """Record the step just made and end at the step limit."""
        return [*self._record(), self._end(Outcome.STEP_LIMIT)]

    def abort(self) -> list[Instruction]:
        """Hold the plant and end the episode after the steps that are known to be made."""
        return [exchange.Hold(self.episode, len(self.steps)), self._end(Outcome.ABORTED)]

    def halt(self) -> list[Instruction]:
        """Give the episode up: nobody knows whether it is recorded."""
        return [exchange.Halt(self.episode, self._reason)]

    def _record(self) -> list[Instruction]:
        if not self.steps:
            return []
        self._unconfirmed = self.steps[-1].index
        return [exchange.RecordStep(self.steps[-1])]

    def _end(self, outcome: Outcome) -> Instruction:
        last = self._last
        episode = Episode(
            index=self.episode,
            seed=self._seed,
            mode=self._start.mode,
            outcome=outcome,
            steps=self.steps,
            final_observation=last.values,
            reason=self._reason,
            final_position=last.position,
            final_image=last.image,
            goal=self._goal,
            context=self._context,
            start_time_ns=self._start.time_ns,
            end_time_ns=self._now,
        )
        return exchange.RecordEpisode(episode)
