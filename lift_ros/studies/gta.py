"""GTA: pieces of recorded trajectories are noised in part, led to higher returns and given to CQL beside the others.

Written from "GTA: Generative Trajectory Augmentation with Guidance for Offline Reinforcement Learning" (Lee et al.,
NeurIPS 2024): a diffusion model of pieces (observation, action, reward)^H under the condition of their return, trained
without the condition now and then; new pieces begin from recorded ones after a share μ of the noise, and are denoised
under α times their return with guidance w. Returns are scaled to 0 … 1 before that, since here they are negative. The
network is a multilayer perceptron, small enough for a processor, where the paper has a larger one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from lift_ros.array_types import Float32Array, IntArray
from lift_ros.bags.arrays import EpisodeArrays, episodes_to_arrays, join
from lift_ros.collection.records import Episode, Mode, Outcome, Source, Step
from lift_ros.configuration import Key, check_mapping
from lift_ros.errors import UserError
from lift_ros.policies.sight import VALUES
from lift_ros.positioning.ball import shorten
from lift_ros.scenario import Scenario
from lift_ros.studies.diffusion import Denoiser, Schedule
from lift_ros.studies.networks import secluded
from lift_ros.studies.trained import Trained
from lift_ros.studies.transitions import refuse_pictures
from lift_ros.training.data import TrainingData, make_data
from lift_ros.training.options import TrainingOptions
from lift_ros.training.runs import RecordedRuns

EXTRA_KEYS = {
    "horizon": Key(int, 8, low=2, high=1000, meaning="Steps of a piece."),
    "diffusion_steps": Key(int, 20, low=2, high=1000, meaning="Steps of noise."),
    "noised": Key(float, 0.5, above=0, high=1, meaning="μ, share of the noise from which new pieces begin."),
    "amplified": Key(float, 1.2, above=0, high=100, meaning="α, by what the wanted return is multiplied."),
    "guidance": Key(float, 1.2, low=0, high=100, meaning="w, weight of the condition."),
    "synthetic": Key(float, 1.0, above=0, high=100, meaning="Made steps per recorded one."),
    "generator_updates": Key(
        int, None, low=1, high=1_000_000, optional=True, meaning="Updates of the diffusion model; null: of CQL."
    ),
}
_UNCONDITIONED = 0.25  # share of pieces whose condition is hidden while training
_WIDTH = 256
_ROWS = 2048  # pieces that are made at a time


@dataclass(frozen=True)
class Pieces:
    """Recorded pieces as scaled vectors, and what scales them back."""

    vectors: torch.Tensor  # [pieces, horizon * (observation + action + 1)]
    returns: torch.Tensor  # [pieces, 1], scaled to 0 … 1
    mean: Float32Array  # of a step's entries
    deviation: Float32Array
    horizon: int
    observation_size: int

    @classmethod
    def of(cls, data: TrainingData, horizon: int, gamma: float) -> Pieces:
        """Return all pieces of so many steps."""
        steps = np.concatenate([data.observations, data.actions, data.rewards[:, None]], axis=1).astype(np.float32)
        mean, deviation = steps.mean(axis=0), np.maximum(steps.std(axis=0), 1e-6)
        starts = _starts(data.offsets, horizon)
        if not len(starts):
            raise UserError(f"GTA needs episodes of at least horizon = {horizon} steps; choose a smaller horizon")
        rows = starts[:, None] + np.arange(horizon)
        gained = (data.rewards[rows] * gamma ** np.arange(horizon)).sum(axis=1)
        span = max(float(np.ptp(gained)), 1e-9)
        returns = ((gained - gained.min()) / span).astype(np.float32)
        vectors = ((steps - mean) / deviation)[rows].reshape(len(rows), -1)
        return cls(
            torch.from_numpy(vectors),
            torch.from_numpy(returns)[:, None],
            mean,
            deviation,
            horizon,
            data.observations.shape[1],
        )

    def unscaled(self, vectors: torch.Tensor) -> Float32Array:
        """Return steps [pieces, horizon, entries] in their own units."""
        steps = vectors.numpy().reshape(len(vectors), self.horizon, -1)
        return np.asarray(steps * self.deviation + self.mean)


def _starts(offsets: IntArray, horizon: int) -> IntArray:
    return np.concatenate([np.arange(begin, end - horizon + 1) for begin, end in pairwise(offsets.tolist())])


class TrajectoryGenerator:
    """The diffusion model of pieces under the condition of their return."""

    def __init__(self, pieces: Pieces, options: TrainingOptions, wishes: dict[str, Any]) -> None:
        self._pieces, self._wishes = pieces, wishes
        self._schedule = Schedule(wishes["diffusion_steps"])
        # The condition is the return and whether it is told.
        self._network = Denoiser(pieces.vectors.shape[1], 2, (_WIDTH, _WIDTH))
        adam = torch.optim.Adam(self._network.parameters(), options.actor_learning_rate)
        for _ in range(wishes["generator_updates"] or options.updates):
            rows = torch.randint(len(pieces.vectors), (options.batch_size,))
            told = (torch.rand(len(rows), 1) >= _UNCONDITIONED).float()
            condition = torch.cat([pieces.returns[rows] * told, told], dim=1)
            loss = self._schedule.loss(pieces.vectors[rows], partial(self._guess, condition))
            adam.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            adam.step()

    def _guess(self, condition: torch.Tensor, vectors: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
        velocity: torch.Tensor = self._network(vectors, steps, condition)
        return velocity

    @torch.no_grad()
    def make(self, count: int) -> Float32Array:
        """Return new pieces [count, horizon, entries]; where they begin, recorded ones of high return are likelier."""
        weights = self._pieces.returns[:, 0] + 1e-3
        made = []
        for begin in range(0, count, _ROWS):
            rows = torch.multinomial(weights, min(_ROWS, count - begin), replacement=True)
            made.append(self._pieces.unscaled(self._led(self._pieces.vectors[rows], self._pieces.returns[rows])))
        return np.concatenate(made)

    def _led(self, vectors: torch.Tensor, returns: torch.Tensor) -> torch.Tensor:
        begin = max(1, round(self._wishes["noised"] * self._schedule.steps))
        wanted = torch.cat([self._wishes["amplified"] * returns, torch.ones_like(returns)], dim=1)
        nothing = torch.zeros_like(wanted)
        weight = self._wishes["guidance"]

        def guess(noised: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
            free = self._guess(nothing, noised, steps)
            return torch.lerp(free, self._guess(wanted, noised, steps), weight)

        noised = self._schedule.noised(vectors, torch.full((len(vectors),), begin - 1), torch.randn_like(vectors))
        return self._schedule.denoised(noised, guess, begin=begin)


def augmented(
    recorded: RecordedRuns, options: TrainingOptions, action_radius: float, wishes: dict[str, Any]
) -> EpisodeArrays:
    """Return recorded episodes and made ones, which end without having arrived."""
    data = make_data(recorded.arrays, options.reward, recorded.sight)
    pieces = Pieces.of(data, wishes["horizon"], options.gamma)
    with secluded(options.seed):
        model = TrajectoryGenerator(pieces, options, wishes)
        count = max(1, round(wishes["synthetic"] * len(data.rewards) / (pieces.horizon - 1)))
        made = model.make(count)
    arrays = recorded.arrays
    size = arrays.positions.shape[1]
    episodes = [
        _episode(number, piece, pieces.observation_size, action_radius, size) for number, piece in enumerate(made)
    ]
    others = episodes_to_arrays(episodes)
    places = [np.arange(len(arrays)), len(arrays) + np.arange(len(others))]
    return join([replace(arrays, images=None, columns={}), others], places)


def _episode(
    number: int, piece: Float32Array, observation_size: int, action_radius: float, position_size: int
) -> Episode:
    """Return a made piece as an episode; the observation of its last step is what the one before led to."""
    unknown = np.full(position_size, np.nan)
    steps = [
        Step(
            episode=number,
            index=index,
            time_ns=0,
            observation=row[:observation_size].astype(np.float64),
            action=shorten(row[observation_size:-1].astype(np.float64), action_radius),
            source=Source.LOGGING_POLICY,
            position=unknown,
            reward=float(min(row[-1], 0.0)),
        )
        for index, row in enumerate(piece[:-1])
    ]
    final = piece[-1][:observation_size].astype(np.float64)
    return Episode(number, 0, Mode.COLLECT, Outcome.STEP_LIMIT, steps, final, final_position=unknown, goal=unknown)


def train_gta(
    recorded: RecordedRuns, options: TrainingOptions, action_radius: float, scenario: Scenario | None
) -> Trained:
    """Make further trajectories and train CQL on all of them."""
    from lift_ros.training.trainer import train

    refuse_pictures(recorded, options.algorithm)
    if recorded.sight != VALUES:
        raise UserError(f"GTA makes whole observations, but models are shown {recorded.sight} of these runs")
    wishes = check_mapping(dict(options.extra), EXTRA_KEYS, f"options of {options.algorithm}")
    arrays = augmented(recorded, options, action_radius, wishes)
    more = replace(recorded, arrays=arrays)
    policy = train(more, replace(options, algorithm="CQL", extra={}), action_radius=action_radius, threads=1).policy
    return Trained(policy, {"model": policy.hash, "made_episodes": len(arrays) - len(recorded.arrays)})
