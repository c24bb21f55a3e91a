"""Rules for every test: ROS tests are kept apart, and only they may be run again on a loaded machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from isolation import isolated

HERE = Path(__file__).parent
ROS_FOLDERS = (HERE / "nodes", HERE / "system")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    can_rerun = config.pluginmanager.hasplugin("rerunfailures")
    for item in items:
        if any(folder in item.path.parents for folder in ROS_FOLDERS):
            item.add_marker(pytest.mark.ros)
        if can_rerun and item.get_closest_marker("ros") is not None:
            item.add_marker(pytest.mark.flaky(reruns=2))


@pytest.fixture(autouse=True)
def ros_domain(request: pytest.FixtureRequest) -> Iterator[int | None]:
    """Give a test marked `ros` a domain of its own and end what it leaves behind."""
    if request.node.get_closest_marker("ros") is None:
        yield None
        return
    with isolated() as domain:
        yield domain
