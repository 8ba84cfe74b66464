"""A few-shot inverse-dynamics head: a planner says where the robot should be, a head which action brings it there.

The planner stays. The head is tuned on what a robot did within about two minutes, without reward: (what was seen, where the
robot then was) to the action between. Actions are noisy while that is recorded; without noise they say nothing new.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch

from gapless.adapt.trials import Watch
from gapless.learn import Frame, Step
from gapless.policy import Observation

AHEAD = 4
"""Periods from what is seen to where the robot should be: an action shows after the delay of commands and sensors."""
WIDE = 128
BATCH = 1024
EVERY = 20
"""Gradient steps after which a head is compared on what was held out."""

Data = tuple[torch.Tensor, torch.Tensor, torch.Tensor]
"""What was seen (n, width), where the robot was later (n, places), and the action (n, joints)."""


class Planned(torch.nn.Module):
    """`head(o, planner(o))`; places are scaled to be about 1."""

    mean: torch.Tensor
    std: torch.Tensor
    spread: torch.Tensor

    def __init__(self, mean: torch.Tensor, std: torch.Tensor, places: Sequence[int], spread: torch.Tensor):
        """Begin with networks that know nothing.

        Args:
            mean: of an observation, (width,).
            std: likewise.
            places: columns of the observation that say where the robot is.
            spread: standard deviation of the noise on actions while a robot is recorded, (joints,).
        """
        super().__init__()
        self.register_buffer("mean", mean)
        self.register_buffer("std", std)
        self.register_buffer("spread", spread)
        self.places = list(places)
        self.planner, self.head = _layers(len(mean), len(places)), _layers(len(mean) + len(places), len(spread))

    def normal(self, seen: torch.Tensor) -> torch.Tensor:
        return (seen - self.mean) / self.std

    def moved(self, seen: torch.Tensor, later: torch.Tensor) -> torch.Tensor:
        """How far the robot went, scaled. Shape: (n, places)."""
        return (later - seen[:, self.places]) / self.std[self.places]

    def plan(self, seen: torch.Tensor) -> torch.Tensor:
        """How far it should go."""
        return torch.as_tensor(self.planner(self.normal(seen)))

    def act(self, seen: torch.Tensor, moved: torch.Tensor) -> torch.Tensor:
        """The action that moves it so far."""
        return torch.as_tensor(self.head(torch.cat([self.normal(seen), moved], dim=1)))

    def forward(self, seen: torch.Tensor) -> torch.Tensor:
        return self.act(seen, self.plan(seen))


def _layers(width: int, out: int) -> torch.nn.Sequential:
    nn = torch.nn
    return nn.Sequential(nn.Linear(width, WIDE), nn.LeakyReLU(), nn.Linear(WIDE, WIDE), nn.LeakyReLU(), nn.Linear(WIDE, out))


def places_of(observation: Observation) -> list[int]:
    """Columns that say where the robot is now: all that is neither told nor its own action."""
    columns, start = list[int](), 0
    for term in observation.terms:
        start += term.dim * term.history
        if term.kind in ("q", "dq", "gyro", "gravity", "tip", "velocity"):
            columns += range(start - term.dim, start)
    return columns


def recorded(
    play: Callable[[Callable[[Frame], Frame], Watch], object],
    policy: Callable[[torch.Tensor], torch.Tensor],
    spread: torch.Tensor,
    places: Sequence[int],
) -> tuple[Data, torch.Tensor]:
    """What robots did under a policy with noise, and in which world. Shape of the worlds: (n,)."""
    rows: list[tuple[torch.Tensor, ...]] = []

    def act(seen: Frame) -> Frame:
        with torch.no_grad():
            mean = policy(torch.from_numpy(seen))
        return (mean + spread * torch.randn(mean.shape)).numpy()

    def watch(seen: Frame, action: Frame, step: Step, alive: np.ndarray) -> None:
        rows.append((torch.tensor(seen), torch.tensor(action), torch.from_numpy(alive.copy())))

    play(act, watch)
    seen, action, alive = (torch.stack(part) for part in zip(*rows, strict=True))
    still = alive[AHEAD:]
    world = torch.arange(seen.shape[1]).expand(len(still), -1)
    return (seen[:-AHEAD][still], seen[AHEAD:][..., list(places)][still], action[:-AHEAD][still]), world[still]


def fit_head(network: Planned, data: Data, updates: int, rate: float, held: Data | None = None) -> float:
    """Tune the head on what a robot did; the best by what was held out is kept, which may be the first.

    Returns: the error of actions on what was held out, as a share of that before; 1 where it did not improve.
    """
    optimiser = torch.optim.Adam(network.head.parameters(), rate)
    first, best = None, {name: value.clone() for name, value in network.head.state_dict().items()}
    least = np.inf
    for k in range(updates + 1):
        if held is not None and k % EVERY == 0:
            with torch.no_grad():
                wrong = float(_wrong(network, held))
            first = wrong if first is None else first
            if wrong < least:
                least, best = wrong, {name: value.clone() for name, value in network.head.state_dict().items()}
        rows = torch.randint(len(data[0]), (BATCH,))
        loss = _wrong(network, tuple(part[rows] for part in data))  # type: ignore[arg-type]
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    if held is None or first is None:
        return 1.0
    network.head.load_state_dict(best)
    return least / first


def _wrong(network: Planned, data: Data) -> torch.Tensor:
    seen, later, action = data
    return (network.act(seen, network.moved(seen, later)) - action).square().mean()
