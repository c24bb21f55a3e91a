"""What a node says of itself on /diagnostics: a status of a closed set, rates, latencies and drops by reason."""

from __future__ import annotations

import time
from collections import Counter, defaultdict, deque
from enum import Enum

import numpy as np
from diagnostic_msgs.msg import DiagnosticStatus, KeyValue

LATENCY_WINDOW = 1000

_OK = DiagnosticStatus.OK
_WARN = DiagnosticStatus.WARN
_ERROR = DiagnosticStatus.ERROR


class Status(Enum):
    """Every status a node can have: its level and one sentence."""

    STARTING = (_OK, "The node is starting.")
    ENDING = (_OK, "The node is ending.")
    # plant
    READY = (_OK, "The plant waits for an episode to begin.")
    MOVING = (_OK, "The plant executes the commands of an episode.")
    HOLDING = (_WARN, "No command came within the watchdog time, so the plant holds its position.")
    HELD = (_OK, "The plant holds its position because it was told to.")
    EMERGENCY_STOP = (_ERROR, "The emergency stop is latched and every command is refused until it is released.")
    FAULT = (_ERROR, "The hardware has a fault, and every command is refused until the service reset_fault is called.")
    # policies
    SERVING = (_OK, "Queries are answered.")
    NO_MODEL = (_OK, "There is no model yet, so queries are answered without a proposal.")
    BAD_MODEL = (_ERROR, "The last model was refused and the one before it keeps serving, if there was one.")
    POLICY_FAILED = (_ERROR, "The policy raised an error, so the query was answered without a proposal.")
    # arbiter
    WAITING_FOR_START = (_OK, "The arbiter waits for a call of the service start or resume.")
    WAITING_FOR_RECORDER = (_WARN, "The arbiter waits for the recorder; no unrecorded step is made.")
    WAITING_FOR_PLANT = (_WARN, "The arbiter waits for the plant.")
    WAITING_FOR_LOGGING_POLICY = (_WARN, "The arbiter waits for the logging policy before the first move.")
    WAITING_FOR_MODEL = (_OK, "The arbiter waits until the augmentor serves a model.")
    NOT_ALONE = (_ERROR, "Somebody else runs episodes here, so that none is begun.")
    RETRYING = (_WARN, "The last episode was aborted before its first move, and the next is tried in a while.")
    RUNNING = (_OK, "An episode is under way.")
    PAUSED = (_WARN, "The arbiter is paused until the service resume is called.")
    DONE = (_OK, "All episodes of the run are recorded.")
    # recorder
    RECORDING = (_OK, "Steps and episodes are recorded.")
    RECORDING_FAILED = (_ERROR, "Recording has failed, so nothing more is confirmed.")
    # page, monitor
    WATCHING = (_OK, "What the graph does is shown.")
    # trainer
    WAITING_FOR_EPISODES = (_OK, "The trainer waits until enough episodes are recorded.")
    TRAINING = (_OK, "A model is being trained.")
    TRAINED = (_OK, "A model was trained and announced.")
    TRAINING_FAILED = (_ERROR, "Training has failed and is tried again in a moment.")

    def __init__(self, level: bytes, sentence: str) -> None:
        self.level = level  # of diagnostic_msgs/DiagnosticStatus
        self.sentence = sentence


class Diagnostics:
    """Collects what one node reports; cheap to feed inside callbacks, summed up only when it is published."""

    def __init__(self, name: str, hardware_id: str) -> None:
        self.name = name
        self.hardware_id = hardware_id
        self.status = Status.STARTING
        self.detail = ""
        self.facts: dict[str, object] = {}
        self.drops: Counter[str] = Counter()
        self.counts: Counter[str] = Counter()
        self._counts_before: Counter[str] = Counter()
        self._latencies: defaultdict[str, deque[int]] = defaultdict(lambda: deque(maxlen=LATENCY_WINDOW))
        self._summed_up_ns = time.monotonic_ns()

    def count(self, what: str) -> None:
        """Count an event whose number and rate are reported."""
        self.counts[what] += 1

    def latency(self, what: str, duration_ns: int) -> None:
        """Note how long something took; the last thousand are summed up."""
        self._latencies[what].append(duration_ns)

    def message(self) -> DiagnosticStatus:
        """Return the report and begin to count rates anew."""
        now = time.monotonic_ns()
        seconds = max(1, now - self._summed_up_ns) / 1e9
        values: dict[str, object] = {"status": self.status.name, "detail": self.detail, **self.facts}
        for what, number in self.counts.items():
            values[what] = number
            values[f"{what} per second"] = f"{(number - self._counts_before[what]) / seconds:.1f}"
        for what, window in self._latencies.items():
            for label, value in zip(("p50", "p99", "max"), np.percentile(window, (50, 99, 100)), strict=True):
                values[f"{what} {label} [ms]"] = f"{value / 1e6:.3f}"
        values["drops"] = sum(self.drops.values())
        for reason, number in self.drops.items():
            values[f"drops: {reason}"] = number
        self._counts_before = self.counts.copy()
        self._summed_up_ns = now
        return DiagnosticStatus(
            level=self.status.level,
            name=self.name,
            message=f"{self.status.sentence} {self.detail}".rstrip(),
            hardware_id=self.hardware_id,
            values=[KeyValue(key=key, value=str(value)) for key, value in values.items()],
        )
