"""Episodes without what only the clock adds, to compare what a seed determines."""

from __future__ import annotations

from dataclasses import replace

from lift_ros.collection.records import Episode


def without_times(episode: Episode) -> Episode:
    """Return a copy with all times set to 0: what a seed determines, without what the clock adds."""
    steps = [replace(step, time_ns=0) for step in episode.steps]
    return replace(episode, steps=steps, start_time_ns=0, end_time_ns=0)
