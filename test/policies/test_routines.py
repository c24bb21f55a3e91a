from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from lift_ros.errors import UserError
from lift_ros.policies.loading import load_policy
from lift_ros.policies.protocol import SeededPolicy, begin_episode

ROUTINES = '''
import numpy as np

class Fixed:
    """Answers what it is told to, and remembers what happened."""
    def __init__(self, action, log=None):
        self.action, self.log = action, log if log is not None else []
    def reset(self):
        self.log.append("reset")
    def act(self, observation):
        self.log.append("act")
        observation[:] = 99.0
        return self.action

class Seeded(Fixed):
    def begin_episode(self, seed):
        self.log.append(seed)

class NoReset:
    def act(self, observation):
        return observation

class NoAct:
    def reset(self):
        pass

def spiral(observation, size=0.1, log=None):
    """Counts its steps in nested loops."""
    try:
        while True:
            for axis in range(2):
                for sign in (1.0, -1.0):
                    action = np.zeros(2)
                    action[axis] = sign * size
                    if log is not None:
                        log.append(observation.tolist())
                    observation = yield action
    finally:
        if log is not None:
            log.append("closed")

def short(observation):
    for _ in range(3):
        observation = yield [0.0, 0.0]

def plain(observation):
    return observation

text = "not a routine"
'''


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    folder = tmp_path / "my_package"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "my_module.py").write_text(ROUTINES)
    (folder / "broken.py").write_text("1 / 0")
    (folder / "needy.py").write_text("import a_module_that_nobody_has")
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in [name for name in sys.modules if name.split(".")[0] == "my_package"]:
        monkeypatch.delitem(sys.modules, name)
    return "my_package.my_module"


def test_a_class_with_arguments(package: str) -> None:
    log: list[object] = []
    policy = load_policy(f"{package}:Fixed", {"action": [0.1, 0.2], "log": log}, 2, 2)
    begin_episode(policy, 5)
    observation = np.zeros(2)
    action = policy.act(observation)
    assert action.tolist() == [0.1, 0.2] and action.dtype == np.float64
    assert log == ["reset", "act"]
    assert observation.tolist() == [0.0, 0.0], "the routine must not reach into the plant's observation"


def test_a_class_with_randomness_hears_the_seed(package: str) -> None:
    log: list[object] = []
    policy = load_policy(f"{package}:Seeded", {"action": [0, 0], "log": log}, 2, 2)
    assert isinstance(policy, SeededPolicy)
    begin_episode(policy, 5)
    assert log == [5, "reset"]


def test_a_generator_gets_each_observation_and_is_started_anew_on_hand_off(package: str) -> None:
    log: list[object] = []
    policy = load_policy(f"{package}:spiral", {"size": 0.5, "log": log}, 2, 2)
    policy.reset()
    actions = [policy.act(np.array([k, 0.0])).tolist() for k in range(3)]
    assert actions == [[0.5, 0.0], [-0.5, 0.0], [0.0, 0.5]]
    assert log == [[0.0, 0.0], [1.0, 0.0], [2.0, 0.0]]
    policy.reset()
    assert log[-1] == "closed"
    assert policy.act(np.array([9.0, 0.0])).tolist() == [0.5, 0.0]
    assert log[-1] == [9.0, 0.0]


def test_a_generator_that_ends_too_early(package: str) -> None:
    policy = load_policy(f"{package}:short", {}, 2, 2)
    for _ in range(3):
        policy.act(np.zeros(2))
    with pytest.raises(UserError, match=r"my_module:short ended after 3 steps.*while True"):
        policy.act(np.zeros(2))
    policy.reset()
    policy.act(np.zeros(2))


@pytest.mark.parametrize(
    ("spec", "arguments", "message"),
    [
        ("my_package.my_modul:Fixed", {}, r"no module 'my_package.my_modul'.*PYTHONPATH"),
        ("his_package.my_module:Fixed", {}, r"no module 'his_package'"),
        ("my_package.broken:Fixed", {}, r"importing 'my_package.broken' failed: ZeroDivisionError"),
        ("my_package.needy:Fixed", {}, r"'my_package.needy' needs 'a_module_that_nobody_has': install"),
        ("my_package.my_module:Fixd", {}, r"has no 'Fixd'; did you mean 'Fixed'"),
        ("my_package.my_module:", {}, r"my_package.my_module:Name"),
        (":Fixed", {}, r"my_package.my_module:Name"),
        ("my_package.my_module:text", {}, r"neither a class nor a generator function"),
        ("my_package.my_module:plain", {}, r"neither a class nor a generator function"),
        ("my_package.my_module:NoReset", {}, r"no method reset\(\)"),
        ("my_package.my_module:NoAct", {}, r"no method act\(\)"),
        ("my_package.my_module:Fixed", {}, r"cannot be called with arguments \{\}.*'action'"),
        ("my_package.my_module:Fixed", {"actoin": 1}, r"actoin"),
        ("my_package.my_module:spiral", {"radius": 1}, r"radius"),
    ],
)
def test_what_cannot_be_loaded(package: str, spec: str, arguments: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        load_policy(spec, arguments, 2, 2)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ([0.1, 0.2, 0.3], r"shape \(3,\).*\(2,\)"),
        (0.1, r"shape \(\)"),
        ([0.1, float("nan")], r"finite"),
        (None, r"answered None.*2 numbers"),
        ("left", r"answered 'left'.*2 numbers"),
        ([[1], [1, 2]], r"2 numbers"),
    ],
)
def test_wrong_answers(package: str, answer: object, message: str) -> None:
    policy = load_policy(f"{package}:Fixed", {"action": answer}, 2, 2)
    with pytest.raises(UserError, match=message):
        policy.act(np.zeros(2))


def test_named_policies() -> None:
    for name, arguments in [
        ("coordinate_walk", {"step": 0.1}),
        ("coordinate_walk_generator", {"step": 0.1}),
        ("noisy_coordinate_walk", {"action_radius": 0.3, "noise": 0.5}),
        ("direct", {"action_radius": 0.3}),
        ("secant", {"action_radius": 0.3, "gain": 0.8}),
    ]:
        policy = load_policy(name, arguments, 6, 3)
        begin_episode(policy, 0)
        assert policy.act(np.ones(6)).shape == (3,)


def test_unknown_names_and_arguments() -> None:
    with pytest.raises(UserError, match=r"unknown policy 'coordinate-walk'; did you mean 'coordinate_walk"):
        load_policy("coordinate-walk", {}, 2, 2)
    with pytest.raises(UserError, match=r"unknown key 'stepp'; did you mean 'step'"):
        load_policy("coordinate_walk", {"stepp": 0.1}, 2, 2)
    with pytest.raises(UserError, match=r"step is -0.1; allowed: a number > 0"):
        load_policy("coordinate_walk", {"step": -0.1}, 2, 2)
    with pytest.raises(UserError, match=r"action_radius is missing"):
        load_policy("direct", {}, 2, 2)
    with pytest.raises(UserError, match=r"displacements of 2 entries.*3"):
        load_policy("coordinate_walk", {}, 3, 2)
