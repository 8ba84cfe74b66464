"""Films: a robot and its twins moving, as plain data that a page draws by itself."""

from collections.abc import Mapping

import mujoco
import numpy as np

from gapless.arrays import Array
from gapless.report import Film
from gapless.robots import base_joint, ground, imu_of, shapes
from gapless.rotations import multiply
from gapless.twin import Twin

RATE, MOST_FRAMES = 25.0, 300  # pictures a second, and in all: what an eye needs and a mail takes


def film(twin: Twin, time: Array, motions: Mapping[str, Array], base: Mapping[str, Array] | None = None) -> Film | None:
    """The first seconds of motions; None where there is nothing to show.

    Args:
        twin: whose shapes are drawn.
        time: of the samples [s], rising.
        motions: what to call each robot, to positions by the twin's joints. Shape of each: (samples, joints).
        base: positions and quaternions of the floating base by the same names, (samples, 7) each; at home unless given.
    """
    made, model = shapes(twin.model), twin.model
    if not made or len(time) < 2:
        return None
    wanted = np.arange(time[0], time[-1], 1 / RATE)[:MOST_FRAMES]
    rows = np.unique(np.searchsorted(time, wanted).clip(0, len(time) - 1))
    rows = rows[np.all([np.isfinite(q[rows]).all(axis=1) for q in motions.values()], axis=0)]
    poses, data = {}, mujoco.MjData(model)
    free = base_joint(model)
    for label, q in motions.items():
        every = np.empty((len(rows), model.nbody, 7))
        for frame, row in enumerate(rows):
            data.qpos[:] = twin.home
            data.qpos[[d.qpos for d in twin.drives]] = q[row]
            if base and free is not None:
                first = int(model.jnt_qposadr[free])
                data.qpos[first : first + 7] = base[label][row]
            mujoco.mj_kinematics(model, data)
            every[frame] = np.hstack([data.xpos, data.xquat])
        poses[label] = every
    low = min(float(p[:, 1:, 2].min()) for p in poses.values()) if len(rows) else 0.0
    return Film(made, time[rows], poses, floor if (floor := ground(model)) is not None else low) if len(rows) else None


def base_poses(twin: Twin, signals: Mapping[str, Array]) -> Array | None:
    """Where a floating base was, by its IMU, and at home where its place was not measured; None without one.

    signals: of a replay, (..., columns). Shape: (..., 7).
    """
    imu = imu_of(twin.model)
    if imu is None or "quat" not in signals:
        return None
    quat = signals["quat"]
    place = np.broadcast_to(signals.get("base_pos", twin.home[imu.qpos : imu.qpos + 3]), (*quat.shape[:-1], 3))
    mounted = np.broadcast_to(imu.quat * [1, -1, -1, -1], quat.shape)
    return np.concatenate([place, multiply(quat, mounted)], axis=-1)  # the base's own, not the IMU's
