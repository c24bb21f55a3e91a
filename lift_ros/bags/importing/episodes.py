"""Episodes out of the samples of a bag: where each ended, what was rewarded, and why some are left out."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from lift_ros.array_types import FloatArray, IntArray
from lift_ros.bags.importing.foreign_bag import ForeignBag
from lift_ros.bags.importing.mapping import DISTANCE, Mapping
from lift_ros.bags.importing.samples import Samples, actions_between, episode_samples
from lift_ros.bags.importing.streams import Streams, read_events
from lift_ros.collection.records import Episode, Mode, Outcome, Source, Step
from lift_ros.errors import UserError

_NOWHERE: FloatArray = np.empty(0)


@dataclass(slots=True)
class ImportedEpisode:
    """An episode out of a bag and the rows of the image topic that belong to its samples."""

    episode: Episode
    images: IntArray | None


@dataclass(slots=True)
class Ending:
    """How an episode ended: after which sample, where its goal was, and why it did not arrive."""

    last: int
    outcome: Outcome
    goal: FloatArray
    reason: str = ""


def _fixed_goal(mapping: Mapping, streams: Streams, samples: Samples) -> FloatArray:
    if mapping.goal.position:
        goal = np.asarray(mapping.goal.position, dtype=np.float64)
    else:
        rows = [max(0, int(np.searchsorted(s.times, samples.times[-1], side="right")) - 1) for s in streams.goal]
        goal = np.concatenate([stream.values[row] for stream, row in zip(streams.goal, rows, strict=True)])
    if goal.size != samples.position.shape[1]:
        raise UserError(
            f"mapping: goal has {goal.size} values and position {samples.position.shape[1]}; they must agree"
        )
    return goal


def find_ending(mapping: Mapping, streams: Streams, samples: Samples, signals: IntArray) -> Ending:
    """Apply the goal rule to the samples of one episode."""
    last = samples.times.size - 1
    if mapping.goal.rule == "last_position":
        if not samples.span.ended:
            return Ending(last, Outcome.ABORTED, _NOWHERE, "the bag ends before the end trigger")
        return Ending(last, Outcome.REACHED, samples.position[last])
    if mapping.goal.rule == "signal":
        during = signals[(signals > samples.times[0]) & (signals <= samples.span.stop)]
        if during.size == 0:
            return Ending(last, Outcome.ABORTED, _NOWHERE, "the goal signal did not come")
        arrived = min(last, int(np.searchsorted(samples.times, during[0], side="left")))
        return Ending(arrived, Outcome.REACHED, samples.position[arrived])
    assert mapping.goal.within is not None
    goal = _fixed_goal(mapping, streams, samples)
    distances = np.linalg.norm(samples.position - goal, axis=1)
    near = np.nonzero(distances[1:] <= mapping.goal.within)[0]
    if near.size == 0:
        reason = f"ended {distances[-1]:.3g} from the goal, more than {mapping.goal.within:g}"
        return Ending(last, Outcome.ABORTED, goal, reason)
    return Ending(int(near[0]) + 1, Outcome.REACHED, goal)


def _rewards(mapping: Mapping, samples: Samples, ending: Ending) -> FloatArray:
    if mapping.reward == DISTANCE and ending.goal.size:
        return -np.asarray(np.linalg.norm(samples.position[1:] - ending.goal, axis=1))
    if samples.reward.shape[1]:
        return samples.reward[1:, 0]
    return np.full(samples.times.size - 1, np.nan)


def build_episode(
    index: int, mapping: Mapping, streams: Streams, samples: Samples, signals: IntArray, dropped: Counter[str]
) -> ImportedEpisode | None:
    """Return an episode and the rows of its pictures, or count why these samples make none."""
    if samples.times.size < 2:
        dropped["episode of less than two samples"] += 1
        return None
    actions = actions_between(mapping, streams.action, samples)
    if mapping.action.meaning == "target":
        begin = int(np.argmax(np.isfinite(actions).all(axis=1)))
        dropped["sample before the first target"] += begin
        samples, actions = samples.take(slice(begin, None)), actions[begin:]
    if not np.isfinite(actions).all():
        dropped["episode with an action that is not finite"] += 1
        return None
    ending = find_ending(mapping, streams, samples, signals)
    dropped["sample after arrival"] += samples.times.size - 1 - ending.last
    samples, actions = samples.take(slice(0, ending.last + 1)), actions[: ending.last]
    least = mapping.episodes.minimum_steps
    if len(actions) < least:
        dropped[f"episode shorter than {least} steps"] += 1
        return None
    rewards = _rewards(mapping, samples, ending)
    steps = [
        Step(
            episode=index,
            index=i,
            time_ns=int(samples.times[i]),
            observation=samples.observation[i].copy(),
            position=samples.position[i].copy(),
            action=actions[i].copy(),
            reward=float(rewards[i]),
            source=Source.LOGGING_POLICY,
        )
        for i in range(len(actions))
    ]
    episode = Episode(
        index=index,
        seed=0,
        mode=Mode.COLLECT,
        outcome=ending.outcome,
        steps=steps,
        final_observation=samples.observation[-1].copy(),
        reason=ending.reason,
        final_position=samples.position[-1].copy(),
        goal=ending.goal.copy(),
        start_time_ns=int(samples.times[0]),
        end_time_ns=int(samples.times[-1]),
    )
    return ImportedEpisode(episode, samples.image)


def split_into_episodes(
    bag: ForeignBag, mapping: Mapping, streams: Streams
) -> tuple[list[ImportedEpisode], Counter[str]]:
    """Return all episodes of a bag, without their pictures, and what was left out, counted by reason."""
    signal = mapping.goal.signal
    signals = np.empty(0, dtype=np.int64) if signal is None else read_events(bag, signal, mapping.time.stamp)
    episodes: list[ImportedEpisode] = []
    dropped: Counter[str] = Counter()
    for samples in episode_samples(bag, mapping, streams, dropped):
        imported = build_episode(len(episodes), mapping, streams, samples, signals, dropped)
        if imported is not None:
            episodes.append(imported)
    return episodes, dropped + bag.dropped
