"""Adaptive: a policy that finds its context in the history of its observations, and holds it between renewals."""

from __future__ import annotations

import copy
import dataclasses

import torch

from gapless.adapt.expert import EPS, Expert, Teacher
from gapless.policy import Context, Contract

CHANNELS = 32
CONVOLUTIONS = ((8, 4), (5, 1), (5, 1))
"""Kernel and stride, over the last 50 frames (Kumar et al. 2021)."""
LONG = 40
"""Frames from which on a history is read by convolutions; below, by plain layers (Yu et al. 2017)."""
LAYERS = (256, 128, 64)
DROPOUT = 0.1


class FromHistory(torch.nn.Module):
    """An estimate of z from the last frames. Shape: (n, frames * columns) to (n, size)."""

    def __init__(self, frames: int, columns: int, size: int, bounded: bool):
        super().__init__()
        nn, made = torch.nn, list[torch.nn.Module]()
        self.long = frames >= LONG
        if self.long:
            self.each = nn.Sequential(nn.Linear(columns, CHANNELS), nn.LeakyReLU())
            for kernel, stride in CONVOLUTIONS:
                made += [nn.Conv1d(CHANNELS, CHANNELS, kernel, stride), nn.LeakyReLU()]
                frames = (frames - kernel) // stride + 1
            made += [nn.Flatten(), nn.Linear(CHANNELS * frames, size)]
        else:
            made, wide = [nn.Flatten()], frames * columns
            for width in LAYERS:
                made += [nn.Linear(wide, width), nn.ReLU(), nn.Dropout(DROPOUT)]
                wide = width
            made.append(nn.Linear(wide, size))
        self.net = nn.Sequential(*made, *([nn.Tanh()] if bounded else []))

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        return self.net(self.each(frames).transpose(1, 2) if self.long else frames)


class Adaptive(torch.nn.Module):
    """`pi(a | o, z)` with its provider of z; its memory is z and the periods since it was renewed.

    Shapes: observation (n, width), z (1, n, size), age (1, n, 1).
    """

    mean: torch.Tensor
    std: torch.Tensor

    def __init__(self, expert: Expert, contract: Contract, every: int):
        """Begin with the expert's own head and an estimate that knows nothing.

        Args:
            expert: whose actions and z are learned.
            contract: of the adaptive policy, all of whose terms show the same number of frames.
            every: periods between renewals.
        """
        super().__init__()
        self.expert, self.every = copy.deepcopy(expert), every
        self.terms = [(t.history, t.dim) for t in contract.observation.terms]
        columns = sum(dim for _, dim in self.terms)
        self.provider = FromHistory(self.terms[0][0], columns, expert.size, bounded=expert.coded)

        ends = torch.split(torch.cat([expert.mean, expert.std])[:, :columns], [dim for _, dim in self.terms], dim=1)
        mean, std = torch.cat([e.repeat(1, history) for e, (history, _) in zip(ends, self.terms, strict=True)], dim=1)
        self.register_buffer("mean", mean)
        self.register_buffer("std", std)

    def frames(self, seen: torch.Tensor) -> torch.Tensor:
        """Observations, whose terms go one after the other with all their frames, normalised and by frame.

        Shape: (n, frames, columns).
        """
        seen = (seen - self.mean) / (self.std + EPS)
        parts = seen.split([history * dim for history, dim in self.terms], dim=1)
        return torch.cat([p.reshape(-1, *shape) for p, shape in zip(parts, self.terms, strict=True)], dim=2)

    def forward(
        self, seen: torch.Tensor, z: torch.Tensor, age: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        frames = self.frames(seen)
        now = torch.where(age[0] < 0.5, self.provider(frames), z[0])
        action = self.expert.head(frames[:, -1], now)
        age = age + 1.0
        return action, now[None], torch.where(age > self.every - 0.5, torch.zeros_like(age), age)

    @property
    def memory(self) -> dict[str, tuple[int, int]]:
        return {"z": (1, self.expert.size), "age": (1, 1)}


def adaptive_contract(teacher: Teacher, frames: int, rate: float) -> tuple[Contract, int]:
    """The contract of a policy that finds what its teacher is told in this many frames; and periods between renewals."""
    dt = teacher.contract.timing.control_dt
    assert dt is not None
    every = max(1, round(1 / (rate * dt)))
    observed = teacher.plain
    terms = tuple(dataclasses.replace(t, history=frames) for t in observed.terms)
    low, high = teacher.ends
    context = Context(teacher.names, "history", low, high, rate=1 / (every * dt))
    return dataclasses.replace(teacher.contract, context=context, observation=dataclasses.replace(observed, terms=terms)), every
