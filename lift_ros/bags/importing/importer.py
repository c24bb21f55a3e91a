"""`lift import`: episodes out of the samples of a bag - where each ended, what was rewarded - written as a run."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

from lift_ros.array_types import FloatArray, IntArray
from lift_ros.bags.importing.consistency import doubts_of_actions
from lift_ros.bags.importing.foreign_bag import ForeignBag, open_bag
from lift_ros.bags.importing.images import require_image_topic, with_pictures
from lift_ros.bags.importing.mapping import DISTANCE, Mapping
from lift_ros.bags.importing.samples import (
    SECOND,
    Samples,
    Streams,
    actions_between,
    find_samples,
    read_events,
    read_streams,
)
from lift_ros.bags.writer import RunWriter
from lift_ros.collection.records import Episode, Mode, Outcome, Source, Step
from lift_ros.errors import UserError

_NOWHERE: FloatArray = np.empty(0)
Imported = tuple[Episode, IntArray]  # an episode out of a bag, and when the pictures of its samples were received


@dataclass
class ImportReport:
    """What became of a bag: what was kept, and what was dropped for which reason."""

    episodes: int = 0
    steps: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)
    doubts: list[str] = field(default_factory=list)  # what is kept, but hardly meant


def _fixed_goal(mapping: Mapping, streams: Streams, samples: Samples) -> FloatArray:
    goal = np.asarray(mapping.goal.position, dtype=np.float64)
    if not goal.size:
        rows = [max(0, np.searchsorted(s.times, samples.times[-1], side="right") - 1) for s in streams["goal"]]
        goal = np.concatenate([stream.values[row] for stream, row in zip(streams["goal"], rows, strict=True)])
    if goal.size != samples.position.shape[1]:
        sizes = f"{goal.size} values and position {samples.position.shape[1]}"
        raise UserError(f"mapping: goal has {sizes}; they must agree")
    return goal


def find_ending(mapping: Mapping, streams: Streams, samples: Samples, signals: IntArray) -> tuple[int, FloatArray, str]:
    """Return after which sample an episode ended, where its goal was, and why it did not arrive: empty where it did."""
    last = samples.times.size - 1
    if mapping.goal.signal is not None:
        during = signals[(signals > samples.times[0]) & (signals <= samples.span.stop)]
        if during.size == 0:
            return last, _NOWHERE, "the goal signal did not come"
        last = min(last, int(np.searchsorted(samples.times, during[0], side="left")))
    elif mapping.goal.within is not None:
        goal = _fixed_goal(mapping, streams, samples)
        distances = np.linalg.norm(samples.position - goal, axis=1)
        near = np.nonzero(distances[1:] <= mapping.goal.within)[0]
        if near.size == 0:
            return last, goal, f"ended {distances[-1]:.3g} from the goal, more than {mapping.goal.within:g}"
        return int(near[0]) + 1, goal, ""
    elif not samples.span.ended:
        return last, _NOWHERE, "the bag ends before the end trigger"
    return last, samples.position[last], ""


def _rewards(mapping: Mapping, samples: Samples, goal: FloatArray) -> FloatArray:
    measured: FloatArray = samples.columns["reward"]
    if mapping.reward == DISTANCE and goal.size:
        return -np.asarray(np.linalg.norm(samples.position[1:] - goal, axis=1))
    return measured[1:, 0] if measured.shape[1] else np.full(samples.times.size - 1, np.nan)


def build_episode(
    index: int, mapping: Mapping, streams: Streams, samples: Samples, signals: IntArray, dropped: Counter[str]
) -> Imported | None:
    """Return an episode and when its pictures were received, or count why these samples make none."""
    if samples.times.size < 2:
        dropped["episode of less than two samples"] += 1
        return None
    actions = actions_between(mapping, streams, samples)
    if mapping.action.meaning == "target":
        begin = int(np.argmax(np.isfinite(actions).all(axis=1)))
        dropped["sample before the first target"] += begin
        samples, actions = samples.take(slice(begin, None)), actions[begin:]
    if not np.isfinite(actions).all():
        dropped["episode with an action that is not finite"] += 1
        return None
    last, goal, reason = find_ending(mapping, streams, samples, signals)
    dropped["sample after arrival"] += samples.times.size - 1 - last
    samples, actions = samples.take(slice(0, last + 1)), actions[:last]
    least = mapping.episodes.minimum_steps
    if len(actions) < least:
        dropped[f"episode shorter than {least} steps"] += 1
        return None
    rewards = _rewards(mapping, samples, goal)
    observation = samples.columns["observation"]
    steps = [
        Step(
            episode=index,
            index=i,
            time_ns=int(samples.times[i]),
            observation=observation[i].copy(),
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
        outcome=Outcome.ABORTED if reason else Outcome.REACHED,
        steps=steps,
        final_observation=observation[-1].copy(),
        reason=reason,
        final_position=samples.position[-1].copy(),
        goal=goal.copy(),
        start_time_ns=int(samples.times[0]),
        end_time_ns=int(samples.times[-1]),
    )
    return episode, samples.columns["image"].ravel()


def split_into_episodes(bag: ForeignBag, mapping: Mapping, streams: Streams) -> tuple[list[Imported], Counter[str]]:
    """Return all episodes of a bag, without their pictures, and what was left out, counted by reason."""
    signal = mapping.goal.signal
    signals = np.empty(0, dtype=np.int64) if signal is None else read_events(bag, signal, mapping.time.stamp)
    episodes: list[Imported] = []
    dropped: Counter[str] = Counter()
    for samples in find_samples(bag, mapping, streams, dropped):
        if imported := build_episode(len(episodes), mapping, streams, samples, signals, dropped):
            episodes.append(imported)
    return episodes, dropped + bag.dropped


def _command_period(streams: Streams) -> float:
    """Return the usual time between two commands in seconds; NaN where nothing was commanded."""
    between = [np.diff(stream.times) for stream in streams["action"] if stream.times.size > 1]
    return float(np.median(np.concatenate(between))) / SECOND if between else math.nan


def import_bag(bag_path: Path, mapping: Mapping, out: Path) -> ImportReport:
    """Write the episodes that the mapping finds in a bag as a new run and report what was dropped."""
    if out.exists():
        raise UserError(f"{out} exists already; choose another --out or remove it")
    with open_bag(bag_path) as bag:
        for topic in mapping.topics():
            bag.connections(topic)  # name a missing topic before minutes are spent reading the others
        if mapping.image is not None:
            require_image_topic(bag, mapping.image)
        streams = read_streams(bag, mapping)
        episodes, dropped = split_into_episodes(bag, mapping, streams)
        if not episodes:
            reasons = "; ".join(f"{count}x {reason}" for reason, count in dropped.most_common())
            raise UserError(f"bag {bag_path} gives no episode with this mapping: {reasons or 'no samples at all'}")
        doubts = doubts_of_actions(mapping.action, [episode for episode, _ in episodes], _command_period(streams))
        facts = {
            "imported_from": bag_path.name,
            "mapping": asdict(mapping),
            "dropped": dict(dropped),
            "doubts": doubts,
        }
        report = ImportReport(episodes=len(episodes), dropped=dropped, doubts=doubts)
        with RunWriter(out, facts) as writer:
            for episode, received in episodes:
                if mapping.image is not None:
                    # One episode's pictures are in memory at a time.
                    episode = with_pictures(episode, bag, mapping.image, received)
                writer.write_episode(episode)
                report.steps += len(episode.steps)
                report.outcomes[episode.outcome.name.lower()] += 1
    return report
