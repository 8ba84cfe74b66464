"""Recording: commands run on any robot that follows the protocol, logged with what it measured."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from gapless.arrays import Array
from gapless.logs import Log, Provenance, Signal
from gapless.robots import Reading, Robot


def record(
    robot: Robot,
    commands: Array | Sequence[Callable[[Reading], Array]],
    signal: str | Sequence[str] = "q",
    source: str = "",
    tick: Callable[[], object] = lambda: None,
) -> Log:
    """Run commands on any robot and log what it was told and what it measured, on its own clock.

    Args:
        robot: hardware or a stand-in.
        commands: one a period, shape (periods, joints); or for each period what answers a reading with such a command.
        signal: what the drives take: one for all, or one for each joint.
        source: where the log says that it comes from.
        tick: called once a period, for a progress bar.
    """
    by_joint = [signal] * len(robot.joints) if isinstance(signal, str) else list(signal)
    takes = {s: np.array([own == s for own in by_joint]) for s in dict.fromkeys(by_joint)}
    sent, readings = [], []
    for command in commands:
        readings.append(robot.read())
        sent.append(command(readings[-1]) if callable(command) else command)
        robot.write({s: np.where(mine, sent[-1], np.nan) for s, mine in takes.items()})
        tick()
    readings.append(robot.read())
    seen = {name: np.array([reading[name] for reading in readings]) for name in readings[0]}
    time = seen.pop("time")
    log = Log.from_arrays(robot.joints, time, seen, provenance=Provenance(source=source, format="recorded"))
    told = np.array([*sent, *sent[-1:]])
    commands_sent = {
        f"{s}_cmd": Signal(f"{s}_cmd", time, told[:, mine], tuple(np.array(robot.joints)[mine].tolist()))
        for s, mine in takes.items()
    }
    return replace(log, signals={**log.signals, **commands_sent})
