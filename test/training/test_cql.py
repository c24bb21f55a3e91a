"""Our CQL computes what d3rlpy's computes."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from cql_reference import Sized, copy_weights, flatten, random_batch, stock_cql, stock_noise, to_stock

from lift_ros.training.cql import anchor
from lift_ros.training.learners import anchor_factor
from lift_ros.training.options import TrainingOptions


def sized(observation_size: int, action_size: int, *hidden: int, **options: Any) -> Sized:
    return Sized(TrainingOptions(hidden=hidden, **{"anchor": 0.0, **options}), observation_size, action_size)


SIZES = [
    sized(2, 2, 16, 16, batch_size=24, action_samples=4),
    sized(5, 3, 12, 9, 7, batch_size=11, action_samples=3, critics=3, conservative_weight=2.0),
    sized(4, 1, 20, batch_size=8, action_samples=2, gamma=0.9, tau=0.1, alpha_threshold=1.0),
]


def close(ours: torch.Tensor, theirs: torch.Tensor) -> bool:
    scale = max(1.0, float(theirs.abs().max()))
    return float((ours - theirs).abs().max()) <= 1e-5 * scale


@pytest.mark.parametrize("case", SIZES)
def test_gives_the_same_losses_and_gradients_as_d3rlpy(case: Sized) -> None:
    stock, ours = stock_cql(case), case.cql()
    copy_weights(stock, ours)
    batch, noise = random_batch(case, 1), stock_noise(case, 7)
    modules = stock.impl.modules

    critic_loss = stock.impl.compute_critic_grad(to_stock(batch))
    critic_gradients = [flatten(function, gradients=True).clone() for function in modules.q_funcs]
    modules.critic_optim.step()
    actor_loss = stock.impl.compute_actor_grad(to_stock(batch))
    losses = ours.update(batch, noise)

    for critic, gradient in zip(ours.critics, critic_gradients, strict=True):
        assert close(critic.gradient.values, gradient)
    assert close(ours.actor_gradient.values, flatten(modules.policy, gradients=True))
    for name in ("critic_loss", "conservative_loss", "alpha"):
        assert getattr(losses, name) == pytest.approx(getattr(critic_loss, name).item(), rel=1e-5, abs=1e-5)
    for name in ("actor_loss", "temp_loss", "temp"):
        assert getattr(losses, name) == pytest.approx(getattr(actor_loss, name).item(), rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("case", SIZES)
def test_follows_d3rlpy_over_several_updates(case: Sized) -> None:
    stock, ours = stock_cql(case), case.cql()
    copy_weights(stock, ours)
    for number in range(4):
        batch = random_batch(case, number)
        noise = stock_noise(case, number)
        theirs = stock.impl.update(to_stock(batch), number)
        losses = ours.update(batch, noise)._asdict()
        assert losses == pytest.approx(theirs, rel=1e-4, abs=1e-4)
    modules = stock.impl.modules
    # Adam divides by the size of the gradient, which magnifies rounding where a gradient is almost zero.
    assert torch.allclose(ours.actor.values, flatten(modules.policy), atol=2e-4)
    for critic, online, target in zip(ours.critics, modules.q_funcs, modules.targ_q_funcs, strict=True):
        assert torch.allclose(critic.online.values, flatten(online), atol=2e-4)
        assert torch.allclose(critic.target.values, flatten(target), atol=2e-4)


def test_clips_the_actors_deviation_like_d3rlpy() -> None:
    case = SIZES[0]
    stock, ours = stock_cql(case), case.cql()
    with torch.no_grad():
        stock.impl.modules.policy._logstd.bias.copy_(torch.tensor([5.0, 1.9]))
    copy_weights(stock, ours)
    batch, noise = random_batch(case, 3), stock_noise(case, 3)
    theirs = stock.impl.update(to_stock(batch), 0)
    losses = ours.update(batch, noise)._asdict()
    assert losses == pytest.approx(theirs, rel=1e-4, abs=1e-4)
    assert close(ours.actor_gradient.values, flatten(stock.impl.modules.policy, gradients=True))


def test_leaves_alpha_and_temperature_alone_without_learning_rates() -> None:
    case = sized(2, 2, 8, batch_size=8, action_samples=2, temperature_learning_rate=0.0, alpha_learning_rate=0.0)
    ours = case.cql()
    losses = ours.update(random_batch(case, 0))
    assert (losses.alpha, losses.temp, losses.temp_loss) == (1.0, 1.0, 0.0)


def test_blocks_do_not_change_the_gradient(monkeypatch: pytest.MonkeyPatch) -> None:
    case = SIZES[0]
    batch = random_batch(case, 2)
    whole = case.cql(3)
    noise = whole.draw_noise()
    whole.update(batch, noise)
    monkeypatch.setattr("lift_ros.training.dense._BLOCK_BYTES", 4 * 16 * 12 * 7)
    cut = case.cql(3)
    cut.update(batch, noise)
    for first, second in zip(whole.critics, cut.critics, strict=True):
        assert close(first.gradient.values, second.gradient.values)


@pytest.mark.parametrize("floor", [0.1, 1e3])
def test_the_anchors_slopes_are_those_of_autograd(floor: float) -> None:
    generator = torch.Generator().manual_seed(5)
    means = torch.randn(9, 3, generator=generator, requires_grad=True)
    aims = torch.rand(9, 3, generator=generator) * 2 - 1
    pull = anchor(means.detach(), aims, 7.0, floor)
    weights = (1 + floor**2) / ((aims**2).sum(dim=1) + floor**2)
    loss = 7.0 * (weights * ((torch.tanh(means) - aims) ** 2).sum(dim=1)).mean()
    loss.backward()
    assert means.grad is not None
    assert pull.loss == pytest.approx(loss.item(), rel=1e-5)
    assert close(pull.slopes, means.grad)


def test_a_high_floor_leaves_the_plain_square_of_the_error() -> None:
    means, aims = torch.randn(4, 2, generator=torch.Generator().manual_seed(1)), torch.full((4, 2), 0.25)
    plain = ((torch.tanh(means) - aims) ** 2).sum(dim=1).mean().item()
    assert anchor(means, aims, 1.0, 1e3).loss == pytest.approx(plain, rel=1e-4)


def test_the_anchored_update_is_that_of_autograd() -> None:
    """d3rlpy's gradient of the actor, and autograd's of the anchor on top, through d3rlpy's own network."""
    case = sized(3, 2, 16, 8, batch_size=12, action_samples=2, anchor=2.5, anchor_floor=0.3)
    stock, ours = stock_cql(case), case.cql()
    copy_weights(stock, ours)
    batch, noise = random_batch(case, 1), stock_noise(case, 7)
    stock.impl.compute_critic_grad(to_stock(batch))
    stock.impl.modules.critic_optim.step()
    actor_loss = stock.impl.compute_actor_grad(to_stock(batch)).actor_loss.item()
    policy = stock.impl.modules.policy
    proposed = torch.tanh(policy(batch.observations).mu)
    weights = (1 + 0.3**2) / ((batch.aims**2).sum(dim=1) + 0.3**2)
    pull = 5.0 * (weights * ((proposed - batch.aims) ** 2).sum(dim=1)).mean()
    pull.backward()  # adds to what compute_actor_grad has left

    losses = ours.update(batch, noise, anchor_factor=2.0)

    assert close(ours.actor_gradient.values, flatten(policy, gradients=True))
    assert losses.actor_loss == pytest.approx(actor_loss + pull.item(), rel=1e-5)


