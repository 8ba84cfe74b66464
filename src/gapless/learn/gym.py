"""The environment as a Gymnasium VectorEnv, so that any algorithm can train in it."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from gapless.arrays import Array, Bools
from gapless.learn.environment import Environment, Frame
from gapless.learn.task import Task
from gapless.twin import Belief, Twin

MOST = 10.0
"""Bound of an action, in units of its scale; spaces need one, and this is far beyond what a policy uses."""


class GymEnvironment(gymnasium.vector.VectorEnv[Any, Any, Any]):
    """Observations are what a robot can know; `infos["critic"]` has what only a simulator knows as well.

    An episode that ends restarts in the same step, which returns the first observation of the new one; the last of the old
    one is in `infos["final_obs"]`, as Gymnasium specifies. Rewards by term are in `infos["terms"]`.
    """

    metadata: dict[str, Any] = {"autoreset_mode": AutoresetMode.SAME_STEP}  # noqa: RUF012 - as Gymnasium declares it

    def __init__(self, twin: Twin, task: Task, n: int, belief: Belief | None = None, seed: int = 0, threads: int = 0):
        self._given = (twin, task, n, belief)
        self._threads = threads
        self._build(seed)
        contract = self._environment.contract
        actions = len(contract.action.joints)
        self.num_envs = n
        self.single_observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (contract.width,), np.float32)
        self.single_action_space = gymnasium.spaces.Box(-MOST, MOST, (actions,), np.float32)
        self.observation_space = gymnasium.vector.utils.batch_space(self.single_observation_space, n)
        self.action_space = gymnasium.vector.utils.batch_space(self.single_action_space, n)

    def _build(self, seed: int) -> None:
        twin, task, n, belief = self._given
        self._environment = Environment(twin, task, n, belief, np.random.default_rng(seed), self._threads)
        self._environment.keep_final = True

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Frame, dict[str, Any]]:
        if seed is not None:
            self._build(seed)
        observation = self._environment.reset()
        return observation["policy"], {"critic": observation["critic"]}

    def step(self, actions: NDArray[np.float32]) -> tuple[Frame, Array, Bools, Bools, dict[str, Any]]:
        step = self._environment.step(np.clip(actions, -MOST, MOST))
        infos: dict[str, Any] = {"critic": step.observation["critic"], "terms": step.terms}
        if step.final is not None:
            ended = step.failed | step.timeout
            infos["final_obs"], infos["_final_obs"] = np.full(self.num_envs, None, object), ended
            for i in np.flatnonzero(ended):
                infos["final_obs"][i] = step.final["policy"][i]
            infos["final_critic"] = step.final["critic"]
        return step.observation["policy"], step.reward, step.failed, step.timeout, infos
