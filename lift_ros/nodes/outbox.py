"""What the arbiter has sent and nobody has answered yet, so that it can be sent again."""

from __future__ import annotations

import time
from collections.abc import Collection
from typing import Any

from lift_ros.collection.exchange import Hold, Move, Party, Query, Receipt, Reset
from lift_ros.collection.records import Episode, Step
from lift_ros.messages import records as wire


class Outbox:
    """Publishes and remembers; receivers know repeats by episode and step and never act twice."""

    def __init__(self, *, plant: Any, policies: Any, steps: Any, episodes: Any) -> None:
        self._plant = plant
        self._policies = policies
        self._steps = steps
        self._episodes = episodes
        self._command: Any = None
        self._query: Any = None
        self._records: dict[tuple[int, int | None], tuple[Any, Any]] = {}  # publisher and message

    def command(self, command: Reset | Move | Hold) -> None:
        """Command the plant."""
        message = wire.encode_command(command, time.time_ns())
        if not isinstance(command, Hold):  # a hold is not answered
            self._command = message
        self._plant.publish(message)

    def ask(self, query: Query) -> None:
        """Ask the policies."""
        self._query = wire.encode_query(query, time.time_ns())
        self._policies.publish(self._query)

    def record_step(self, step: Step) -> None:
        """Have a step recorded."""
        self._record(self._steps, wire.encode_step(step), (step.episode, step.index))

    def record_episode(self, episode: Episode) -> None:
        """Have the end of an episode recorded."""
        self._record(self._episodes, wire.encode_episode(wire.EpisodeEnd.of(episode)), (episode.index, None))

    def _record(self, publisher: Any, message: Any, key: tuple[int, int | None]) -> None:
        publisher.publish(message)
        self._records[key] = (publisher, message)

    def confirm(self, receipt: Receipt) -> bool:
        """Forget what is recorded, and the steps of a whole episode; return whether somebody waited for it."""
        known = self._records.pop((receipt.episode, receipt.step), None) is not None
        if known and receipt.step is None:
            self._records.clear()
        return known

    def forget_records(self) -> None:
        """Repeat no record any more."""
        self._records.clear()

    def repeat(self, parties: Collection[Party]) -> None:
        """Send again what `parties` have not answered."""
        if Party.PLANT in parties:
            self._plant.publish(self._command)
        if Party.RECORDER in parties:
            for publisher, message in list(self._records.values()):
                publisher.publish(message)
        if Party.LOGGING_POLICY in parties or Party.AUGMENTOR in parties:
            self._policies.publish(self._query)
