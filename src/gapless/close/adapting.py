"""Policies that adapt as stages of a loop: a teacher, what learns from it, and a search on the robot."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

from gapless.adapt import Adapted, adapt, plan_plain, plan_teacher, train_adaptive, train_prepared
from gapless.close.case import ROBOT_TIME, Case
from gapless.close.field import contents
from gapless.close.stages import Stages
from gapless.files import sha256
from gapless.learn import News, Run, plan_run, task_of, train
from gapless.robots import files_of

Adapts = Callable[..., Adapted]
"""From policy, robot, folder, trials and seed to what came of it."""


def adapted(case: Case, stages: Stages, method: str) -> Path:
    """The folder of a policy that finds out about its robot while it runs, trained in the ranges of the field."""
    run, start = _planned(case), told(case, stages, method)

    def make(folder: Path) -> None:
        stages.tell(f"training {method}", None)
        train_adaptive(method, run, folder, start=start)

    return stages.run(method, _inputs(run) | {"teacher": contents(start)}, make, lambda folder: folder)


def searched(case: Case, stages: Stages, method: str = "bayes") -> Path:
    """The folder of a universal policy whose context was searched on the robot, within the usual robot time."""
    start, length = told(case, stages, "osi"), task_of(case.task, case.twin()).episode.seconds
    trials = max(1, int(ROBOT_TIME / length))

    def make(folder: Path) -> None:
        adapt(start, case.secret, folder, trials, method, case.seed)

    inputs = {"teacher": contents(start), "standin": case.secret, "trials": trials, "seed": case.seed, "method": method}
    return stages.run("search", inputs, make, lambda folder: folder, trials * length, f"{trials} trials on the robot")


def prepared(case: Case, stages: Stages, method: str, adapts: Adapts) -> Path:
    """The folder of a plain policy that was prepared for adaptation, and adapted on the robot within the usual robot time."""
    run = _planned(case)
    base = plan_plain(method, run)
    plain = stages.run("plain", _inputs(base), lambda folder: train(base, folder), lambda folder: folder)

    def make(folder: Path) -> None:
        stages.tell(f"preparing {method}", None)
        train_prepared(method, run, folder, start=plain)

    ready = stages.run(method, _inputs(run) | {"plain": contents(plain)}, make, lambda folder: folder)
    length = task_of(case.task, case.twin()).episode.seconds
    trials = max(1, int(ROBOT_TIME / length))
    inputs = {"ready": contents(ready), "standin": case.secret, "trials": trials, "seed": case.seed, "method": method}

    def on_robot(folder: Path) -> None:
        adapts(ready, case.secret, folder, trials, case.seed)

    return stages.run(
        f"{method}_robot", inputs, on_robot, lambda folder: folder, trials * length, f"{trials} trials on the robot"
    )


def told(case: Case, stages: Stages, method: str) -> Path:
    """The folder of the teacher, which all methods share."""
    run, name = plan_teacher(method, _planned(case)), "teacher"

    def make(folder: Path) -> None:
        def tell(news: News) -> None:
            stages.tell(f"training {name}, iteration {news.progress.iteration} of {run.settings.iterations}", None)

        train(run, folder, tell)

    return stages.run(name, _inputs(run), make, lambda folder: folder, says=f"training {name}")


def _planned(case: Case) -> Run:
    settings = {"iterations": case.scratch or None}
    return plan_run(case.task, case.robot, None, "wide", settings, seed=case.seed, stated=case.stated)


def _inputs(run: Run) -> dict[str, object]:
    return {"run": dataclasses.asdict(run), "robot": sha256(*files_of(run.robot))}
