"""What the arbiter has sent and nobody has answered yet, so that it can be sent again."""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import replace
from typing import Any

from lift_ros.collection.exchange import Hold, Move, Party, Query, Receipt, Reset
from lift_ros.collection.records import Episode, Step
from lift_ros.messages import records as wire


class Outbox:
    """Publishes and remembers; receivers know repeats by episode and step and never act twice."""

    def __init__(self, run: str, *, shows_pictures: bool = True, **publishers: Any) -> None:
        self.run = run  # the token that all of it carries
        self._shows_pictures = shows_pictures  # to policies; records of steps always hold them
        self.publishers = publishers  # plant, policies, steps and episodes
        self.records: dict[tuple[int, int | None], tuple[str, Any]] = {}  # publisher and message
        self._command: Any = None
        self._query: Any = None

    def command(self, command: Reset | Move | Hold) -> None:
        """Command the plant."""
        message = wire.encode_command(command, time.time_ns(), self.run)
        if not isinstance(command, Hold):  # a hold is not answered
            self._command = message
        self.publishers["plant"].publish(message)

    def ask(self, query: Query) -> None:
        """Ask the policies; a picture that none of them looks at would only take its time."""
        if not self._shows_pictures:
            query = replace(query, image=None)
        self._query = wire.encode_query(query, time.time_ns(), self.run)
        self.publishers["policies"].publish(self._query)

    def record(self, record: Step | Episode) -> None:
        """Have a step or the end of an episode recorded."""
        if isinstance(record, Step):
            self._record("steps", wire.encode_step(record, frame_id=self.run), (record.episode, record.index))
        else:
            end = wire.encode_episode(wire.EpisodeEnd.of(record), frame_id=self.run)
            self._record("episodes", end, (record.index, None))

    def _record(self, publisher: str, message: Any, key: tuple[int, int | None]) -> None:
        self.publishers[publisher].publish(message)
        self.records[key] = (publisher, message)

    def confirm(self, receipt: Receipt) -> bool:
        """Forget what is recorded, and the steps of a whole episode; return whether somebody waited for it."""
        known = self.records.pop((receipt.episode, receipt.step), None) is not None
        if known and receipt.step is None:
            self.records.clear()
        return known

    def repeat(self, parties: Collection[Party]) -> None:
        """Send again what `parties` have not answered."""
        if Party.PLANT in parties:
            self.publishers["plant"].publish(self._command)
        if Party.RECORDER in parties:
            for publisher, message in list(self.records.values()):
                self.publishers[publisher].publish(message)
        if Party.LOGGING_POLICY in parties or Party.AUGMENTOR in parties:
            self.publishers["policies"].publish(self._query)
