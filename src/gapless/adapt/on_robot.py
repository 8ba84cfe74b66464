"""`gapless adapt`: a teacher's policy suited to one robot by a search for its z, on a stand-in.

print(adapt("runs/teacher", "secret.toml", "adapted", budget=50))
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np

from gapless.adapt.awr import Weighted
from gapless.adapt.bayes import Bayes
from gapless.adapt.blind import Blind
from gapless.adapt.evolution import Evolution
from gapless.adapt.hill import Climb
from gapless.adapt.result import Adapted
from gapless.adapt.search import Searcher, Trial, search
from gapless.arrays import Array
from gapless.errors import BadInput, must_exist
from gapless.learn import task_of
from gapless.robots import BUILT_IN
from gapless.twin import Twin
from gapless.worlds import StandInSpec, hidden_standin, load_standin

SEARCHES: dict[str, Callable[[int, np.random.Generator], Searcher]] = {
    "cma": Evolution,
    "bayes": Bayes,
    "awr": Weighted,
    "hill": Climb,
    "random": Blind,
}
"""Ways to search, by name."""
Given = str | StandInSpec | tuple[Twin, Array]
"""A robot to adapt to: a stand-in, its file, a model, or a twin with its parameters."""
JUDGED = 36
"""Runs with which the result is told; they are not counted, as a stand-in has time."""


def adapt(
    policy: str | os.PathLike[str],
    robot: Given,
    folder: str | os.PathLike[str],
    budget: int = 50,
    method: str = "bayes",
    seed: int = 0,
    threads: int = 0,
    tell: Callable[[list[Trial]], None] = lambda trials: None,
) -> Adapted:
    """Search for the z with which a teacher's policy does best on a robot, and save that policy, which needs no truth.

    Args:
        policy: folder of a teacher.
        robot: a stand-in, its file, or the name or path of a model, which is then the robot.
        folder: of the adapted policy and the result.
        budget: trials, each an episode of the task.
        method: cma, bayes, awr, hill or random.
        seed: of the search and of the trials' starts.
        threads: of physics, 0 for one per core.
        tell: told all trials so far, after each batch.
    """
    from gapless.adapt.expert import load_teacher
    from gapless.adapt.trials import Trials

    must_exist("method", [method], SEARCHES)
    if seed < 0:
        raise BadInput(f"the seed must not be negative, not {seed}")
    teacher = load_teacher(Path(policy))
    run = teacher.run
    twin, values = robot_of(robot, run.robot)
    teacher.contract.columns(twin.joints)
    task = task_of(run.task, twin, run.history, run.residual)
    trials = Trials(teacher, twin, values, task, seed, threads)
    found = search(trials, SEARCHES[method](trials.size, np.random.default_rng([seed, 7])), trials.size, budget, tell)
    judge = Trials(teacher, twin, values, task, seed + 1_000_003, threads)
    before, after = (np.array([t.reward for t in judge(np.tile(z, (JUDGED, 1)))]) for z in (0 * found.z, found.z))
    trials.save(found.z, Path(folder))
    reward, fell, seconds = (
        np.array([getattr(t, name) for t in found.trials], float) for name in ("reward", "fell", "seconds")
    )
    return Adapted(
        twin.name,
        os.fspath(policy),
        method,
        teacher.names,
        found.z,
        judge.truth(),
        reward,
        fell,
        seconds,
        found.stopped,
        before,
        after,
    )


def robot_of(robot: Given, trained: str) -> tuple[Twin, Array]:
    """The robot as it really is, and its parameters."""
    if isinstance(robot, tuple):
        return robot
    if isinstance(robot, str) and "://" in robot:
        raise BadInput(
            f"{robot}: a search needs the task's reward, which no live robot measures; name a stand-in's file or a model"
        )
    if isinstance(robot, str):
        if robot not in BUILT_IN and not Path(robot).is_file():
            raise BadInput(
                f"{robot}: there is no such file; name a stand-in's file (.toml), a model such as {trained}, or its file"
            )
        robot = load_standin(robot) if robot.endswith(".toml") else StandInSpec(robot, tolerance=0.0)
    twin, values, _ = hidden_standin(dataclasses.replace(robot, in_air=False))
    return twin, values
