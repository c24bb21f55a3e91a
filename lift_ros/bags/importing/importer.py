"""Turn a bag that somebody recorded into a run: `lift import`."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path

from lift_ros.bags.importing.episodes import Found, find_episodes
from lift_ros.bags.importing.images import read_images, require_image_topic
from lift_ros.bags.importing.mapping import Mapping
from lift_ros.bags.importing.streams import Bag, Ticks, open_bag
from lift_ros.bags.writer import RunWriter
from lift_ros.errors import UserError


@dataclass(slots=True)
class ImportReport:
    """What became of a bag: what was kept, and what was dropped for which reason."""

    episodes: int = 0
    steps: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)


def _attach_images(bag: Bag, topic: str, ticks: Ticks, found: Found) -> None:
    pictures = read_images(bag, topic, ticks, found.images)
    for step, picture in zip(found.episode.steps, pictures, strict=False):
        step.image = picture
    found.episode.final_image = pictures[-1]


def _detach_images(found: Found) -> None:
    """Keep one episode's pictures in memory at a time."""
    for step in found.episode.steps:
        step.image = None
    found.episode.final_image = None


def _check_names(bag: Bag, mapping: Mapping) -> None:
    """Name a missing topic before minutes are spent reading the others."""
    channels = [*mapping.observation, *mapping.position, *mapping.goal.channels]
    channels += [] if mapping.action.channel is None else [mapping.action.channel]
    channels += list(mapping.reward) if isinstance(mapping.reward, tuple) else []
    triggers = [mapping.episodes.start, mapping.episodes.end, mapping.goal.signal]
    topics = [channel.topic for channel in channels] + [trigger.topic for trigger in triggers if trigger]
    topics += [topic for topic in (mapping.time.topic, mapping.image) if topic]
    for topic in topics:
        bag.require(topic)
    if mapping.image is not None:
        require_image_topic(bag, mapping.image)


def import_bag(bag_path: Path, mapping: Mapping, out: Path) -> ImportReport:
    """Write the episodes that the mapping finds in a bag as a new run and report what was dropped."""
    if out.exists():
        raise UserError(f"{out} exists already; choose another --out or remove it")
    report = ImportReport()
    with open_bag(bag_path) as bag:
        _check_names(bag, mapping)
        episodes, ticks = find_episodes(bag, mapping, report.dropped)
        if not episodes:
            reasons = "; ".join(f"{count}x {reason}" for reason, count in report.dropped.most_common())
            raise UserError(f"bag {bag_path} gives no episode with this mapping: {reasons or 'no samples at all'}")
        facts = {"imported_from": bag_path.name, "mapping": asdict(mapping), "dropped": dict(report.dropped)}
        with RunWriter(out, facts) as writer:
            for found in episodes:
                if mapping.image is not None and ticks is not None:
                    _attach_images(bag, mapping.image, ticks, found)
                writer.write_episode(found.episode)
                _detach_images(found)
                report.steps += len(found.episode.steps)
                report.outcomes[found.episode.outcome.name.lower()] += 1
    report.episodes = len(episodes)
    return report
