"""NoRML (Yang et al. 2019): adapts without reward; a learned function of (s, a, s') says which actions were good on this robot.

It adds to MAML that function, learned through the inner step, and a learned offset of the head from which the step is taken, so
that the policy that explores need not be near those that work.
"""

from __future__ import annotations

import torch

from gapless.adapt.gradient import Episodes, Inner

HIDDEN = 50


class Learned(Inner):
    """The inner loop of NoRML."""

    def __init__(self, rate: float, width: int, joints: int, head: torch.Tensor, centre: torch.Tensor, scale: torch.Tensor):
        """Begin with an advantage that is drawn at random, and no offset.

        Args:
            rate: length of the step at first.
            width: of an observation.
            joints: of an action.
            head: of the policy.
            centre: of observations, (width,).
            scale: of observations, (width,).
        """
        super().__init__(rate)
        nn = torch.nn
        self.net = nn.Sequential(
            nn.Linear(2 * width + joints, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, 1)
        )
        self.offset = nn.Parameter(torch.zeros_like(head))
        self.register_buffer("centre", centre)
        self.register_buffer("scale", scale)

    def advantage(self, episodes: Episodes) -> torch.Tensor:
        centre, scale = self.get_buffer("centre"), self.get_buffer("scale")
        seen = (episodes.seen - centre) / scale
        moved = (episodes.following - episodes.seen) / scale
        return torch.as_tensor(self.net(torch.cat([seen, episodes.action, moved], dim=-1))[..., 0])

    def begin(self, head: torch.Tensor) -> torch.Tensor:
        return head + self.offset
