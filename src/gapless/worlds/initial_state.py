"""The state a replay starts from: measured where it was measured, estimated where not, and how well it is known."""

import copy
from collections.abc import Mapping
from dataclasses import replace

import mujoco
import numpy as np

from gapless.arrays import Array, Ints
from gapless.errors import BadInput
from gapless.logs import Log, Signal
from gapless.robots import geom_points, imu_of
from gapless.twin import Twin
from gapless.worlds.sense import Mounting

SPAN, ORDER = 0.06, 2
"""Length [s] and polynomial order of the zero-phase filter that estimates velocity."""
TRUST = 0.25
"""Samples by which a logged velocity may lag behind the positions and still be used."""
CLOSINGS, CLOSED = 20, 1e-6  # Newton steps that close a linkage, and the gap that counts as none [m or rad]
YIELDS = 1e-4  # of the stiffest spring: how stiff a hinge without one counts where a linkage is closed
DEEPEST = 0.02  # m: by which the softest floor gives way
LOCKED = 1e6  # kg m2: rotor inertia of a joint that does not move


def velocity(log: Log) -> Signal:
    """Joint velocities estimated from positions by a Savitzky-Golay filter, which has no lag."""
    from scipy.signal import savgol_filter

    signal = log["q"]
    rate = log.rate("q")
    if len(signal.time) < 5 or rate <= 0:
        raise BadInput(f"{log.name}: {len(signal.time)} positions are too few to estimate a velocity from")
    grid = signal.time[0] + np.arange(max(5, round((signal.time[-1] - signal.time[0]) * rate) + 1)) / rate
    length = min(max(5, round(SPAN * rate) // 2 * 2 + 1), (len(grid) - 1) // 2 * 2 + 1)
    positions = np.column_stack([_fill(grid, signal.time, c) for c in signal.values.T])
    return Signal("dq", grid, savgol_filter(positions, length, ORDER, deriv=1, delta=1 / rate, axis=0), signal.columns)


def register_lag(log: Log) -> float:
    """How late the logged velocity is against the positions [s]: the shift with which it integrates to them best.

    Velocity registers of servos come through filters: 18 ms on a Feetech STS3215, 20 ms on a Dynamixel XL330 (measured here).
    """
    time = log["q"].time
    some = slice(max(0, len(time) // 2 - 5000), len(time) // 2 + 5000)
    time = time[some]
    period = 1 / max(log.rate("q"), 1e-9)
    shifts = np.arange(-4, max(5, round(0.05 / period) + 1) * 4) * period / 4
    cost = np.zeros(len(shifts))
    for name in set(log["dq"].columns) & set(log["q"].columns):
        moved = np.diff(log["q"].column(name)[some])
        for k, shift in enumerate(shifts):
            v = _fill(time + shift, log["dq"].time, log["dq"].column(name))
            cost[k] += float(np.nansum((moved - np.diff(time) * (v[:-1] + v[1:]) / 2) ** 2))
    best = int(np.argmin(cost))
    if best in (0, len(shifts) - 1):
        return float(shifts[best])
    left, middle, right = cost[best - 1 : best + 2]
    curve = left - 2 * middle + right
    return float(shifts[best] + (period / 8 * (left - right) / curve if curve > 0 else 0.0))


def trusted_velocity(log: Log, joints: tuple[str, ...]) -> Signal:
    """The velocity to start windows from: the logged one, unless it lags behind the positions; of dead columns estimated."""
    logged = "dq" in log and set(joints) <= set(log["dq"].columns)
    if not logged or not (len(log["q"].time) < 20 or abs(register_lag(log)) < TRUST / max(log.rate("q"), 1e-9)):
        return velocity(log)
    speed = log["dq"]
    dead = [j for j in joints if len(log["q"].time) >= 20 and _constant(speed.column(j)) and not _constant(log["q"].column(j))]
    if not dead:
        return speed
    estimate, values = velocity(log), speed.values.copy()
    for joint in dead:
        values[:, speed.columns.index(joint)] = np.interp(speed.time, estimate.time, estimate.column(joint))
    return replace(speed, values=values)


def _constant(values: Array) -> bool:
    """Whether a column never changes, or was never measured."""
    seen = values[np.isfinite(values)]
    return len(seen) == 0 or float(np.ptp(seen)) == 0.0


def joint_columns(signal: Signal, joints: tuple[str, ...], times: Array) -> Array:
    """A signal by joint at times of each joint's own. Shape of times and result: (k, joints)."""
    return np.column_stack([_fill(t, signal.time, signal.column(j)) for t, j in zip(times.T, joints, strict=True)])


def _fill(times: Array, clock: Array, values: Array) -> Array:
    """Values at other times, missing ones (NaN) bridged by their neighbours."""
    known = np.isfinite(values)
    if not known.any():
        return np.full(len(times), np.nan)
    return np.interp(times, clock[known], values[known])


def undriven_state(log: Log, twin: Twin, speed: Signal, times: Array) -> tuple[Ints, Ints, Array, Array] | None:
    """Where joints without a drive are at some times (k,): as logged, else as loops and couplings put them, else at home.

    Returns:
        Their places in qpos and in qvel, and what is there, (k, places) each; None for a robot that has none of this.
    """
    model = copy.copy(twin.model)
    model.opt.jacobian = mujoco.mjtJacobian.mjJAC_DENSE
    tied = [j for j in range(model.njnt) if model.jnt_type[j] != mujoco.mjtJoint.mjJNT_FREE]
    names = {j: model.joint(j).name for j in tied}
    logged = [j for j in tied if names[j] in log["q"].columns and names[j] in speed.columns]
    undriven = [j for j in tied if names[j] not in twin.joints]
    if not undriven or not (model.neq or set(logged) & set(undriven)):
        return None
    q, dq = (joint_columns(s, tuple(names[j] for j in logged), np.tile(times[:, None], len(logged))) for s in (log["q"], speed))
    balls = model.jnt_type == mujoco.mjtJoint.mjJNT_BALL
    places = np.concatenate([model.jnt_qposadr[j] + np.arange(4 if balls[j] else 1) for j in undriven])
    dofs = np.concatenate([model.jnt_dofadr[j] + np.arange(3 if balls[j] else 1) for j in undriven])
    loose = dofs[~np.isin(model.dof_jntid[dofs], logged)]
    data, pose, rate = mujoco.MjData(model), twin.home.copy(), np.zeros(model.nv)
    still, moving = np.zeros((len(times), len(places))), np.zeros((len(times), len(dofs)))
    for row in range(len(times)):
        pose[model.jnt_qposadr[logged]], rate[model.jnt_dofadr[logged]] = np.nan_to_num(q[row]), np.nan_to_num(dq[row])
        _close_loops(model, data, pose, rate, loose)
        still[row], moving[row] = pose[places], rate[dofs]
    return places, dofs, still, moving


def _close_loops(model: mujoco.MjModel, data: mujoco.MjData, pose: Array, rate: Array, loose: Ints) -> None:
    """Move the joints of some degrees of freedom until equalities hold, and give them speeds that keep it so; in place.

    Joints on springs yield least: a linkage of stiff springs and free hinges moves by its hinges.
    """
    stiffness = model.jnt_stiffness[model.dof_jntid[loose]]
    yields = 1 / np.sqrt(YIELDS + stiffness / max(stiffness.max(initial=0.0), 1e-9))
    for _ in range(CLOSINGS):
        data.qpos[:] = pose
        mujoco.mj_fwdPosition(model, data)
        equal, jacobian = data.ne, np.reshape(data.efc_J, (-1, model.nv))[: data.ne]
        if not equal or not len(loose):
            return
        if abs(data.efc_pos[:equal]).max() < CLOSED:
            break
        change = np.zeros(model.nv)
        change[loose] = -yields * np.linalg.lstsq(jacobian[:, loose] * yields, data.efc_pos[:equal], rcond=1e-6)[0]
        mujoco.mj_integratePos(model, pose, change / max(1.0, abs(change).max() / 0.3), 1.0)
    rate[loose] = 0.0
    rate[loose] = -yields * np.linalg.lstsq(jacobian[:, loose] * yields, jacobian @ rate, rcond=1e-6)[0]


def base_state(log: Log, twin: Twin, times: Array, qpos: Array, qvel: Array, path: Mapping[str, Array]) -> None:
    """Fill in a floating base's pose and velocity, in place: logged, or estimated from IMU and legs.

    Not logged: the height at which the floor carries the robot, and the velocity that keeps the feet on the floor where they
    are (leg odometry). qpos: (k, nq), with joints already filled in; qvel: (k, nv); path: of those worlds.
    """
    imu = imu_of(twin.model)
    if imu is None:
        return
    if "quat" not in log:
        raise BadInput(f"{log.name}: {twin.name} has a floating base, so its orientation must be logged (signal quat)")
    place, dof = imu.qpos, imu.dof
    mounting = Mounting.of(path, imu)
    qpos[:, place + 3 : place + 7] = mounting.undo("quat", log.at("quat", times))
    if "gyro" in log:
        qvel[:, dof + 3 : dof + 6] = mounting.undo("gyro", log.at("gyro", times))
    model, data = twin.model, mujoco.MjData(twin.model)
    # worlds that differ in their parameters mostly start from the same measurement
    rows = np.column_stack([times, qpos, qvel])
    _, first, same = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    feet = _feet(model) if not {"base_pos", "base_vel"} <= set(log.signals) else np.zeros(0, dtype=np.int64)
    for row in first:
        if "base_pos" in log:
            qpos[row, place : place + 3] = log.at("base_pos", times[row : row + 1])[0]
        else:
            qpos[row, place : place + 3] = 0.0
            data.qpos[:] = qpos[row]
            mujoco.mj_kinematics(model, data)
            qpos[row, place + 2] = -min(_lowest(model, data, g) for g in feet)
        if "base_vel" in log:
            qvel[row, dof : dof + 3] = log.at("base_vel", times[row : row + 1])[0]
        else:
            qvel[row, dof : dof + 3] = _odometry(model, data, qpos[row], qvel[row], feet, dof)
    if "base_pos" not in log:
        _sink(model, qpos, first, place + 2, dof + 2)
    qpos[:], qvel[:] = qpos[first[same]], qvel[first[same]]


def _sink(model: mujoco.MjModel, qpos: Array, rows: Ints, height: int, dof: int) -> None:
    """Lower robots that just touch the floor until it carries their weight: contacts are soft, and without load they drop.

    Bisection on the vertical acceleration of the robot, its joints made too heavy to move.
    """
    model = copy.copy(model)
    others = np.ones(model.nv, dtype=bool)
    others[dof - 2 : dof + 4] = False
    model.dof_armature[others] = LOCKED
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_ACTUATION)
    data = mujoco.MjData(model)
    for row in rows:
        high = qpos[row, height]
        low = high - DEEPEST
        for _ in range(12):
            data.qpos[:], data.qvel[:] = qpos[row], 0.0
            data.qpos[height] = middle = (low + high) / 2
            mujoco.mj_forward(model, data)
            low, high = (middle, high) if data.qacc[dof] > 0 else (low, middle)
        qpos[row, height] = (low + high) / 2


def _odometry(model: mujoco.MjModel, data: mujoco.MjData, qpos: Array, qvel: Array, feet: Ints, dof: int) -> Array:
    """Base velocity that leaves the feet on the floor at rest."""
    data.qpos[:], data.qvel[:] = qpos, qvel
    data.qvel[dof : dof + 3] = 0.0
    mujoco.mj_kinematics(model, data)
    mujoco.mj_comPos(model, data)
    heights = np.array([_lowest(model, data, g) for g in feet])
    moving = []
    for g in feet[heights < heights.min() + 0.01]:
        jacobian = np.zeros((3, model.nv))
        mujoco.mj_jac(model, data, jacobian, None, data.geom_xpos[g], int(model.geom_bodyid[g]))
        moving.append(jacobian @ data.qvel)
    return -np.mean(moving, axis=0)


def _feet(model: mujoco.MjModel) -> Ints:
    """Geoms of moving bodies that can touch anything."""
    solid = (model.geom_contype | model.geom_conaffinity) != 0
    feet = np.flatnonzero(solid & (model.body_weldid[model.geom_bodyid] != 0))
    if not len(feet):
        raise BadInput("no part of the robot can touch the floor, so its height cannot be estimated: log base_pos")
    return feet


def _lowest(model: mujoco.MjModel, data: mujoco.MjData, geom: int) -> float:
    """Height of the lowest point of a geom, or of the box around it [m]."""
    points, body = geom_points(model, geom), model.geom_bodyid[geom]
    return float(data.xpos[body, 2] + (points[:, :3] @ data.xmat[body, 6:] - points[:, 3]).min())
