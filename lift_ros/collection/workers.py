"""Episodes on several processes: handed out one by one, returned in order, whoever finishes first."""

from __future__ import annotations

import contextlib
import multiprocessing
import signal
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, TypeAlias

from lift_ros.collection.interruption import sigint_blocked
from lift_ros.collection.packed import pack, unpack
from lift_ros.collection.records import Episode
from lift_ros.errors import UserError
from lift_ros.processes import end_with_parent


@dataclass(frozen=True)
class Filing:
    """How episodes leave the processes that make them.

    `write` is sent to these; `adopt` is given here, in the order of episodes, what it has returned, and returns the
    episode, or as much of it as it knows.
    """

    write: Callable[[Episode], Any]
    adopt: Callable[[Any], Episode]


SENT = Filing(pack, unpack)  # whole
EpisodeRunner: TypeAlias = Callable[[int], Episode]
JOIN_SECONDS = 10.0
LOOKAHEAD = 8  # episodes per process that may be begun while a slow one before them is under way


class WorkerError(RuntimeError):
    """An episode failed in a worker; the text holds the worker's traceback."""


def _serve(make_runner: Callable[[], EpisodeRunner], write: Callable[[Episode], Any], connection: Connection) -> None:
    """Run the episodes whose numbers arrive, until the connection is closed at the other end."""
    end_with_parent(signal.SIGKILL)  # also a routine that never returns
    try:
        runner = make_runner()
        while True:
            connection.send(write(runner(connection.recv())))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return
    except UserError as error:
        connection.send(error)
    except Exception:
        connection.send(WorkerError(f"an episode failed in a worker process:\n{traceback.format_exc()}"))


class Workers:
    """Processes that each run one episode at a time; `make_runner` is pickled and called once in each of them."""

    def __init__(self, make_runner: Callable[[], EpisodeRunner], count: int, filing: Filing = SENT) -> None:
        self._adopt = filing.adopt
        context = multiprocessing.get_context("spawn")
        self._processes: list[BaseProcess] = []
        self._connections: list[Connection] = []
        # Started first, because starting it unblocks the signal in passing.
        resource_tracker.ensure_running()
        try:
            with sigint_blocked():
                for _ in range(count):
                    ours, theirs = context.Pipe()
                    self._connections.append(ours)
                    process = context.Process(target=_serve, args=(make_runner, filing.write, theirs), daemon=True)
                    process.start()
                    self._processes.append(process)
                    theirs.close()
        except BaseException:
            self.close()
            raise

    def run(self, indices: range, stop_requested: Callable[[], bool]) -> Iterator[Episode]:
        """Yield the episodes of these numbers in order.

        Once `stop_requested` no further one is begun; those under way are finished and yielded, so that no number
        between two others is left out.
        """
        idle = list(self._connections)
        under_way: dict[Connection, int] = {}
        finished: dict[int, Any] = {}
        wanted = upcoming = indices.start
        while wanted < indices.stop:
            ahead = min(indices.stop, wanted + LOOKAHEAD * len(self._connections))
            while idle and upcoming < ahead and not stop_requested():
                connection = idle.pop()
                # A worker that has ended meanwhile says why when its answer is received.
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    connection.send(upcoming)
                under_way[connection] = upcoming
                upcoming += 1
            if wanted in finished:
                yield self._adopt(finished.pop(wanted))
                wanted += 1
            elif under_way:
                for connection in [ready for ready in wait(list(under_way)) if isinstance(ready, Connection)]:
                    finished[under_way.pop(connection)] = _receive(connection)
                    idle.append(connection)
            else:
                return

    def close(self) -> None:
        """End all processes; one that is still busy is not waited for."""
        for connection in self._connections:
            connection.close()
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            process.join(JOIN_SECONDS)


def _receive(connection: Connection) -> Any:
    try:
        answer = connection.recv()
    except (EOFError, ConnectionResetError):
        raise WorkerError(
            "a worker process ended unexpectedly: it was killed, was short of memory, or could not import the script "
            "that started it (which needs `if __name__ == '__main__':` around the call, in a file of its own)"
        ) from None
    if isinstance(answer, Exception):
        raise answer
    return answer
