"""A plain policy on one robot: its trials there are counted, and what it was adapted to is judged in other runs, and saved."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gapless.adapt.on_robot import JUDGED, Given, robot_of
from gapless.adapt.result import Adapted
from gapless.adapt.search import Trial
from gapless.adapt.trials import Watch, episodes
from gapless.arrays import Array
from gapless.errors import BadInput
from gapless.learn import Deterministic, Environment, Frame, Run, evaluate, save_trained, task_of
from gapless.policy import Contract
from gapless.twin import Point


class OnOne:
    """One simulated robot, and the policy of a training that is to suit it."""

    def __init__(self, run: Run, contract: Contract, robot: Given, seed: int, threads: int):
        """Nothing is simulated yet."""
        if seed < 0:
            raise BadInput(f"the seed must not be negative, not {seed}")
        torch.set_num_threads(1)
        self.run, self.contract, self.seed, self._threads = run, contract, seed, threads
        self.twin, self.values = robot_of(robot, run.robot)
        contract.columns(self.twin.joints)
        self.task = task_of(run.task, self.twin, run.history, run.residual)
        self.episode = round(self.task.episode.seconds / self.twin.control_dt)
        """Periods."""
        self._rng = np.random.default_rng([seed, 0x5EA])
        self._made: dict[int, Environment] = {}

    def environment(self, rng: np.random.Generator, n: int = 1) -> Environment:
        """So many copies of the robot."""
        return Environment(self.twin, self.task, n, Point(self.twin.space, self.values), rng, self._threads, self.contract)

    def trials(self, n: int, act: Callable[[Frame], Frame], watch: Watch = lambda *happened: None) -> list[Trial]:
        """So many episodes, each from a start of its own."""
        if n not in self._made:
            self._made[n] = self.environment(self._rng.spawn(1)[0], n)
        return [
            Trial(np.zeros(0), float(r), bool(f), float(s))
            for r, f, s in zip(*episodes(self._made[n], act, watch), strict=True)
        ]

    def adapted(
        self,
        method: str,
        before: Any,
        after: torch.nn.Module,
        trials: Sequence[Trial],
        folder: Path,
        policy: str | os.PathLike[str],
        stopped: str = "",
        memory: Mapping[str, tuple[int, int]] | None = None,
    ) -> Adapted:
        """Judge both policies in runs that nobody has seen, save the second, and tell.

        Args:
            method: by name.
            before: the policy as it was, as a function.
            after: network of the policy that was adapted.
            trials: what was spent.
            folder: of the adapted policy.
            policy: folder of the policy as it was.
            stopped: why it ended before its budget.
            memory: of a network that has one; see `Deterministic`.
        """
        then = Deterministic(after.eval(), dict(memory or {}))

        def judged(act: Callable[..., Frame]) -> Array:
            return episodes(self.environment(np.random.default_rng([self.seed, 0x7E]), JUDGED), act)[0]

        rewards = judged(before), judged(then)
        then = Deterministic(after, dict(memory or {}))  # which remembers nothing
        golden = self.environment(np.random.default_rng(0), 4)
        save_trained(then, golden, evaluate(then, golden)[1], folder, self.run.hashes()["robot"])
        dataclasses.replace(self.run, teacher=False, latent=0).save(folder)
        reward, fell, spent = (np.array([getattr(t, name) for t in trials], float) for name in ("reward", "fell", "seconds"))
        name, nothing = os.fspath(policy), np.zeros(0)
        return Adapted(self.twin.name, name, method, (), nothing, nothing, reward, fell, spent, stopped, *rewards)
