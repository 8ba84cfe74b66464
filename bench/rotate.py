"""MAML and NoRML on a point whose steps are turned by a hidden angle (Yang et al. 2019), where what can be reached is known.

    python -m bench.rotate [--json] [--seeds 3] [--only norml] [--iterations 150]

A point walks home from anywhere at a distance of 1, in ten steps of at most 0.2, all of them turned by an angle of -180 to 180
degrees that stays; where it is says nothing of the angle. It earns by how much it comes nearer; who knows the angle earns 1.
`none` is a policy of the same size and training whose inner step has no length: one policy for all angles. The inner step of
NoRML sees no reward. Judged without noise after one step, on 500 angles that no training saw.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

import numpy as np
import torch

from gapless.adapt import Adapts, Episodes, Learned, Rewards, gains, learn, stepped

ANGLES, PERIODS, EACH, GAMMA = 10, 10, 20, 0.9
RATE = {"maml": 0.1, "norml": 1.0, "none": 0.0}


class Walker(Adapts):
    """A policy of two layers of 50 with a linear head."""

    def __init__(self) -> None:
        super().__init__()
        nn = torch.nn
        self.body = nn.Sequential(nn.Linear(2, 50), nn.Tanh(), nn.Linear(50, 50), nn.Tanh())
        self.head, self.spread = nn.Parameter(0.05 * torch.randn(2, 51)), torch.full((2,), 0.3)

    def features(self, o: torch.Tensor) -> torch.Tensor:
        seen = self.body(o)
        return torch.cat([seen, torch.ones_like(seen[..., :1])], dim=-1)


def rotated(policy: Walker, generator: torch.Generator, noise: float = 1.0) -> Any:
    """Points with new angles, as a function of the heads that walk them."""
    angle = (2 * torch.rand(ANGLES, generator=generator) - 1) * torch.pi
    c, s = angle.cos(), angle.sin()
    turn = torch.stack([torch.stack([c, -s], -1), torch.stack([s, c], -1)], -2)

    def collect(heads: torch.Tensor, noise: float = noise) -> Episodes:
        x, rows = torch.randn(ANGLES, EACH, 2, generator=generator), list[tuple[torch.Tensor, ...]]()
        x = x / x.norm(dim=-1, keepdim=True)
        with torch.no_grad():
            for _ in range(PERIODS):
                mean = torch.einsum("tef,tjf->tej", policy.features(x), heads)
                action = mean + noise * policy.spread * torch.randn(mean.shape, generator=generator)
                step = 0.2 * action / action.norm(dim=-1, keepdim=True).clamp(min=1)
                after = x + torch.einsum("tij,tej->tei", turn, step)
                rows.append((x, action, after, x.norm(dim=-1) - after.norm(dim=-1)))
                x = after
        seen, action, following, reward = (torch.stack(part, dim=1) for part in zip(*rows, strict=True))
        alive = torch.ones_like(reward)
        return Episodes(seen, action, following, gains(reward, alive, GAMMA), alive, float(reward.sum(dim=1).mean()))

    return collect


def trained(method: str, iterations: int, seed: int) -> tuple[Walker, Any]:
    """A policy and its inner loop."""
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    policy, generator = Walker(), torch.Generator().manual_seed(seed)
    still = torch.zeros(2), torch.full((2,), 0.2)
    inner = Learned(RATE[method], 2, 2, policy.head.detach(), *still) if method == "norml" else Rewards(RATE[method])
    learn(policy, inner, ANGLES, lambda: rotated(policy, generator), iterations, rate=3e-3)
    return policy, inner


def judged(policy: Walker, inner: Any, seed: int, times: int = 50) -> tuple[float, float]:
    """What is earned without the step and after it, without noise."""
    generator, before, after = torch.Generator().manual_seed(10_000 + seed), list[float](), list[float]()
    for _ in range(times):
        collect = rotated(policy, generator)
        heads = policy.head.detach().expand(ANGLES, -1, -1)
        before.append(collect(heads, 0.0).earned)
        with torch.no_grad():
            after.append(collect(stepped(policy, inner, collect(heads)), 0.0).earned)
    return float(np.mean(before)), float(np.mean(after))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON line, last")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--only", nargs="+", default=list(RATE), choices=list(RATE))
    parser.add_argument("--iterations", type=int, default=150)
    given = parser.parse_args()
    figures: dict[str, float] = {}
    for method in given.only:
        scores = [
            judged(*trained(method, given.iterations, seed), seed) for seed in range(given.first, given.first + given.seeds)
        ]
        before, after = np.array(scores).T
        figures |= {f"{method}_before": before.mean(), f"{method}_after": after.mean(), f"{method}_worst": after.min()}
        print(method, figures[f"{method}_before"], after.tolist(), flush=True)
    if given.json:
        print(json.dumps({k: float(v) for k, v in figures.items()}))


if __name__ == "__main__":
    main()
