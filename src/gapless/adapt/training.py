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
PREPARED = {"es": 2, "maml": 2, "norml": 2, "inverse": 6}
"""Methods that prepare a plain policy for adaptation on a robot; one step of so many goes to that, the others to the policy."""
LATENT = 8
"""Numbers of the teacher's code unless told otherwise (Kumar et al. 2021)."""
SHARE = 6
"""One step of this many goes to what learns from the teacher: all methods have a training's steps in all."""
TEACHER, PLAIN = "teacher", "plain"
"""Folder of the teacher, or of the plain policy, in that of what learns from it."""


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


def plan_plain(method: str, run: Run) -> Run:
    """The training of the plain policy from which a method that is prepared begins."""
    must_exist("method", [method], PREPARED)
    if run.settings.recurrent:
        raise BadInput(f"{method} moves the last layer of a plain policy: leave out --lstm")
    settings = run.settings
    if settings.iterations < PREPARED[method]:
        raise BadInput(f"{method} needs at least {PREPARED[method]} iterations: some for its policy, the rest its own")
    left = settings.iterations - settings.iterations // PREPARED[method]
    return dataclasses.replace(run, settings=dataclasses.replace(settings, iterations=left))


def train_prepared(
    method: str,
    run: Run,
    folder: Path,
    tell: Callable[[News], None] = lambda news: None,
    learns: Callable[[int, float], None] = lambda k, figure: None,
    start: Path | None = None,
    threads: int = 0,
) -> None:
    """Train a plain policy, prepare it for adaptation on a robot, and leave it in the folder.

    Args:
        method: es, maml, norml or inverse.
        run: what a plain training of the same length would be given.
        folder: where; made if it does not exist.
        tell: called after each iteration of the plain training.
        learns: called with each step of what follows and its figure: reward after adaptation, or the error of actions.
        start: folder of a plain training that is there already.
        threads: of physics, 0 for one per core.
    """
    planned, settings = plan_plain(method, run), run.settings
    if start is None:
        start = folder / PLAIN
        train(planned, start, tell, threads=threads)
    from gapless.adapt.es_maml import train_es_maml
    from gapless.adapt.few_shot import train_inverse
    from gapless.adapt.headed import load_plain
    from gapless.adapt.meta import train_gradient

    steps = settings.iterations // PREPARED[method] * settings.worlds * settings.steps
    plain = load_plain(start)
    if method == "es":
        train_es_maml(plain, folder, steps, run.seed, threads, learns)
    elif method == "inverse":
        train_inverse(plain, folder, steps, run.seed, threads, learns)
    else:
        train_gradient(method, plain, folder, steps, run.seed, threads, learns)
