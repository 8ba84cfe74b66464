"""Recording: commands run on any robot that follows the protocol, logged with what it measured."""

from collections.abc import Callable, Sequence

import numpy as np

from gapless.arrays import Array
from gapless.logs import Log, Provenance
from gapless.robots import Reading, Robot


def record(
    robot: Robot,
    commands: Array | Sequence[Callable[[Reading], Array]],
    signal: str = "q",
    source: str = "",
    tick: Callable[[], object] = lambda: None,
) -> Log:
    """Run commands on any robot and log what it was told and what it measured, on its own clock.

    Args:
        robot: hardware or a stand-in.
        commands: one a period, shape (periods, joints); or for each period what answers a reading with such a command.
        signal: what the drives take.
        source: where the log says that it comes from.
        tick: called once a period, for a progress bar.
    """
    sent, readings = [], []
    for command in commands:
        readings.append(robot.read())
        sent.append(command(readings[-1]) if callable(command) else command)
        robot.write({signal: sent[-1]})
        tick()
    readings.append(robot.read())
    seen = {name: np.array([reading[name] for reading in readings]) for name in readings[0]}
    time = seen.pop("time")
    seen[f"{signal}_cmd"] = np.array([*sent, *sent[-1:]])
    return Log.from_arrays(robot.joints, time, seen, provenance=Provenance(source=source, format="recorded"))
