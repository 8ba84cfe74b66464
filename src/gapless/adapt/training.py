"""`gapless train --adapt`: a teacher, and what learns from it, in one folder.

train_adaptive("rma", plan_run("swing", "pendulum"), Path("runs/rma"))
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from gapless.errors import BadInput, must_exist
from gapless.learn import News, Run, train

if TYPE_CHECKING:
    from gapless.adapt.distil import Distilled

METHODS = ("teacher", "student", "rma", "osi")
LATENT = 8
"""Numbers of the teacher's code unless told otherwise (Kumar et al. 2021)."""
SHARE = 6
"""One step of this many goes to what learns from the teacher: all methods have a training's steps in all."""
TEACHER = "teacher"
"""Folder of the teacher, in that of what learns from it."""


def plan_teacher(method: str, run: Run, latent: int | None = None) -> Run:
    """The training of a method's teacher: all iterations for a teacher alone, five sixths of them for others."""
    must_exist("method", [method], METHODS)
    if run.settings.recurrent or run.history > 1:
        raise BadInput("a policy that is told its context, or finds it in its history, takes neither --lstm nor --history")
    settings = run.settings
    if method != "teacher":
        if settings.iterations < SHARE:
            raise BadInput(f"{method} needs at least {SHARE} iterations: five sixths are its teacher's, the rest its own")
        settings = dataclasses.replace(settings, iterations=settings.iterations - settings.iterations // SHARE)
    latent = LATENT if latent is None else latent
    return dataclasses.replace(run, teacher=True, latent=latent, settings=settings)


def train_adaptive(
    method: str,
    run: Run,
    folder: Path,
    tell: Callable[[News], None] = lambda news: None,
    learns: Callable[[Distilled], None] = lambda news: None,
    start: Path | None = None,
    threads: int = 0,
    rate: float = 10.0,
    latent: int | None = None,
) -> None:
    """Train a policy that adapts, and leave it in the folder.

    Args:
        method: teacher, student, rma or osi.
        run: what a plain training of the same length would be given.
        folder: where; made if it does not exist.
        tell: called after each iteration of the teacher.
        learns: called after each round of what learns from it.
        start: folder of a teacher that is there already; its run counts, but for iterations and seed.
        threads: of physics, 0 for one per core.
        rate: at which the estimate is renewed [Hz].
        latent: numbers of the teacher's code; 0 for none.
    """
    planned = plan_teacher(method, run, latent)
    if method == "teacher":
        train(planned, folder, tell, start=start, threads=threads)
        return
    from gapless.adapt.distil import distil
    from gapless.adapt.expert import load_teacher
    from gapless.adapt.osi import OSI
    from gapless.adapt.rma import RMA
    from gapless.adapt.student import STUDENT

    if start is None:
        start = folder / TEACHER
        train(planned, start, tell, threads=threads)
    teacher, how = load_teacher(start, raw=method == "osi"), {m.name: m for m in (STUDENT, RMA, OSI)}[method]
    distil(teacher, how, folder, run.settings.iterations // SHARE, rate, run.seed, threads, learns)