def test_the_anchor_holds_still_for_half_the_updates_and_then_rises() -> None:
    options = TrainingOptions(updates=10, anchor_rise=4.0)
    factors = [anchor_factor(options, update) for update in range(11)]
    assert factors == pytest.approx([1, 1, 1, 1, 1, 1, 1.6, 2.2, 2.8, 3.4, 4])
    assert anchor_factor(options.replaced({"anchor_rise": 1}), 9) == 1.0


@pytest.mark.parametrize("threads", [2, 5])
def test_threads_do_not_change_a_bit(threads: int) -> None:
    case = SIZES[1]
    alone, together = case.cql(1), case.cql(1, threads)
    try:
        for number in range(3):
            batch = random_batch(case, number)
            assert alone.update(batch) == together.update(batch)
    finally:
        together.close()
    assert torch.equal(alone.actor.values, together.actor.values)


def test_the_seed_decides_weights_and_noise() -> None:
    case = SIZES[0]
    first, same, other = case.cql(1), case.cql(1), case.cql(2)
    assert torch.equal(first.actor.values, same.actor.values)
    assert not torch.equal(first.actor.values, other.actor.values)
    assert torch.equal(first.draw_noise().both, same.draw_noise().both)


def test_the_noise_lies_in_its_ranges() -> None:
    noise = sized(2, 2, 8, batch_size=200, action_samples=5).cql().draw_noise()
    assert float(noise.uniform.min()) >= -1.0 and float(noise.uniform.max()) <= 1.0
    assert float(noise.uniform.std()) == pytest.approx(3**-0.5, abs=0.05)
    assert float(noise.both.std()) == pytest.approx(1.0, abs=0.05)
