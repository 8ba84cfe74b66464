"""Fine-tuning on the robot within a budget: PPO goes on with a trained policy, on one robot alone, in counted seconds."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np

from gapless.adapt.on_one import OnOne
from gapless.adapt.on_robot import Given
from gapless.adapt.result import Adapted
from gapless.adapt.search import MOST, Trial
from gapless.errors import BadInput
from gapless.learn import NETWORKS, Learner, load_networks, load_run
from gapless.policy import load_policy

EPISODES = 4
"""From which each update learns."""


def tune(
    policy: str | os.PathLike[str],
    robot: Given,
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
    one = OnOne(run, before.contract, robot, seed, threads)
    updates = budget // EPISODES
    settings = dataclasses.replace(run.settings, worlds=1, steps=EPISODES * one.episode, iterations=updates, every=updates)
    learner = Learner(lambda rng, hardness: one.environment(rng), settings, seed)
    learner.start_from(networks, columns)
    trials, seconds = list[Trial](), EPISODES * one.episode * one.twin.control_dt
    for _ in range(updates):
        progress = learner.iterate()
        trials.append(Trial(np.zeros(0), progress.reward, False, seconds))
        tell(trials)
    before.reset()
    tuned = learner.deterministic()
    return one.adapted("tune", before, tuned.network, trials, Path(folder), policy, memory=tuned.memory)
