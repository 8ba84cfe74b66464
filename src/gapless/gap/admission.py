"""Whether logs can be compared with a twin at all; if not, one sentence that says what would be needed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gapless.errors import BadInput
from gapless.gap.signals import difference
from gapless.logs import Log
from gapless.robots import imu_of
from gapless.twin import Twin

TURNS = 0.1  # rad: a base whose orientation changes by more is not held
STILL = 1e-3  # rad: less is noise
COMMANDS = ("q_cmd", "dq_cmd", "tau_cmd")


def admit(twin: Twin, logs: Sequence[Log]) -> None:
    """Raise unless all logs are of one robot, and of this twin's."""
    if not logs:
        raise BadInput("name at least one log")
    for log in logs:
        if "q" not in log:
            raise BadInput(f"{log.name}: no joint positions (signal q), so there is nothing to compare a replay with")
    one_robot(logs)
    free = imu_of(twin.model) is not None
    for log in logs:
        if free and "quat" not in log:
            raise BadInput(
                f"{log.name}: {twin.name} has a free base, but the log has no orientation (signal quat): log the IMU, "
                "or say that the base was held (--in-air)"
            )
        turned = 0.0 if free or "quat" not in log else _turned(log)
        if turned > TURNS:
            raise BadInput(
                f"{log.name}: the base turned by {np.degrees(turned):.0f} deg, but that of {twin.name} is held: "
                "leave out --in-air, or use a model with a free base"
            )


def one_robot(logs: Sequence[Log]) -> None:
    """Raise where logs have different joints, or were commanded in different ways."""
    first = logs[0]
    for log in logs[1:]:
        apart = set(first["q"].columns) ^ set(log["q"].columns)
        if apart:
            joint = min(apart)
            has, lacks = (first, log) if joint in first["q"].columns else (log, first)
            raise BadInput(
                f"{has.name} and {lacks.name} are of different robots, only the first has joint {joint!r}: "
                "measure each robot alone"
            )
        ours, theirs = ([c for c in COMMANDS if c in one] for one in (first, log))
        if ours != theirs:
            raise BadInput(
                f"{first.name} has {_list(ours)} and {log.name} {_list(theirs)}, so they were not commanded alike: "
                "measure them apart"
            )


def long_enough(logs: Sequence[Log], needed: float) -> None:
    """Raise where there is too little to explain a part and to test the explanation on another."""
    have = sum(float(log["q"].time[-1] - log["q"].time[0]) if len(log["q"].time) else 0.0 for log in logs)
    if have < needed:
        raise BadInput(
            f"{have:.1f} s of log is too short to hold a part out: causes are found on one half and tested on the other, "
            f"so record at least {needed:g} s of motion"
        )


def moving(logs: Sequence[Log]) -> None:
    """Raise where no joint moves: all models of a robot that stands still are alike."""
    far = max((float(np.nanmax(np.ptp(log["q"].values, axis=0), initial=0.0)) for log in logs), default=0.0)
    if not far > STILL:
        raise BadInput(
            f"no joint moves in {', '.join(log.name for log in logs[:3])}: record motion (`gapless excite` plans one)"
        )


def _turned(log: Log) -> float:
    """How far the base turned from its mean orientation [rad]."""
    quat = log["quat"].values[np.isfinite(log["quat"].values).all(axis=1)]
    if not len(quat):
        return 0.0
    mean = quat.mean(axis=0)
    return float(np.abs(difference("quat", quat, mean / np.linalg.norm(mean))).max())


def _list(names: Sequence[str]) -> str:
    return " and ".join(names) or "no commands"
