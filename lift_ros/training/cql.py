"""Conservative Q-learning, the mathematics of d3rlpy's CQL without its repeated work.

One forward pass of the actor serves target, conservative term and actor loss. The sampled actions go through a
critic in blocks that stay in the cache, forward and backward at once; this is possible although the weight α of
the conservative term is known only after all blocks, because its gradient is linear in α. Critics are
independent up to two points where they meet, so that each runs in a thread of its own; the numbers do not
depend on how many threads there are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, TypeVar

import torch

from lift_ros.training.dense import Adam, DenseGradient, DenseParameters, DensePass, ScalarAdam, block_rows
from lift_ros.training.options import TrainingOptions

_LOG_STD_LIMITS = (-20.0, 2.0)
_LOG_SQRT_TWO_PI = 0.5 * math.log(2.0 * math.pi)
_ALPHA_LIMIT = 1e6
_T = TypeVar("_T")


class Batch(NamedTuple):
    """A mini-batch of transitions; actions are divided by the action radius."""

    observations: torch.Tensor
    actions: torch.Tensor
    rewards: torch.Tensor
    next_observations: torch.Tensor
    terminals: torch.Tensor
    aims: torch.Tensor  # the actions that the actor is anchored to


class Noise(NamedTuple):
    """All randomness of one update: standard normal but for `uniform`, which lies in [−1, 1]."""

    both: torch.Tensor  # (2, batch, samples, action), for actions of the current and of the next observation
    uniform: torch.Tensor  # (batch, samples, action)
    actor: torch.Tensor  # (batch, action)


class Losses(NamedTuple):
    """What d3rlpy's CQL reports after an update, under the same names."""

    critic_loss: float
    conservative_loss: float
    alpha: float
    actor_loss: float
    temp_loss: float
    temp: float


class _Gaussian(NamedTuple):
    mean: torch.Tensor
    log_std: torch.Tensor
    inside: torch.Tensor  # where log_std was not clipped
    std: torch.Tensor


class Anchor(NamedTuple):
    """The term of an actor's loss that pulls it to the actions of the batch, and its derivative by the actor's mean."""

    loss: float
    slopes: torch.Tensor


def anchor(means: torch.Tensor, aims: torch.Tensor, strength: float, floor: float) -> Anchor:
    """Return β times the mean of w(a)‖tanh(μ) − a‖², with w(a) = (1 + ε²)/(‖a‖² + ε²) for a floor ε.

    An action that is half as long for the same observation belongs to a context with twice the gain, where the same
    error costs twice as much: w weighs it accordingly, and near the goal asks for more precision.
    """
    proposed = torch.tanh(means)
    errors = proposed - aims
    weights = strength * (1.0 + floor**2) / len(means) / aims.square().sum(dim=1, keepdim=True).add_(floor**2)
    slopes = errors * weights
    loss = float((slopes * errors).sum())
    return Anchor(loss, slopes.mul_(2.0).mul_(1.0 - proposed * proposed))


