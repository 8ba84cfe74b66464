"""Signals as numbers that can be subtracted: units, names of columns, differences of orientations."""

from collections.abc import Sequence

import numpy as np

from gapless.arrays import Array
from gapless.logs import UNITS, Log
from gapless.robots import imu_of
from gapless.rotations import multiply
from gapless.twin import Twin
from gapless.worlds import BASE_SIGNALS

ORDER = ("q", "dq", "tau", "quat", "gyro", "base_pos", "base_vel")
"""What is compared, where the log has it."""
SLIDES = {"rad": "m", "rad/s": "m/s", "N m": "N"}


def difference(signal: str, ours: Array, theirs: Array) -> Array:
    """One minus the other; of quaternions the rotation vector between both [rad]. Shape: (..., columns)."""
    if signal != "quat":
        return np.asarray(ours - theirs)
    ours, theirs = np.broadcast_arrays(ours, theirs)
    off = multiply(theirs * [1, -1, -1, -1], ours)
    return np.asarray(2 * off[..., 1:] * np.sign(off[..., :1]))


def difference_columns(signal: str, columns: tuple[str, ...]) -> tuple[str, ...]:
    """The columns of a signal's differences."""
    return ("x", "y", "z") if signal == "quat" else columns


def units(twin: Twin, signal: str, columns: tuple[str, ...]) -> tuple[str, ...]:
    """The unit of each column of a signal's differences."""
    import mujoco

    if signal == "quat":
        return ("rad",) * len(columns)
    sliding = {d.name for d in twin.drives if twin.model.jnt_type[d.joint] == mujoco.mjtJoint.mjJNT_SLIDE}
    unit = UNITS[signal]
    return tuple(SLIDES.get(unit, unit) if c in sliding else unit for c in columns)


def signals_of(twin: Twin, logs: Sequence[Log]) -> tuple[str, ...]:
    """What can be compared: what all logs have of every joint, and of the base where it is free."""
    free = imu_of(twin.model) is not None
    wanted = {s: () if s in BASE_SIGNALS else twin.joints for s in ORDER if free or s not in BASE_SIGNALS}
    return tuple(s for s, joints in wanted.items() if all(s in log and set(joints) <= set(log[s].columns) for log in logs))
