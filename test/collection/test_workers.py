from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np
import pytest

from lift_ros.collection.records import Episode, Mode, Outcome
from lift_ros.collection.workers import WorkerError, Workers
from lift_ros.errors import UserError


def episode(index: int) -> Episode:
    return Episode(index, 0, Mode.COLLECT, Outcome.REACHED, [], np.empty(0))


def make_good() -> Callable[[int], Episode]:
    return episode


def make_failing() -> Callable[[int], Episode]:
    def fail(index: int) -> Episode:
        if index == 1:
            raise ValueError("no such episode")
        return episode(index)

    return fail


def make_dying() -> Callable[[int], Episode]:
    def die(index: int) -> Episode:
        os._exit(3)

    return die


def make_nothing() -> Callable[[int], Episode]:
    raise UserError("the plant has no power")


def run(make: Callable[[], Callable[[int], Episode]], indices: range, stop: bool = False) -> list[int]:
    workers = Workers(make, 2)
    try:
        return [one.index for one in workers.run(indices, lambda: stop)]
    finally:
        workers.close()
        assert not any(process.is_alive() for process in workers._processes)


def test_episodes_come_in_order() -> None:
    assert run(make_good, range(5, 40)) == list(range(5, 40))


def test_nothing_is_begun_after_a_stop() -> None:
    assert run(make_good, range(5), stop=True) == []


def test_a_failure_is_raised_with_the_workers_traceback() -> None:
    with pytest.raises(WorkerError, match="no such episode"):
        run(make_failing, range(3))


def test_a_users_mistake_stays_a_users_mistake() -> None:
    with pytest.raises(UserError, match="no power"):
        run(make_nothing, range(3))


def test_a_worker_that_is_killed_is_noticed() -> None:
    with pytest.raises(WorkerError, match="ended unexpectedly"):
        run(make_dying, range(3))