class _Critic:
    """One critic with its target, buffers and optimiser."""

    def __init__(self, options: TrainingOptions, observation_size: int, action_size: int) -> None:
        inputs = observation_size + action_size
        sizes = (inputs, *options.hidden, 1)
        self.online = DenseParameters(sizes)
        self.target = DenseParameters(sizes)
        self.adam = Adam(self.online.values)
        self.gradient = DenseGradient(self.online)
        self._tau = options.tau
        self._columns = slice(observation_size, inputs)
        candidates = 3 * options.action_samples
        most = max(1, block_rows(max(options.hidden)) // candidates)
        self._block = math.ceil(options.batch_size / math.ceil(options.batch_size / most))
        self._samples = DensePass(self.online, self._block * candidates)
        self.data_pass = DensePass(self.online, options.batch_size)
        self.target_pass = DensePass(self.target, options.batch_size)
        self._ones = torch.ones(options.batch_size, 1)

    def conservative(self, samples: torch.Tensor, log_probabilities: torch.Tensor) -> float:
        """Return the mean log-sum-exp over sampled actions and leave its gradient in `gradient`."""
        self.gradient.values.zero_()
        batch, candidates = log_probabilities.shape
        peaks = torch.empty(batch, 1)
        for start in range(0, batch, self._block):
            stop = min(start + self._block, batch)
            inputs = samples[start:stop].view(-1, samples.shape[2])
            values = self._samples.forward(inputs).view(-1, candidates) - log_probabilities[start:stop]
            highest = values.amax(dim=1, keepdim=True)
            delta = values.sub_(highest).exp_()
            total = delta.sum(dim=1, keepdim=True)
            torch.add(highest, total.log(), out=peaks[start:stop])
            delta.div_(total.mul_(batch))
            self._samples.backward(inputs, delta.view(-1, 1), self.gradient)
        return float(peaks.mean())

    def descend(self, inputs: torch.Tensor, delta: torch.Tensor, scale: float, learning_rate: float) -> None:
        """Add the data rows' gradient to `scale` times the conservative one, step, and let the target follow."""
        self.gradient.values.mul_(scale)
        self.data_pass.backward(inputs, delta[:, None], self.gradient)
        self.adam.step(self.gradient.values, learning_rate)
        self.target.values.lerp_(self.online.values, self._tau)

    def action_slopes(self, inputs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the value of each row and its derivative by the action."""
        values = self.data_pass.forward(inputs)[:, 0].clone()
        return values, self.data_pass.input_gradient(len(inputs), self._ones, self._columns)


class CQL:
    """Actor, critics and their targets, and the update that trains them."""

    def __init__(self, options: TrainingOptions, observation_size: int, action_size: int, threads: int = 1) -> None:
        """Draw initial weights from the options' seed; with two threads or more the critics run side by side."""
        self._options = options
        self._observation_size, self._action_size = observation_size, action_size
        self.generator = torch.Generator().manual_seed(options.seed)
        self.actor = DenseParameters((observation_size, *options.hidden, 2 * action_size))
        self.actor.initialise(self.generator)
        self.actor_adam = Adam(self.actor.values)
        self.actor_gradient = DenseGradient(self.actor)
        self._actor_pass = DensePass(self.actor, 2 * options.batch_size)
        self.critics = [_Critic(options, observation_size, action_size) for _ in range(options.critics)]
        for critic in self.critics:
            critic.online.initialise(self.generator)
            critic.target.values.copy_(critic.online.values)
        self.log_temperature = ScalarAdam(math.log(options.initial_temperature))
        self.log_alpha = ScalarAdam(math.log(options.initial_alpha))
        batch, samples = options.batch_size, options.action_samples
        inputs = observation_size + action_size
        self._action_columns = slice(observation_size, inputs)
        self._samples = torch.ones(batch, 3 * samples, inputs + 1)
        self._log_probabilities = torch.full((batch, 3 * samples), -action_size * math.log(2.0))
        self._both_observations = torch.ones(2, batch, observation_size + 1)
        self._inputs = torch.ones(3, batch, inputs + 1)
        self._data_inputs, self._actor_inputs, self._next_inputs = self._inputs.unbind()
        workers = min(threads, options.critics) - 1
        self._pool = ThreadPoolExecutor(workers, "critic") if workers > 0 else None

    def close(self) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown()

    def draw_noise(self) -> Noise:
        """Draw the randomness of one update."""
        shape = (self._options.batch_size, self._options.action_samples, self._action_size)
        both = torch.randn((2, *shape), generator=self.generator)
        uniform = torch.rand(shape, generator=self.generator).mul_(2.0).sub_(1.0)
        return Noise(both, uniform, torch.randn(shape[0], shape[2], generator=self.generator))

    @torch.no_grad()
    def update(
        self, batch: Batch, noise: Noise | None = None, rate_factor: float = 1.0, anchor_factor: float = 1.0
    ) -> Losses:
        """Make one step of critics, α, temperature, actor and targets; the factors scale learning rates and β."""
        options = self._options
        noise = self.draw_noise() if noise is None else noise
        self._fill(batch)
        current = self._propose(noise)
        actions, log_probability = _sample(current, noise.actor)
        self._actor_inputs[:, self._action_columns] = actions

        first = self._per_critic(self._first_half)
        target = torch.stack([values for values, _, _ in first]).amin(dim=0)
        wanted = batch.rewards + options.gamma * target * (1.0 - batch.terminals)
        errors = [values - wanted for _, values, _ in first]
        td_loss = sum(float((error * error).mean()) for error in errors)
        gaps = [
            options.conservative_weight * (peak - float(values.mean()) - options.alpha_threshold)
            for _, values, peak in first
        ]
        alpha = self._update_alpha(gaps)
        scale = alpha * options.conservative_weight
        rate = rate_factor * options.critic_learning_rate

        def second_half(index: int) -> tuple[torch.Tensor, torch.Tensor]:
            delta = (2.0 * errors[index]).sub_(scale).div_(options.batch_size)
            critic = self.critics[index]
            critic.descend(self._data_inputs, delta, scale, rate)
            return critic.action_slopes(self._actor_inputs)

        second = self._per_critic(second_half)
        temp_loss = self._update_temperature(log_probability)
        pull = anchor(current.mean, batch.aims, anchor_factor * options.anchor, options.anchor_floor)
        actor_loss = self._update_actor(second, current, noise.actor, actions, log_probability, pull, rate_factor)
        return Losses(
            td_loss + alpha * sum(gaps),
            alpha * sum(gaps),
            alpha,
            actor_loss,
            temp_loss,
            math.exp(self.log_temperature.value),
        )

    def _fill(self, batch: Batch) -> None:
        size = self._observation_size
        self._both_observations[0, :, :size] = batch.observations
        self._both_observations[1, :, :size] = batch.next_observations
        self._samples[:, :, :size] = batch.observations[:, None]
        self._inputs[:2, :, :size] = batch.observations
        self._next_inputs[:, :size] = batch.next_observations
        self._data_inputs[:, self._action_columns] = batch.actions

    def _propose(self, noise: Noise) -> _Gaussian:
        """Put actions of actor and chance next to the observations; return the actor's answer to the current ones."""
        batch, samples = self._options.batch_size, self._options.action_samples
        outputs = self._actor_pass.forward(self._both_observations.view(2 * batch, -1)).view(2, batch, -1)
        gaussian = _gaussian(outputs)
        actions, log_probability = _sample(_Gaussian(*(part[:, :, None] for part in gaussian)), noise.both)
        self._samples[:, : 2 * samples, self._action_columns].view(batch, 2, samples, -1).copy_(actions.transpose(0, 1))
        self._samples[:, 2 * samples :, self._action_columns] = noise.uniform
        self._log_probabilities[:, : 2 * samples].view(batch, 2, samples).copy_(log_probability.transpose(0, 1))
        torch.tanh(gaussian.mean[1], out=self._next_inputs[:, self._action_columns])
        return _Gaussian(*(part[0] for part in gaussian))

    def _first_half(self, index: int) -> tuple[torch.Tensor, torch.Tensor, float]:
        critic = self.critics[index]
        target = critic.target_pass.forward(self._next_inputs)[:, 0]
        peak = critic.conservative(self._samples, self._log_probabilities)
        return target, critic.data_pass.forward(self._data_inputs)[:, 0], peak

    def _update_alpha(self, gaps: list[float]) -> float:
        rate = self._options.alpha_learning_rate
        alpha = math.exp(self.log_alpha.value)
        if rate > 0.0:
            inside = alpha <= _ALPHA_LIMIT
            self.log_alpha.step(-alpha * sum(gaps) / len(gaps) if inside else 0.0, rate)
        return min(math.exp(self.log_alpha.value), _ALPHA_LIMIT)

    def _update_temperature(self, log_probability: torch.Tensor) -> float:
        rate = self._options.temperature_learning_rate
        if rate <= 0.0:
            return 0.0
        loss = -math.exp(self.log_temperature.value) * (float(log_probability.mean()) - self._action_size)
        self.log_temperature.step(loss, rate)
        return loss

    def _update_actor(
        self,
        critics: list[tuple[torch.Tensor, torch.Tensor]],
        gaussian: _Gaussian,
        noise: torch.Tensor,
        actions: torch.Tensor,
        log_probability: torch.Tensor,
        pull: Anchor,
        rate_factor: float,
    ) -> float:
        batch = self._options.batch_size
        temperature = math.exp(self.log_temperature.value)
        values, lowest = torch.stack([values for values, _ in critics]).min(dim=0)
        slopes = torch.stack([slopes for _, slopes in critics])[lowest, torch.arange(batch)]
        by_raw = (2.0 * temperature * actions - slopes * (1.0 - actions * actions)) / batch
        by_log_std = (by_raw * gaussian.std * noise - temperature / batch) * gaussian.inside
        self.actor_gradient.values.zero_()
        delta = torch.cat([by_raw.add_(pull.slopes), by_log_std], dim=1)
        self._actor_pass.backward(self._both_observations[0], delta, self.actor_gradient)
        self.actor_adam.step(self.actor_gradient.values, rate_factor * self._options.actor_learning_rate)
        return float((temperature * log_probability - values).mean()) + pull.loss

    def _per_critic(self, job: Callable[[int], _T]) -> list[_T]:
        if self._pool is None:
            return [job(index) for index in range(len(self.critics))]
        pending = [self._pool.submit(job, index) for index in range(1, len(self.critics))]
        return [job(0), *(future.result() for future in pending)]


def _gaussian(outputs: torch.Tensor) -> _Gaussian:
    mean, raw = outputs.chunk(2, dim=-1)
    low, high = _LOG_STD_LIMITS
    log_std = raw.clamp(low, high)
    return _Gaussian(mean, log_std, (raw >= low) & (raw <= high), log_std.exp())


def _sample(gaussian: _Gaussian, noise: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return squashed actions and the logarithm of their density."""
    raw = torch.addcmul(gaussian.mean, gaussian.std, noise)
    log_slope = 2.0 * (math.log(2.0) - raw - torch.nn.functional.softplus(-2.0 * raw))
    density = noise.square().mul(-0.5).sub(gaussian.log_std).sub(_LOG_SQRT_TWO_PI).sub(log_slope)
    return torch.tanh(raw), density.sum(dim=-1)
