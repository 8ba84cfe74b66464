"""Gradient: meta-learning whose inner loop is one gradient step of a policy's head; what MAML and NoRML share.

For a linear head with Gaussian actions the inner gradient is a formula, through which the outer loss is differentiated: the
second order of Finn et al. 2017 without a second backward pass. The outer loss is PPO's, on episodes after the step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

CLIP = 0.2
EPOCHS = 4
RATE = 3e-4
"""Learning rate of Adam in the outer loop."""


@dataclass(frozen=True)
class Episodes:
    """What happened in several episodes on each of several robots. Shapes: (robots, periods, episodes, columns)."""

    seen: torch.Tensor
    action: torch.Tensor
    following: torch.Tensor
    """What was seen a period later."""
    gain: torch.Tensor
    """Reward still to come, less what is usual in that period on that robot, in standard deviations; without columns."""
    alive: torch.Tensor
    """1 until the episode ended, without columns."""
    earned: float
    """Reward per episode."""


class Adapts(torch.nn.Module):
    """A policy with a linear head; `Headed` is one."""

    head: torch.nn.Parameter
    """Shape: (joints, wide + 1)."""
    spread: torch.Tensor
    """Standard deviation of exploration, which stays. Shape: (joints,)."""

    def features(self, o: torch.Tensor) -> torch.Tensor:
        """What the head sees, with a column of ones. Shape: (..., width) to (..., wide + 1)."""
        raise NotImplementedError


class Inner(torch.nn.Module):
    """The inner loop: where the step begins, how long it is, and what says which actions were good."""

    def __init__(self, rate: float):
        super().__init__()
        self.rate = torch.nn.Parameter(torch.tensor(float(rate)).log())
        """Logarithm of the step's length, which is learned too."""

    def advantage(self, episodes: Episodes) -> torch.Tensor:
        """Shape: (robots, periods, episodes)."""
        raise NotImplementedError

    def begin(self, head: torch.Tensor) -> torch.Tensor:
        """From where the step is taken."""
        return head


def stepped(policy: Adapts, inner: Inner, episodes: Episodes) -> torch.Tensor:
    """The head of each robot after the step. Shape: (robots, joints, wide + 1)."""
    features = policy.features(episodes.seen)
    away = (episodes.action - features @ policy.head.T) / policy.spread**2
    weight = inner.advantage(episodes) * episodes.alive / episodes.alive.sum(dim=(1, 2), keepdim=True).clamp(min=1.0)
    ascent = torch.einsum("tpe,tpej,tpef->tjf", weight, away, features)
    return inner.begin(policy.head) + inner.rate.exp() * ascent


def likely(policy: Adapts, heads: torch.Tensor, episodes: Episodes) -> torch.Tensor:
    """Logarithm of how likely actions are under a head for each robot, up to a constant. Shape: (robots, periods, episodes)."""
    mean = torch.einsum("tpef,tjf->tpej", policy.features(episodes.seen), heads)
    return -0.5 * (((episodes.action - mean) / policy.spread) ** 2).sum(dim=-1)


Collect = Callable[[torch.Tensor], Episodes]
"""Episodes under a head for each robot, (robots, joints, wide + 1), with actions of the policy's spread."""


def learn(
    policy: Adapts,
    inner: Inner,
    robots: int,
    draw: Callable[[], Collect],
    iterations: int,
    tell: Callable[[int, float], None] = lambda iteration, earned: None,
    rate: float = RATE,
) -> None:
    """Learn a policy from which one step gets far, in place.

    Args:
        policy: at its start.
        inner: its inner loop.
        robots: in each iteration.
        draw: other robots.
        iterations: of the outer loop.
        tell: told the reward of an episode after the step.
        rate: of the outer loop.
    """
    optimiser = torch.optim.Adam([*policy.parameters(), *inner.parameters()], rate)
    for k in range(iterations):
        collect = draw()
        with torch.no_grad():
            before = collect(policy.head.detach().expand(robots, -1, -1))
            heads = stepped(policy, inner, before)
            after = collect(heads)
            was = likely(policy, heads, after)
        for _ in range(EPOCHS):
            ratio = torch.exp(likely(policy, stepped(policy, inner, before), after) - was)
            worth = torch.min(ratio * after.gain, ratio.clamp(1 - CLIP, 1 + CLIP) * after.gain)
            loss = -(worth * after.alive).sum() / after.alive.sum().clamp(min=1.0)
            optimiser.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_([*policy.parameters(), *inner.parameters()], 1.0)
            optimiser.step()
        tell(k + 1, after.earned)


def gains(reward: torch.Tensor, alive: torch.Tensor, gamma: float) -> torch.Tensor:
    """Reward still to come, less its mean over a robot's episodes in each period, in standard deviations of a robot.

    Shapes: (robots, periods, episodes).
    """
    come, later = torch.zeros_like(reward), torch.zeros_like(reward[:, 0])
    for t in reversed(range(reward.shape[1])):
        later = reward[:, t] * alive[:, t] + gamma * later
        come[:, t] = later
    less = come - come.mean(dim=2, keepdim=True)
    return less / less.std(dim=(1, 2), keepdim=True).clamp(min=1e-6)
