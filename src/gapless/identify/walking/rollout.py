"""Robots that walk in closed loop: what drives the real one drives many simulated ones, and all are seen as distributions."""

from collections.abc import Callable, Mapping

import numpy as np

from gapless.arrays import Array, Bools
from gapless.errors import BadInput
from gapless.gap import Motion
from gapless.logs import Log
from gapless.measure import BLOCK, blocks_at, first_half
from gapless.rotations import tipped, up_of
from gapless.twin import Twin
from gapless.worlds import Worlds, common_signal

Crew = Callable[[int], Callable[[Mapping[str, Array]], Array]]
"""For a number of robots what answers their readings, (n, columns) by signal, with targets of all joints, (n, joints)."""
SETTLES = 1.0  # s until a robot that was put down walks as it always does


def walk(twin: Twin, values: Array, seconds: float, crew: Crew, rng: np.random.Generator) -> tuple[dict[str, Array], Bools]:
    """Let robots with parameters (n, parameters) over the twin's space walk for so long once they walk, and say which fell.

    Shape of each signal: (n, periods, columns).
    """
    worlds, controls, told = Worlds(twin, len(values), rng=rng), [d.control for d in twin.drives], common_signal(twin)
    worlds.write(values)
    readings, drive = worlds.reset(redraw=False), crew(len(values))
    command, seen, fell = np.tile(worlds.home_command, (len(values), 1)), list[dict[str, Array]](), np.zeros(len(values), bool)
    first = round(SETTLES / twin.control_dt)
    for period in range(first + round(seconds / twin.control_dt)):
        command[:, controls] = drive(readings)
        if period >= first:
            seen.append({**readings, f"{told}_cmd": command[:, controls]})
        readings = worlds.step(command)
        fell |= worlds.failed
    signals = {s: np.stack([each[s] for each in seen], axis=1) for s in seen[0]}
    return shown(signals, told), fell | tipped(up_of(signals["quat"])).any(axis=1)


def shown(signals: Mapping[str, Array], told: str) -> dict[str, Array]:
    """The signals that are compared; what drives were told is under one name for all kinds of drives."""
    return {s: signals[s] for s in ("q", "dq", "quat", "gyro") if s in signals} | {"action": signals[f"{told}_cmd"]}


def motion_of(twin: Twin, log: Log) -> Motion:
    """What a log shows of a robot that walks, and the blocks of its samples."""
    told = common_signal(twin)
    for signal in ("q", "quat", f"{told}_cmd"):
        if signal not in log:
            raise BadInput(f"{log.name}: a fit to walking needs the signal {signal}, and the log has {', '.join(log.signals)}")
    begin, end = (edge(log["q"].time[[0, -1]]) for edge in (np.min, np.max))
    time = np.arange(begin + SETTLES, end, twin.control_dt)
    joints = {s: [log[s].columns.index(j) for j in twin.joints] for s in ("q", "dq", f"{told}_cmd") if s in log}
    signals = {s: log.at(s, time)[:, columns] for s, columns in joints.items()}
    signals |= {s: log.at(s, time) for s in ("quat", "gyro") if s in log}
    whole = np.all([np.isfinite(v).all(axis=1) for v in signals.values()], axis=0)
    signals, time = {s: v[whole] for s, v in signals.items()}, time[whole]
    if tipped(up_of(signals["quat"])).any():
        raise BadInput(f"{log.name}: the robot fell; cut the log before that (LOG@0:12 is a stretch in seconds)")
    if len(time) * twin.control_dt < 4 * BLOCK:
        raise BadInput(f"{log.name}: lasts {end - begin:.1f} s, and at least {4 * BLOCK + SETTLES:g} s of walking are needed")
    return shown(signals, told), blocks_at(time - time[0])


def half_of(motion: Motion, half: int) -> Motion:
    """The first (0) or the second (1) half of a motion's blocks."""
    signals, block = motion
    rows = first_half(np.bincount(block) > 0)[block] == (half == 0)
    return {s: v[rows] for s, v in signals.items()}, block[rows]
