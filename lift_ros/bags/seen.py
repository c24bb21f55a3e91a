"""The part of an episode whose consequences were seen, which is what can be learned from."""

from __future__ import annotations

from dataclasses import replace

from lift_ros.collection.records import Episode


def seen_part(episode: Episode) -> Episode:
    """Return the episode up to its last observation: what the last step of a recovered one led to was never seen."""
    if episode.final_observation.size or not episode.steps:
        return episode
    *steps, last = episode.steps
    return replace(
        episode,
        steps=steps,
        final_observation=last.observation,
        final_position=last.position,
        final_image=last.image,
    )
