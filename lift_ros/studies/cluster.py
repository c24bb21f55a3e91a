"""Cells on a Ray cluster, or on a Ray of this machine alone; the cell of a worker that dies is begun anew."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lift_ros.errors import UserError
from lift_ros.studies.cell import Cell, Result
from lift_ros.studies.processes import MOST_DEATHS, Outcome
from lift_ros.studies.work import ONE_THREAD, work

LOCAL = "local"  # the address of a Ray that begins and ends with the study
_PATIENCE = 5.0  # [s] for a connection
_QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}


def on_ray(cells: Sequence[Cell], folder: Path, address: str, count: int) -> Iterator[Outcome]:
    """Compute cells on a cluster, or with `local` on so many workers here, and yield each with its outcome.

    A worker on a machine that does not share the folder keeps its recordings there; results come back in any case.
    """
    ray = _load()
    with _connected(ray, address, count):
        remote = ray.remote(num_cpus=1, max_retries=MOST_DEATHS - 1)(work)
        room = max(1, int(ray.cluster_resources().get("CPU", 1)))
        upcoming = iter(cells)
        under_way: dict[Any, Cell] = {}
        while True:
            while len(under_way) < room and (cell := next(upcoming, None)) is not None:
                under_way[remote.remote(cell, str(folder))] = cell
            if not under_way:
                return
            done, _ = ray.wait(list(under_way), num_returns=1)
            for reference in done:
                yield under_way.pop(reference), _outcome(ray, reference)


def _outcome(ray: Any, reference: Any) -> Result | Exception:
    try:
        result: Result = ray.get(reference)
        return result
    except ray.exceptions.RayTaskError as error:
        cause = error.cause
        return cause if isinstance(cause, UserError) else RuntimeError(str(error))
    except ray.exceptions.RayError as error:
        return RuntimeError(str(error))


@contextmanager
def _connected(ray: Any, address: str, count: int) -> Iterator[None]:
    environment = {"env_vars": {**ONE_THREAD, "PYTHONSAFEPATH": "1"}}
    options: dict[str, Any] = {"log_to_driver": False, "runtime_env": environment, "logging_level": "ERROR"}
    if address == LOCAL:
        # Loopback only: no other machine has business with it.
        options |= {"num_cpus": count, "include_dashboard": False, "_node_ip_address": "127.0.0.1", "address": "local"}
    else:
        _check_reachable(address)
        options["address"] = address
    before = {name: os.environ.get(name) for name in _QUIET}
    os.environ.update(_QUIET)
    try:
        try:
            ray.init(**options)
        except (ConnectionError, RuntimeError, ValueError, TimeoutError) as error:
            raise UserError(f"no Ray answers at {address!r} ({error}); start one with `ray start --head`") from error
        yield
    finally:
        ray.shutdown()
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _check_reachable(address: str) -> None:
    """Refuse an address at which nobody listens at once: Ray itself would try for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host:  # a word that Ray knows, such as auto
        return
    try:
        socket.create_connection((host, int(port)), _PATIENCE).close()
    except (OSError, ValueError) as error:
        raise UserError(f"no Ray answers at {address!r} ({error}); start one with `ray start --head`") from error


def _load() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError as error:
        raise UserError(
            "Ray is not installed; install it with `pip install ray==2.60.0`, or lift_ros with its extra `study`, or "
            "use --processes"
        ) from error
    return ray
