"""MAML for policies (Finn et al. 2017): a policy from which one policy gradient on a robot's rewards gets far."""

from __future__ import annotations

import torch

from gapless.adapt.gradient import Episodes, Inner


class Rewards(Inner):
    """The inner loop of MAML: actions are as good as the reward that followed."""

    def advantage(self, episodes: Episodes) -> torch.Tensor:
        return episodes.gain
