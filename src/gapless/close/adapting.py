"""Policies that adapt as stages of a loop: a teacher, what learns from it, and a search on the robot."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from gapless.adapt import adapt, plan_teacher, train_adaptive
from gapless.close.case import ROBOT_TIME, Case
from gapless.close.field import contents
from gapless.close.stages import Stages
from gapless.files import sha256
from gapless.learn import News, Run, plan_run, task_of, train
from gapless.robots import files_of


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
