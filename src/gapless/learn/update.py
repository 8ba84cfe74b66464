"""Update: that of rsl-rl-lib's PPO with actor and critic on a core each; the bits are the same."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
from rsl_rl.algorithms import PPO
from rsl_rl.storage import RolloutStorage

from gapless.learn.mirror import Mirror


class SideBySide(PPO):
    """PPO whose actor and critic, which share nothing but the learning rate, learn at the same time.

    Sharing each product of such small matrices between cores takes longer than one core alone.
    """

    learning_rate: float
    mirrors: tuple[Mirror, Mirror, Mirror] | None = None
    """Of what the actor sees, what the critic sees, and the action: each batch is then learned with its mirror image."""

    def update(self) -> dict[str, float]:
        if self.actor.is_recurrent:
            return super().update()
        sums = dict.fromkeys(("value", "surrogate", "entropy"), 0.0)
        batches = self.storage.mini_batch_generator(self.num_mini_batches, self.num_learning_epochs)
        seen = self.storage.observations.flatten(0, 1)

        def beside(batch: RolloutStorage.Batch) -> tuple[float, RolloutStorage.Batch | None]:
            return self._learn_value(batch), next(batches, None)

        with ThreadPoolExecutor(1) as other:
            batch = next(batches)
            while batch is not None:
                self.optimizer.zero_grad()
                job = other.submit(beside, batch)
                surrogate, entropy = self._learn_policy(batch)
                value, batch = job.result()
                self.optimizer.step()
                for name, loss in (("value", value), ("surrogate", surrogate), ("entropy", entropy)):
                    sums[name] += loss
            critic = other.submit(self.critic.update_normalization, seen)
            self.actor.update_normalization(seen)
            critic.result()
        self.storage.clear()
        return {name: total / (self.num_learning_epochs * self.num_mini_batches) for name, total in sums.items()}

    def _learn_value(self, batch: RolloutStorage.Batch) -> float:
        """Gradients of the critic."""
        values = self.critic({"critic": self._both(batch.observations["critic"], 1)})
        before, returns = self._both(batch.values), self._both(batch.returns)
        near = before + (values - before).clamp(-self.clip_param, self.clip_param)
        loss = torch.max((values - returns).pow(2), (near - returns).pow(2)).mean()
        (self.value_loss_coef * loss).backward()
        torch.nn.utils.clip_grad_norm_(self.critic.parameters(), self.max_grad_norm)
        return float(loss.detach())

    def _learn_policy(self, batch: RolloutStorage.Batch) -> tuple[float, float]:
        """Gradients of the actor, and a learning rate that suits how far it has moved."""
        seen = batch.observations["policy"]
        self.actor({"policy": self._both(seen, 0)}, stochastic_output=True)
        likely = self.actor.get_output_log_prob(self._both(batch.actions, 2))
        self._adapt(batch, tuple(p[: len(seen)] for p in self.actor.output_distribution_params))
        entropy = self.actor.output_entropy[: len(seen)].mean()
        ratio = torch.exp(likely - self._both(batch.old_actions_log_prob).squeeze())
        gain = -self._both(batch.advantages).squeeze()
        loss = torch.max(gain * ratio, gain * ratio.clamp(1.0 - self.clip_param, 1.0 + self.clip_param)).mean()
        (loss - self.entropy_coef * entropy).backward()
        torch.nn.utils.clip_grad_norm_(self.actor.parameters(), self.max_grad_norm)
        return float(loss.detach()), float(entropy.detach())

    def _both(self, values: torch.Tensor, mirror: int | None = None) -> torch.Tensor:
        """A batch and its mirror image below it; that of a plain number is the number."""
        if self.mirrors is None:
            return values
        if mirror is None:
            return values.repeat(2, 1)
        by = self.mirrors[mirror]
        return torch.cat([values, values[:, torch.from_numpy(by.index)] * torch.from_numpy(by.sign).to(values.dtype)])

    def _adapt(self, batch: RolloutStorage.Batch, now: tuple[Any, ...]) -> None:
        """Follow the divergence from the policy that acted."""
        with torch.inference_mode():
            moved = float(self.actor.get_kl_divergence(batch.old_distribution_params, now).mean())
        if moved > 2 * self.desired_kl:
            self.learning_rate = max(1e-5, self.learning_rate / 1.5)
        elif 0 < moved < self.desired_kl / 2:
            self.learning_rate = min(1e-2, self.learning_rate * 1.5)
        for group in self.optimizer.param_groups:
            group["lr"] = self.learning_rate
