"""The environment as rsl-rl-lib takes it: a VecEnv of torch tensors with observation groups."""

from typing import Any

import numpy as np
import torch
from rsl_rl.env import VecEnv
from tensordict import TensorDict

from gapless.arrays import Array
from gapless.learn.environment import Environment


class TorchEnvironment(VecEnv):
    """An `Environment` as a VecEnv. Reward terms, falls and metrics are added up until `take` is called."""

    def __init__(self, environment: Environment):
        self.environment = environment
        self.num_envs = environment.n
        self.num_actions = len(environment.contract.action.joints)
        self.max_episode_length = round(environment.task.episode.seconds / environment.twin.control_dt)
        self.episode_length_buf = torch.zeros(self.num_envs, dtype=torch.long)
        self.device = "cpu"
        self.cfg: dict[str, Any] = {}
        self._now = self._torch(environment.reset(spread=True))
        self._sums: dict[str, float] = {}
        self._metrics: dict[str, list[Array]] = {}
        self.steps = self.steps_ever = 0

    def get_observations(self) -> TensorDict:
        return self._now

    def step(self, actions: torch.Tensor) -> tuple[TensorDict, torch.Tensor, torch.Tensor, dict[str, torch.Tensor]]:
        step = self.environment.step(actions.numpy())
        self._now = self._torch(step.observation)
        happened = {**step.terms, "falls": step.failed}
        for name, mean in zip(happened, np.array(list(happened.values())).mean(axis=1).tolist(), strict=True):
            self._sums[name] = self._sums.get(name, 0.0) + mean
        for name, values in step.metrics.items():
            self._metrics.setdefault(name, []).append(values[np.isfinite(values)])
        self.steps += 1
        self.steps_ever += 1
        done = torch.from_numpy(step.failed | step.timeout)
        return (
            self._now,
            torch.from_numpy(step.reward.astype(np.float32)),
            done.long(),
            {"time_outs": torch.from_numpy(step.timeout)},
        )

    def take(self) -> tuple[dict[str, float], dict[str, float]]:
        """Since the last call: reward terms and falls by second of robot time, and the mean of each metric."""
        steps = max(self.steps, 1)
        terms = {name: total / steps / self.environment.twin.control_dt for name, total in self._sums.items()}
        metrics = {name: float(np.mean(np.concatenate(values))) for name, values in self._metrics.items()}
        self._sums, self._metrics, self.steps = {}, {}, 0
        return terms, metrics

    def _torch(self, observation: dict[str, Any]) -> TensorDict:
        return TensorDict({k: torch.from_numpy(v) for k, v in observation.items()}, batch_size=[self.num_envs])
