"""Update: that of rsl-rl-lib's PPO with actor and critic on a core each; the bits are the same."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import torch
from rsl_rl.algorithms import PPO
from rsl_rl.storage import RolloutStorage

from gapless.learn.mirror import Mirror


@dataclass(frozen=True)
class _Batch:
    """What the networks learn from: some steps, and their mirror images below them where there is a mirror."""

    seen: torch.Tensor
    """Normalised, as the actor's first layer takes it; so is the critic's `truth`."""
    truth: torch.Tensor
    actions: torch.Tensor
    likely: torch.Tensor
    """Logarithm of how likely the actions were."""
    gain: torch.Tensor
    """Advantage of each action."""
    values: torch.Tensor
    returns: torch.Tensor
    acted: tuple[torch.Tensor, ...]
    """The distributions that actions were drawn from; not mirrored."""


class SideBySide(PPO):
    """PPO whose actor and critic, which share nothing but the learning rate, learn at the same time.

    Sharing each product of such small matrices between cores takes longer than one core alone.
    """

    learning_rate: float
    mirrors: tuple[Mirror, Mirror, Mirror] | None = None
    """Of what the actor sees, what the critic sees, and the action: each batch is then learned with its mirror image."""

    def __init__(self, *args: Any, **settings: Any):
        super().__init__(*args, **settings)
        self._other = ThreadPoolExecutor(1)

    def update(self) -> dict[str, float]:
        if self.actor.is_recurrent:
            return super().update()
        sums = dict.fromkeys(("value", "surrogate", "entropy"), 0.0)
        # every epoch of the library's shows the same batches
        batches = [self._batch(b) for b in self.storage.mini_batch_generator(self.num_mini_batches, 1)]
        for batch in batches * self.num_learning_epochs:
            self.optimizer.zero_grad()
            job = self._other.submit(self._learn_value, batch)
            surrogate, entropy = self._learn_policy(batch)
            value = job.result()
            self.optimizer.step()
            for name, loss in (("value", value), ("surrogate", surrogate), ("entropy", entropy)):
                sums[name] += loss
        seen = self.storage.observations.flatten(0, 1)
        critic = self._other.submit(self.critic.update_normalization, seen)
        self.actor.update_normalization(seen)
        critic.result()
        self.storage.clear()
        return {name: total / (self.num_learning_epochs * self.num_mini_batches) for name, total in sums.items()}

    def _batch(self, batch: RolloutStorage.Batch) -> _Batch:
        return _Batch(
            self.actor.obs_normalizer(self._both(batch.observations["policy"], 0)),
            self.critic.obs_normalizer(self._both(batch.observations["critic"], 1)),
            self._both(batch.actions, 2),
            self._both(batch.old_actions_log_prob).squeeze(),
            self._both(batch.advantages).squeeze(),
            self._both(batch.values),
            self._both(batch.returns),
            batch.old_distribution_params,
        )

    def _learn_value(self, batch: _Batch) -> float:
        """Gradients of the critic."""
        values = self.critic.mlp(batch.truth)
        near = batch.values + (values - batch.values).clamp(-self.clip_param, self.clip_param)
        loss = torch.max((values - batch.returns).pow(2), (near - batch.returns).pow(2)).mean()
        (self.value_loss_coef * loss).backward()
        torch.nn.utils.clip_grad_norm_(self.critic.parameters(), self.max_grad_norm)
        return float(loss.detach())

    def _learn_policy(self, batch: _Batch) -> tuple[float, float]:
        """Gradients of the actor, and a learning rate that suits how far it has moved."""
        given = self.actor.distribution
        given.update(self.actor.mlp(batch.seen))
        given.sample()  # as the library does, so that what is drawn later is the same
        steps = len(batch.acted[0])
        likely = given.log_prob(batch.actions)
        self._adapt(batch.acted, tuple(p[:steps] for p in given.params))
        entropy = given.entropy[:steps].mean()
        ratio, gain = torch.exp(likely - batch.likely), -batch.gain
        loss = torch.max(gain * ratio, gain * ratio.clamp(1.0 - self.clip_param, 1.0 + self.clip_param)).mean()
        (loss - self.entropy_coef * entropy).backward()
        torch.nn.utils.clip_grad_norm_(self.actor.parameters(), self.max_grad_norm)
        return float(loss.detach()), float(entropy.detach())

    def _both(self, values: torch.Tensor, mirror: int | None = None) -> torch.Tensor:
        """Values of a batch and of its mirror image below it; that of a plain number is the number."""
        if self.mirrors is None:
            return values
        if mirror is None:
            return values.repeat(2, 1)
        by = self.mirrors[mirror]
        image = values.index_select(1, torch.from_numpy(by.index)) * torch.from_numpy(by.sign).to(values.dtype)
        return torch.cat([values, image])

    def _adapt(self, acted: tuple[torch.Tensor, ...], now: tuple[torch.Tensor, ...]) -> None:
        """Follow the divergence from the policy that acted."""
        with torch.inference_mode():
            moved = float(self.actor.get_kl_divergence(acted, now).mean())
        if moved > 2 * self.desired_kl:
            self.learning_rate = max(1e-5, self.learning_rate / 1.5)
        elif 0 < moved < self.desired_kl / 2:
            self.learning_rate = min(1e-2, self.learning_rate * 1.5)
        for group in self.optimizer.param_groups:
            group["lr"] = self.learning_rate
