"""Whether recorded steps are true: plant and policies, told the same again, must say the same, bit for bit."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from lift_ros.array_types import FloatArray
from lift_ros.bags.reader import RunReader
from lift_ros.collection.answerer import Answerer
from lift_ros.collection.exchange import Query
from lift_ros.collection.records import Episode, Outcome, Source
from lift_ros.positioning.problem import Limits, Problem
from lift_ros.scenario import load_scenario


@dataclass
class Truth:
    """What was found in a run."""

    episodes: int = 0
    steps: int = 0
    untrue: list[str] = field(default_factory=list)  # steps that did not happen so
    unsafe: list[str] = field(default_factory=list)  # steps beyond what the plant may do

    @property
    def bad(self) -> int:
        """Number of steps that must not be."""
        return len(self.untrue) + len(self.unsafe)


def examine(run: Path, name: str, augmentation: str) -> Truth:
    """Replay every episode of a run in its scenario's simulator; without an augmentation nobody else may have acted."""
    scenario = load_scenario(name)
    problem = scenario.make_problem()
    policies = {Source.LOGGING_POLICY: scenario.make_logging_policy()}
    if augmentation:
        policies[Source.AUGMENTOR] = scenario.make_policy(augmentation)
    truth = Truth()
    for episode in RunReader(run):
        truth.episodes += 1
        truth.steps += len(episode.steps)
        _examine(episode, problem, {source: Answerer(policy, source) for source, policy in policies.items()}, truth)
    return truth


def _examine(episode: Episode, problem: Problem, policies: dict[Source, Answerer | None], truth: Truth) -> None:
    if not episode.steps:
        return
    seen = problem.reset(episode.seed)
    handoff = True
    for step in episode.steps:
        place = f"episode {episode.index} ({episode.outcome.name.lower()}), step {step.index}"
        if not (np.array_equal(step.observation, seen.values) and np.array_equal(step.position, seen.position)):
            truth.untrue.append(f"{place}: the plant saw something else")
        query = Query(episode.index, step.index, episode.seed, step.observation, handoff, episode.mode)
        handoff = step.source is Source.AUGMENTOR
        proposals = {Source.LOGGING_POLICY: step.logging_proposal, Source.AUGMENTOR: step.augmentor_proposal}
        for source, proposal in proposals.items():
            if not _said(policies, query, source, proposal):
                truth.untrue.append(f"{place}: the {source.name.lower().replace('_', ' ')} said something else")
        if not np.array_equal(step.action, proposals[step.source]):
            truth.untrue.append(f"{place}: nobody proposed what was done")
        if _is_unsafe(step.action, seen.position, problem.limits):
            truth.unsafe.append(place)
        seen = problem.step(step.action)
    known = episode.outcome is not Outcome.RECOVERED and episode.final_observation.size
    if known and not np.array_equal(episode.final_observation, seen.values):
        truth.untrue.append(f"the end of episode {episode.index} ({episode.outcome.name.lower()})")


def _said(policies: dict[Source, Answerer | None], query: Query, source: Source, proposal: FloatArray) -> bool:
    """Whether a policy says now what is recorded.

    Which random numbers an augmentor has drawn that was silent once, because it was late or dead, nobody knows; it is
    not asked any more in its episode.
    """
    if source not in policies:
        return not proposal.size
    policy = policies[source]
    answer = None if policy is None else policy.answer(query)
    if not proposal.size:
        policies[source] = None
    return not proposal.size or answer is None or np.array_equal(proposal, answer.action)


def _is_unsafe(action: FloatArray, position: FloatArray, limits: Limits) -> bool:
    slack = 1e-6 * limits.action_radius
    if np.linalg.norm(action) > limits.action_radius + slack:
        return True
    if limits.workspace is None:
        return False
    low, high = limits.workspace
    return bool((position + action < low - slack).any() or (position + action > high + slack).any())
