"""Turn a bag that somebody recorded into a run: `lift import`."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path

from lift_ros.bags.importing.episodes import split_into_episodes
from lift_ros.bags.importing.foreign_bag import open_bag
from lift_ros.bags.importing.images import require_image_topic, with_pictures
from lift_ros.bags.importing.mapping import Mapping
from lift_ros.bags.importing.streams import read_streams
from lift_ros.bags.writer import RunWriter
from lift_ros.errors import UserError


@dataclass
class ImportReport:
    """What became of a bag: what was kept, and what was dropped for which reason."""

    episodes: int = 0
    steps: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)


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
        facts = {"imported_from": bag_path.name, "mapping": asdict(mapping), "dropped": dict(dropped)}
        report = ImportReport(episodes=len(episodes), dropped=dropped)
        with RunWriter(out, facts) as writer:
            for episode, received in episodes:
                if mapping.image is not None:
                    # One episode's pictures are in memory at a time.
                    episode = with_pictures(episode, bag, mapping.image, received)
                writer.write_episode(episode)
                report.steps += len(episode.steps)
                report.outcomes[episode.outcome.name.lower()] += 1
    return report
