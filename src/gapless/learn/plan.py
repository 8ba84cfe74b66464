"""Plan a training: the settings that suit the task and robot, with those that a user states instead.

run = plan_run("velocity", "quadruped", belief="fitted/belief.json")
train(run, Path("runs/walk"))
"""

import dataclasses
import os
from pathlib import Path
from typing import Any

from gapless.learn.run import Run
from gapless.learn.settings import PPOSettings, ppo_settings


def plan_run(
    task: str,
    robot: str = "quadruped",
    belief: str | os.PathLike[str] | None = None,
    preset: str | None = None,
    settings: dict[str, Any] | None = None,
    **more: Any,
) -> Run:
    """What a training is given, checked.

    Args:
        task: velocity, stand, reach, drive or swing.
        robot: name or path.
        belief: file of what is known about the robot, as a fit writes it.
        preset: what worlds are drawn from; `narrow` with a belief and `wide` without unless given.
        settings: of PPO, in place of those that suit the task; None leaves one as it is.
        more: other fields of `Run`: seed, history, residual, kp, kd, terrain.
    """
    stated = {name: value for name, value in (settings or {}).items() if value is not None}
    if "iterations" in stated:  # what grows over a training grows at each checkpoint: a short one needs them too
        stated["every"] = max(1, min(PPOSettings.every, stated["iterations"] // 10))
    preset = preset or ("narrow" if belief else "wide")
    robot = str(Path(robot).resolve()) if Path(robot).is_file() else robot
    run = Run(task, robot, preset, str(Path(belief).resolve()) if belief else "", **more)
    return dataclasses.replace(run, settings=dataclasses.replace(ppo_settings(task, run.twin()), **stated))
