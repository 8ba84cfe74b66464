"""Recording: commands run on any robot that follows the protocol, logged with what it measured."""

from collections.abc import Callable

import numpy as np

from gapless.arrays import Array
from gapless.logs import Log, Provenance
from gapless.robots import Robot


def record(
    robot: Robot, commands: Array, signal: str = "q", source: str = "", tick: Callable[[], object] = lambda: None
) -> Log:
    """Run commands (periods, joints) on any robot and log what it was told and what it measured, on its own clock.

    `tick` is called once a period, for a progress bar.
    """
    readings = []
    for command in commands:
        readings.append(robot.read())
        robot.write({signal: command})
        tick()
    readings.append(robot.read())
    seen = {name: np.array([reading[name] for reading in readings]) for name in readings[0]}
    time = seen.pop("time")
    seen[f"{signal}_cmd"] = np.concatenate([commands, commands[-1:]])
    return Log.from_arrays(robot.joints, time, seen, provenance=Provenance(source=source, format="recorded"))
