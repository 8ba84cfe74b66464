"""Distil: an adaptive policy learns from its teacher in worlds where it acts itself (DAgger), what all such methods share."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np
import torch

from gapless.adapt.adaptive import Adaptive, adaptive_contract
from gapless.adapt.expert import Teacher
from gapless.errors import BadInput
from gapless.learn import UNSEEN, Deterministic, Environment, Truth, evaluate, save_trained

KEPT = 64 << 20
"""Numbers of observations that are learned from again; the oldest go first."""
BATCH = 1024
RATE = 1e-3, 1e-4
"""Learning rate of Adam, at first and at last."""
JUDGED = 5
"""Times that the policy is compared on unseen robots."""


@dataclass(frozen=True)
class Method:
    """What one method does differently from the others."""

    name: str
    frames: int
    """Of history."""
    imitates: bool = False
    """Whether the head learns too, from the teacher's actions; else it stays the teacher's."""
    rounds: int = 0
    """In how many parts steps are collected; 0 for one an iteration."""
    told: int = 0
    """First rounds in which the truth acts in place of the estimate."""
    updates: int = 60
    """Gradient steps for each iteration. They draw from all that was collected so far: few steps are new."""


@dataclass(frozen=True)
class Distilled:
    """News of a distillation."""

    round: int
    rounds: int
    error: float
    """Root mean square of the error in z."""
    unseen: float | None
    """Reward per second on robots that no training sees, where it was measured just now."""


class _Data:
    """Observations (n, width), z (n, size) and the teacher's actions (n, joints)."""

    def __init__(self, width: int) -> None:
        self._most, self._rows = max(BATCH, KEPT // width), list[tuple[torch.Tensor, ...]]()

    def add(self, rows: tuple[torch.Tensor, ...]) -> None:
        self._rows.append(rows)
        while len(self._rows) > 1 and sum(len(r[0]) for r in self._rows) > self._most:
            del self._rows[0]

    def all(self) -> tuple[torch.Tensor, ...]:
        return tuple(torch.cat(part) for part in zip(*self._rows, strict=True))


def distil(
    teacher: Teacher,
    method: Method,
    folder: Path,
    iterations: int,
    rate: float = 10.0,
    seed: int = 0,
    threads: int = 0,
    tell: Callable[[Distilled], None] = lambda news: None,
) -> None:
    """Train a policy that needs no truth, and leave it in a folder, as a training does.

    Args:
        teacher: what it learns from; its worlds are those of the teacher.
        method: how.
        folder: where; made if it does not exist.
        iterations: each has as many steps as one of the teacher's.
        rate: at which the estimate is renewed [Hz].
        seed: the same seed gives the same policy.
        threads: of physics, 0 for one per core.
        tell: called after each round.
    """
    if iterations < 1:
        raise BadInput(f"at least one iteration is needed to learn from a teacher, not {iterations}")
    torch.set_num_threads(1)  # as a training does
    torch.manual_seed(int(np.random.SeedSequence([seed, 0xADA]).generate_state(1)[0]))
    run, settings = teacher.run, teacher.run.settings
    contract, every = adaptive_contract(teacher, method.frames, rate)
    twin, task, belief = run.build()
    network, truth = Adaptive(teacher.expert, contract, every), Truth(teacher.context, twin)

    def worlds(n: int, *stream: int) -> Environment:
        return run.environment(twin, task, n, belief, np.random.default_rng([seed, *stream]), threads, contract)

    environment, data = worlds(settings.worlds, 0xADA), _Data(contract.width)
    rounds, best, hashes = method.rounds or iterations, -math.inf, run.hashes()
    rounds = min(rounds, iterations)
    policy, seen = Deterministic(network, network.memory), environment.reset(spread=True)["policy"]
    optimiser = torch.optim.Adam(network.provider.parameters() if not method.imitates else _learns(network), RATE[0])
    folder.mkdir(parents=True, exist_ok=True)
    for k in range(rounds):
        periods = settings.steps * (iterations * (k + 1) // rounds - iterations * k // rounds)
        seen, rows = _collect(environment, policy, teacher, truth, seen, periods, k < method.told)
        data.add(rows)
        for group in optimiser.param_groups:
            group["lr"] = RATE[0] * (RATE[1] / RATE[0]) ** (k / max(rounds - 1, 1))
        error = _fit(network, optimiser, data.all(), method.imitates, method.updates * iterations // rounds)
        unseen = None
        if (k + 1) % max(1, rounds // JUDGED) == 0 or k + 1 == rounds:
            judge = worlds(UNSEEN, 1 << 40)
            unseen, golden = evaluate(Deterministic(network, network.memory), judge)
            if unseen > best:
                best = unseen
                save_trained(Deterministic(network, network.memory), judge, golden, folder, hashes["robot"])
        tell(Distilled(k + 1, rounds, error, unseen))
    dataclasses.replace(run, teacher=False, latent=0).save(folder)


def _learns(network: Adaptive) -> list[torch.nn.Parameter]:
    return [*network.provider.parameters(), *network.expert.body.parameters()]


def _collect(
    environment: Environment,
    policy: Deterministic,
    teacher: Teacher,
    truth: Truth,
    seen: np.ndarray,
    periods: int,
    told: bool,
) -> tuple[np.ndarray, tuple[torch.Tensor, ...]]:
    """Let the policy act for some periods, or its teacher's head with the truth; what it saw, and the teacher's answer."""
    rows: list[tuple[torch.Tensor, ...]] = []
    network = cast(Adaptive, policy.network.eval())
    for _ in range(periods):
        with torch.inference_mode():
            observation = torch.from_numpy(seen)
            z = teacher.expert.encode(torch.from_numpy(truth(environment.worlds).astype(np.float32)))
            right = teacher.expert.head(network.frames(observation)[:, -1], z)
        rows.append((observation, z, right))
        action = policy(seen)
        step = environment.step(right.numpy() if told else action)
        policy.reset(step.failed | step.timeout)
        seen = step.observation["policy"]
    return seen, tuple(torch.cat(part) for part in zip(*rows, strict=True))


def _fit(
    network: Adaptive, optimiser: torch.optim.Optimizer, data: tuple[torch.Tensor, ...], imitates: bool, updates: int
) -> float:
    """Learn from rows drawn at random; the root mean square of the error in z meanwhile."""
    network.train()
    wrong = 0.0
    for _ in range(updates):
        rows = torch.randint(len(data[0]), (BATCH,))
        seen, z, right = (part[rows] for part in data)
        frames = network.frames(seen)
        found = network.provider(frames)
        loss = (found - z).pow(2).mean()
        wrong += float(loss.detach()) / updates
        if imitates:
            loss = loss + (network.expert.head(frames[:, -1], found) - right).pow(2).mean()
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimiser.step()
    network.eval()
    return math.sqrt(wrong)
