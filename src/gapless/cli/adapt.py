"""`gapless adapt`: suit a policy to one robot by trials on it, whose time is counted."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from gapless.cli import options
from gapless.cli.options import Json, Overwrite, Seed, Threads
from gapless.cli.stages import stages

if TYPE_CHECKING:
    from gapless.adapt import Trial


def adapt(
    policy: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="POLICY")],
    *,
    robot: Annotated[str, tyro.conf.arg(metavar="SPEC|MODEL")],
    budget: int = 50,
    method: Literal["cma", "bayes", "awr", "hill", "random", "climb", "step", "inverse", "tune"] = "bayes",
    seed: Seed = 0,
    threads: Threads = 0,
    out: Annotated[Path | None, tyro.conf.arg(metavar="DIR", help_behavior_hint="(needed)")] = None,
    overwrite: Overwrite = False,
    json: Json = False,
) -> None:
    """Search for the context with which a policy does best on one robot, by trials on it.

    For example `gapless adapt runs/teacher --robot secret.toml --budget 50 --out adapted`, after
    `gapless train swing --robot pendulum --adapt teacher --out runs/teacher`. The policy in the folder needs no truth: `check`,
    `course` and `run` take it. Exit code 1 where it does no better than before, or every trial fell.

    Args:
        policy: Folder of a teacher; with step, of --adapt maml or norml; with inverse, of --adapt inverse; with climb (best
            of --adapt es) and tune, of any training.
        robot: A stand-in's file, or a model, which is then the robot.
        budget: Trials, each an episode of the task.
        method: CMA-ES, Bayesian optimisation, advantage-weighted regression, a hill climb, at random; or
            climb, a hill climb of the last layer; step, the one step of MAML or NoRML; inverse, the inverse-dynamics head,
            without reward; tune, which trains any policy further on the robot (PPO).
        out: Folder of the adapted policy, adapt.json and its page.
    """
    import sys

    from gapless.adapt import adapt as run, climb, one_step, tune, tune_head

    out = options.wanted(out, "the adapted policy", "adapted")
    options.result_folder(out, overwrite, "policy.onnx", "adapt.json")
    with stages() as say:

        def tell(trials: list[Trial]) -> None:
            best = max(trials, key=lambda t: t.reward).reward
            spent = sum(t.seconds for t in trials)
            say(f"{len(trials)} done, {spent:.0f} s of robot time: best reward {best:.2f} per second")

        given = (policy, robot, out, budget)
        others = {"climb": climb, "step": one_step, "inverse": tune_head, "tune": tune}
        other = others.get(method)
        result = other(*given, seed, threads, tell) if other else run(*given, method, seed, threads, tell)
    result.save(out)
    options.show(result, json)
    if not json:
        options.tell(f"the adapted policy, adapt.json and report.html are in {out}")
    if not result.verdict().good:
        sys.exit(1)
