"""A user's own routine as a policy: found by "module:Name", a class or a generator function, and watched."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Mapping
from typing import Any

import numpy as np

from lift_ros.array_types import FloatArray
from lift_ros.errors import UserError
from lift_ros.own_code import find_own
from lift_ros.policies.protocol import Policy, SeededPolicy

Routine = Generator[FloatArray, FloatArray, Any]


class GeneratorPolicy:
    """Drives a generator function: `observation` is its first argument, then `observation = yield action`.

    On a hand-off the generator is closed, and started anew with the next observation.
    """

    def __init__(self, function: Callable[..., Routine], arguments: Mapping[str, Any], name: str) -> None:
        self._function, self._arguments, self._name = function, dict(arguments), name
        self._routine: Routine | None = None
        self._steps = 0

    def reset(self) -> None:
        """Close the routine."""
        if self._routine is not None:
            self._routine.close()
        self._routine, self._steps = None, 0

    def act(self, observation: FloatArray) -> FloatArray:
        """Return what the routine yields for this observation."""
        try:
            if self._routine is None:
                self._routine = self._function(observation, **self._arguments)
                action = next(self._routine)
            else:
                action = self._routine.send(observation)
        except StopIteration:
            raise UserError(
                f"routine {self._name} ended after {self._steps} steps but the episode goes on: "
                f"let it yield actions until it is closed, for example in `while True`"
            ) from None
        self._steps += 1
        return action


class WatchedPolicy:
    """Passes everything on to a user's routine and refuses answers that are no action of the plant."""

    def __init__(self, policy: Policy, action_size: int, name: str) -> None:
        self._policy, self._action_size, self._name = policy, action_size, name

    def begin_episode(self, seed: int) -> None:
        """Pass the episode's seed on to a routine that has randomness."""
        if isinstance(self._policy, SeededPolicy):
            self._policy.begin_episode(seed)

    def reset(self) -> None:
        """Reset the routine."""
        self._policy.reset()

    def act(self, observation: FloatArray) -> FloatArray:
        """Return the routine's action as an array of its own."""
        # A copy both ways: a routine may keep and change what it was given, and change what it has returned.
        answer: Any = self._policy.act(np.array(observation))
        try:
            # As an array None would be NaN, which hides that a `return` is missing.
            action = np.array("nothing" if answer is None else answer, dtype=np.float64)
        except (TypeError, ValueError):
            raise UserError(
                f"routine {self._name} answered {answer!r}: return an array of {self._action_size} numbers"
            ) from None
        if action.shape != (self._action_size,):
            raise UserError(
                f"routine {self._name} answered an action of shape {action.shape}: "
                f"the plant's actions have shape ({self._action_size},)"
            )
        if not np.isfinite(action).all():
            raise UserError(f"routine {self._name} answered {action.tolist()}: all entries must be finite")
        return action


def load_routine(spec: str, arguments: Mapping[str, Any], action_size: int) -> Policy:
    """Return the routine that "module:Name" names, called with these keyword arguments."""
    target = find_own(spec, "routine")
    is_class = inspect.isclass(target)
    if not is_class and not inspect.isgeneratorfunction(target):
        raise UserError(
            f"routine {spec} is neither a class nor a generator function: "
            f"write a class with reset() and act(observation), or a function that yields actions"
        )
    try:
        inspect.signature(target).bind(*(() if is_class else ("observation",)), **arguments)
    except TypeError as error:
        raise UserError(f"routine {spec} cannot be called with arguments {dict(arguments)}: {error}") from error
    if not is_class:
        return WatchedPolicy(GeneratorPolicy(target, arguments, spec), action_size, spec)
    for method in ("reset", "act"):
        if not callable(getattr(target, method, None)):
            raise UserError(f"routine {spec} has no method {method}(): add it ({_METHODS[method]})")
    return WatchedPolicy(target(**arguments), action_size, spec)


_METHODS = {"reset": "it forgets all internal state", "act": "it takes an observation and returns an action"}
