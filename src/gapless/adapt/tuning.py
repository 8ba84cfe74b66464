"""Fine-tuning on the robot within a budget: PPO goes on with a trained policy, on one robot alone, in counted seconds."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from gapless.adapt.on_robot import JUDGED, robot_of
from gapless.adapt.result import Adapted
from gapless.adapt.search import MOST, Trial
from gapless.adapt.trials import episodes
from gapless.errors import BadInput
from gapless.learn import NETWORKS, Environment, Learner, evaluate, load_networks, load_run, save_trained, task_of
from gapless.policy import load_policy
from gapless.twin import Point
from gapless.worlds import StandInSpec

EPISODES = 4
"""From which each update learns."""


def tune(
    policy: str | os.PathLike[str],
    robot: str | StandInSpec,
    folder: str | os.PathLike[str],
    budget: int = 50,
    seed: int = 0,
    threads: int = 0,
    tell: Callable[[list[Trial]], None] = lambda trials: None,
) -> Adapted:
    """Train a policy further on one robot, and save what came of it, better or worse: the result says which.

    Args:
        policy: folder of a training, of a policy that is told nothing.
        robot: a stand-in, its file, or the name or path of a model, which is then the robot.
        folder: of the tuned policy and the result.
        budget: episodes on the robot.
        seed: of exploration and starts.
        threads: of physics, 0 for one per core.
        tell: told all updates so far as trials, with the reward while it explored.
    """
    if not EPISODES <= budget <= MOST:
        raise BadInput(f"tuning needs a budget of {EPISODES} to {MOST} episodes on the robot, not {budget}")
    before, run = load_policy(Path(policy)), load_run(Path(policy))
    before.contract.must_run_on_a_robot()
    networks, columns = load_networks(Path(policy) / NETWORKS)
    twin, values = robot_of(robot, run.robot)
    task, contract = task_of(run.task, twin, run.history, run.residual), before.contract
    contract.columns(twin.joints)
    torch.set_num_threads(1)
    length = round(task.episode.seconds / twin.control_dt)
    updates = budget // EPISODES
    settings = dataclasses.replace(run.settings, worlds=1, steps=EPISODES * length, iterations=updates, every=updates)

    def one(rng: np.random.Generator, n: int = 1) -> Environment:
        return Environment(twin, task, n, Point(twin.space, values), rng, threads, contract)

    learner = Learner(lambda rng, hardness: one(rng), settings, seed)
    learner.start_from(networks, columns)
    trials, seconds = list[Trial](), EPISODES * length * twin.control_dt
    for _ in range(updates):
        progress = learner.iterate()
        trials.append(Trial(np.zeros(0), progress.reward, False, seconds))
        tell(trials)
    tuned = learner.deterministic()

    def judged(act: Callable[..., np.ndarray]) -> np.ndarray:
        return episodes(one(np.random.default_rng([seed, 0x7E]), JUDGED), act)[0]

    before.reset()
    rewards = judged(before), judged(learner.deterministic())
    golden = one(np.random.default_rng(0), 4)
    save_trained(tuned, golden, evaluate(tuned, golden)[1], Path(folder), run.hashes()["robot"])
    run.save(Path(folder))
    reward, fell, spent = (np.array([getattr(t, name) for t in trials], float) for name in ("reward", "fell", "seconds"))
    return Adapted(twin.name, os.fspath(policy), "tune", (), np.zeros(0), np.zeros(0), reward, fell, spent, "", *rewards)
