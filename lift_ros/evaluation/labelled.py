"""Episodes as tables and plots take them: with rewards in hindsight, and the goal they mean, if none were measured."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from lift_ros.bags.hindsight import hindsight
from lift_ros.collection.records import Episode
from lift_ros.evaluation.frames import note_pictures
from lift_ros.evaluation.paths import goal_of
from lift_ros.positioning.pictures import PictureFormat


@dataclass
class LabelledEpisodes:
    """Episodes without pictures, and where their rewards come from."""

    episodes: list[Episode] = field(default_factory=list)
    labelled: int = 0  # in hindsight
    unknown: int = 0  # not measured, and not to be labelled
    pictures: Counter[PictureFormat] = field(default_factory=Counter)  # how many were there
    pictured: list[Episode] = field(default_factory=list)  # those that had one with all that was seen

    @property
    def rewards(self) -> str:
        """Where the rewards come from, in a few words."""
        if self.unknown == len(self.episodes):
            return "unknown"
        words = "hindsight" if self.labelled else "measured"
        return f"{words}, {self.unknown} unknown" if self.unknown else words


def label_episodes(episodes: Iterable[Episode]) -> LabelledEpisodes:
    """Label the episodes that miss a reward as training does; pictures are counted and let go: they take too much."""
    result = LabelledEpisodes()
    for episode in episodes:
        pictured = note_pictures(episode, result.pictures)
        for step in episode.steps:
            step.image = None
        episode.final_image = None
        if math.isnan(episode.episode_return):
            kept, _ = hindsight([episode])
            result.labelled += len(kept)
            result.unknown += not kept
            episode = replace(kept[0], goal=goal_of(episode)) if kept else episode
        result.episodes.append(episode)
        result.pictured += [episode] if pictured else []
    return result
