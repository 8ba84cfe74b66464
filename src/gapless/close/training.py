"""Training as a stage of a loop: started from a policy or from nothing, resumed where it was interrupted, its curve kept."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from gapless.close.case import Case
from gapless.close.field import contents
from gapless.close.stages import Stages
from gapless.files import sha256
from gapless.learn import News, load_run, plan_run, train
from gapless.plain import read_json, write_json
from gapless.robots import files_of

CURVE = "curve.json"
CHECKPOINTS = 6
"""Of a tuning: at each, the policy is judged on unseen robots, which takes as long as five iterations."""


def trained(
    case: Case,
    stages: Stages,
    name: str,
    preset: str | None,
    belief: Path | None = None,
    start: Path | None = None,
    adr: bool = False,
    **settings: Any,
) -> Path:
    """The folder of a policy that was trained in worlds of a preset, tuned from another one where that is given.

    Args:
        case: robot, task, iterations and seed.
        stages: of the work.
        name: of the stage.
        preset: what worlds are drawn from; None with `adr`.
        belief: file of what is known about the robot.
        start: folder of the training whose policy is tuned.
        adr: whether ranges grow with success.
        settings: of PPO, over those that suit the task.
    """
    iterations = case.iterations if start is not None else case.scratch or None
    often = {"every": max(1, case.iterations // CHECKPOINTS)} if start is not None else {}
    settings = {"iterations": iterations, **often, **settings}
    run = plan_run(case.task, case.robot, belief, preset, settings, seed=case.seed, stated=case.stated, adr=adr)

    def make(folder: Path) -> None:
        again = (folder / "checkpoint.pt").is_file()
        curve: list[dict[str, Any]] = read_json(folder / CURVE)["curve"] if (folder / CURVE).is_file() and again else []

        def tell(news: News) -> None:
            progress, left = news.progress, run.settings.iterations - news.progress.iteration
            took.append(progress.collect + progress.update)
            if news.unseen is not None:
                curve.append({"iteration": progress.iteration, "reward": progress.reward, "unseen": news.unseen})
                write_json(folder / CURVE, {"curve": curve})
            so_far = (
                f", iteration {curve[-1]['iteration']} of {run.settings.iterations}: reward {news.best:.2f}" if curve else ""
            )
            stages.tell(f"training {name}{so_far}", left * sum(took) / len(took))

        took: list[float] = []
        train(load_run(folder) if again else run, folder, tell, resume=again, start=start)

    inputs = {
        "run": dataclasses.replace(run, belief="" if belief is None else sha256(belief)),
        "robot": sha256(*files_of(run.robot)),
        "start": contents(start),
    }
    return stages.run(name, inputs, make, lambda folder: folder, says=f"training {name}")


def on_robot(case: Case, stages: Stages) -> Path:
    """The policy that is on the robot before anything is done: given, or trained on the nominal robot."""
    return Path(case.policy) if case.policy else trained(case, stages, "nominal", "none")


def to_tune(case: Case, stages: Stages) -> Path:
    """The training whose policy is tuned: given, or in `wide`."""
    return Path(case.base) if case.base else trained(case, stages, "wide", "wide")
