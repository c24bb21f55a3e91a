"""SAC that goes on online from recorded episodes: its replay buffer begins with those of the routine.

From then on it acts alone, and learns from all steps there are. As many episodes are played as the other methods record
after the first ones. Parameters are those of the paper's table 3 unless the options say otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from lift_ros.array_types import Float32Array, FloatArray
from lift_ros.configuration import MOST, Key, check_mapping
from lift_ros.errors import UserError
from lift_ros.policies.inputs import Inputs, fit_inputs
from lift_ros.scenario import Scenario
from lift_ros.seeds import derive_seed, generator
from lift_ros.shortcuts.sampler import ShortcutBatch
from lift_ros.studies.networks import secluded
from lift_ros.studies.trained import Trained
from lift_ros.studies.transitions import ValuePolicy, refuse_pictures
from lift_ros.training.data import make_data
from lift_ros.training.options import TrainingOptions
from lift_ros.training.runs import RecordedRuns
from lift_ros.training.stock import StockLearner

EXTRA_KEYS = {
    "online_episodes": Key(int, 50, low=0, high=MOST, meaning="Episodes that are played."),
    "updates_per_step": Key(int, 5, low=1, high=1000, meaning="Updates after each step."),
    "most_updates": Key(int, None, low=1, high=MOST, optional=True, meaning="Updates in all; null for no limit."),
}


@dataclass
class Replay:
    """All steps so far, in arrays that grow by doubling."""

    observation_size: int
    action_size: int
    count: int = 0
    rows: Float32Array = field(init=False)

    def __post_init__(self) -> None:
        self.rows = np.empty((1024, 2 * self.observation_size + self.action_size + 2), dtype=np.float32)

    def add(
        self, observation: Float32Array, action: FloatArray, reward: float, after: Float32Array, terminated: bool
    ) -> None:
        """Append a step."""
        if self.count == len(self.rows):
            self.rows = np.concatenate([self.rows, np.empty_like(self.rows)])
        self.rows[self.count] = np.concatenate([observation, action, [reward], after, [float(terminated)]])
        self.count += 1

    def draw(self, rng: np.random.Generator, size: int) -> ShortcutBatch:
        """Return steps drawn uniformly."""
        chosen = self.rows[rng.integers(self.count, size=size)]
        first, then = self.observation_size, self.observation_size + self.action_size
        parts = np.split(chosen, [first, then, then + 1, then + 1 + first], axis=1)
        observations, actions, rewards, after, terminals = map(np.ascontiguousarray, parts)
        nothing = np.zeros(size, dtype=np.int64)
        return ShortcutBatch(
            observations,
            actions,
            actions,
            rewards,
            after,
            np.zeros_like(actions),
            terminals,
            nothing,
            nothing + 1,
            np.zeros(1, dtype=np.float32),
        )


@dataclass
class SoftActor(ValuePolicy):
    """The mean of SAC's actor."""

    algorithm: Any = None

    def answer(self, inputs: Float32Array) -> Float32Array:
        """Return the actor's means."""
        return np.asarray(self.algorithm.predict(inputs), dtype=np.float32)


def train_warm_start(
    recorded: RecordedRuns, options: TrainingOptions, action_radius: float, scenario: Scenario | None
) -> Trained:
    """Begin with what was recorded, and learn on while acting."""
    if scenario is None:
        raise UserError(f"{options.algorithm} learns while it acts: name a scenario for it")
    refuse_pictures(recorded, options.algorithm)
    own = {name: value for name, value in options.extra.items() if name in EXTRA_KEYS}
    wishes = check_mapping(own, EXTRA_KEYS, f"options of {options.algorithm}")
    with secluded(options.seed):
        return _Run(recorded, options, action_radius, scenario, wishes).play()


class _Run:
    """One training under way."""

    def __init__(
        self,
        recorded: RecordedRuns,
        options: TrainingOptions,
        action_radius: float,
        scenario: Scenario,
        wishes: Mapping[str, Any],
    ) -> None:
        data = make_data(recorded.arrays, options.reward, recorded.sight)
        self._inputs: Inputs = fit_inputs(data.observations, options.scale_observations)
        others = {name: value for name, value in options.extra.items() if name not in EXTRA_KEYS}
        sac = replace(options, algorithm="SAC", extra=others)
        self._learner = StockLearner(sac, self._inputs.size, data.actions.shape[1])
        self._replay = Replay(self._inputs.size, data.actions.shape[1])
        self._radius, self._scenario, self._wishes = action_radius, scenario, wishes
        self._options = options
        self._rng = generator(options.seed, "replay")
        self._steps = self._updates = 0
        limit = wishes["most_updates"]
        self._most_updates = math.inf if limit is None else limit
        seen, finals = self._inputs.of(data.observations), self._inputs.of(data.final_observations)
        last = np.zeros(len(data.rewards), dtype=bool)
        last[data.offsets[1:] - 1] = True
        episode = np.repeat(np.arange(len(data.terminated)), np.diff(data.offsets))
        for step in range(len(data.rewards)):
            after = finals[episode[step]] if last[step] else seen[step + 1]
            terminated = bool(last[step] and data.terminated[episode[step]])
            self._replay.add(seen[step], data.actions[step] / action_radius, data.rewards[step], after, terminated)

    def play(self) -> Trained:
        """Play all episodes and return the policy."""
        lengths = []
        with closing(self._scenario.make_problem()) as problem:
            for index in range(self._wishes["online_episodes"]):
                lengths.append(self._episode(problem, derive_seed(self._options.seed, "online", index)))
        policy = SoftActor(self._inputs, self._radius, self._scenario.model_sight, self._learner.algorithm)
        return Trained(policy, {"online_steps": self._steps, "last_episodes": lengths[-10:]})

    def _episode(self, problem: Any, seed: int) -> int:
        """Play one episode and return its length."""
        length = 0
        observed = problem.reset(seed)
        seen = self._see(observed.values)
        while not observed.terminated and length < self._scenario.limits.step_limit:
            unit = self._learner.algorithm.sample_action(seen[None])[0].astype(np.float64)
            unit /= max(1.0, float(np.linalg.norm(unit)))
            observed = problem.step(unit * self._radius * (1.0 - 1e-12))
            after = self._see(observed.values)
            self._replay.add(seen, unit, observed.reward, after, observed.terminated)
            self._steps += 1
            for _ in range(self._wishes["updates_per_step"]):
                if self._updates < self._most_updates:
                    self._learner.update(self._replay.draw(self._rng, self._options.batch_size))
                    self._updates += 1
            seen = after
            length += 1
        return length

    def _see(self, values: FloatArray) -> Float32Array:
        shown = np.asarray(values, dtype=np.float32)[self._scenario.model_sight.entries]
        return np.asarray(self._inputs.of(shown[None])[0])
