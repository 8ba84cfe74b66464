"""What each joint felt along a measured trajectory: its inertia, and every torque but its drive's and friction's.

Gravity, Coriolis forces and the pull of the other joints come from MuJoCo's inverse dynamics at the measured positions, so a
joint can be simulated alone: (inertia + armature) a = drive - friction - load.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import mujoco
import numpy as np

from gapless.arrays import Array, Bools, Ints
from gapless.errors import BadInput
from gapless.logs import Log
from gapless.measure import Split, Stretch, split_logs
from gapless.twin import Twin
from gapless.worlds import VELOCITY_SPAN as SPAN, DriveCommands, drive_commands

NUDGE = 1e-4  # rad
CLOSING = 2  # steps of Newton's method to close chains from where they were a sample before
ORDER = 3  # of the zero-phase filter: an acceleration needs a cubic


@dataclass(frozen=True)
class Trajectory:
    """A stretch of a log on an even grid, as each joint felt it."""

    log: int
    """Number of the log."""
    period: float
    """Of the grid, the log's own [s]."""
    since: Array
    """Since the log's first sample [s]. Shape of this and the next: (samples,)."""
    block: Ints
    """Number of the block that a sample is in."""
    q: Array
    """Measured positions. Shape of this and all below but `valid`: (samples, joints)."""
    dq: Array
    """Velocities, estimated from the positions without lag."""
    sent: DriveCommands
    """What the drives were told, in force at each sample."""
    inertia: Array
    """Of everything the joint moves, rotor left out [kg m2]."""
    load: Array
    """Torque that the drive has to overcome: gravity, coupling [N m]."""
    gravity: Array
    """Gravity's part of the load, for joints that turn [N m]."""
    slope: Array
    """How gravity's part grows with the joint's own angle [N m/rad]: what is simulated need not be where it was measured."""
    valid: Bools
    """Samples to compare with: measured, not too far from a real sample."""

    def within(self, stretch: Stretch) -> Trajectory | None:
        """The part of it that lies in a stretch; None where there is none."""
        rows = (self.block >= stretch.first) & (self.block < stretch.end)
        arrays = {f.name: getattr(self, f.name)[rows] for f in fields(self) if f.name not in ("log", "period", "sent")}
        return replace(self, sent=self.sent.at(self.sent.time[rows]), **arrays) if rows.any() else None


def trajectory_of(twin: Twin, log: Log) -> Trajectory:
    """A whole log as the joints of a twin felt it."""
    split = split_logs([log], twin.joints)
    return trajectories_of(twin, [log], split, split.logs)[0]


def trajectories_of(twin: Twin, logs: Sequence[Log], split: Split, stretches: Sequence[Stretch]) -> list[Trajectory]:
    """Stretches of logs as the joints of a twin felt them."""
    out = []
    for i in sorted({s.log for s in stretches}):
        blocks = split.blocks([s for s in stretches if s.log == i])
        whole = _trajectory(twin, logs[i], i, split, blocks)
        out += [part for s in stretches if s.log == i and (part := whole.within(s)) is not None]
    return out


def _trajectory(twin: Twin, log: Log, number: int, split: Split, blocks: Bools) -> Trajectory:
    """The part of a log that is in some blocks."""
    from scipy.signal import savgol_filter

    for d in twin.drives:
        if d.signal == "dq":
            raise BadInput(f"{d.name} of {twin.name} is commanded in velocity, which cannot be fitted so far")
    clock, rate = log["q"].time, log.rate("q")
    count = int((clock[-1] - clock[0]) * rate + 1e-6) + 1
    if count < 20:
        raise BadInput(f"{log.name}: {count} samples are too few to identify anything from")
    grid = clock[0] + np.arange(count) / rate
    measured = log["q"].of(twin.joints)
    whole = np.isfinite(measured).all(axis=1)
    if whole.sum() < 20:
        raise BadInput(f"{log.name}: fewer than 20 samples have a position of every joint")
    q = np.column_stack([np.interp(grid, clock[whole], c) for c in measured[whole].T])
    near = np.searchsorted(clock[whole], grid).clip(1, whole.sum() - 1)
    distance = np.minimum(np.abs(grid - clock[whole][near]), np.abs(grid - clock[whole][near - 1]))
    length = min(max(7, round(SPAN * rate) // 2 * 2 + 1), (count - 1) // 2 * 2 - 1)
    dq, ddq = (savgol_filter(q, length, ORDER, deriv=k, delta=1 / rate, axis=0) for k in (1, 2))
    block = split.numbers(number, grid - clock[0])
    rows = np.flatnonzero(blocks[block])
    return Trajectory(
        log=number,
        period=1 / rate,
        since=grid[rows] - clock[0],
        block=block[rows],
        q=q[rows],
        dq=dq[rows],
        # a hair after the sample, so that a command with the same time stamp counts as sent
        sent=drive_commands(twin, log).at(grid[rows] + 1e-6 / rate),
        **_felt(twin, q[rows], dq[rows], ddq[rows], rate),
        valid=distance[rows] < 2 / rate,
    )


def _felt(twin: Twin, q: Array, dq: Array, ddq: Array, rate: float) -> dict[str, Array]:
    """Inertia, load, gravity and gravity's slope of every joint; see `Trajectory`. Shape of each: (samples, joints)."""
    model, home = copy.copy(twin.model), twin.home
    dofs, places = [d.dof for d in twin.drives], [d.qpos for d in twin.drives]
    model.dof_damping[dofs] = model.jnt_stiffness[[d.joint for d in twin.drives]] = 0  # friction is the joint's own
    poses, follows = _closed(model, np.tile(home, (len(q), 1)), q, dofs, places)
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    speed = np.einsum("kij,kj->ki", follows, dq)
    acceleration = np.einsum("kij,kj->ki", follows, ddq)
    if len(q) > 1:  # and what bends the ways of joints that others take along
        change = np.gradient(follows, 1 / rate, axis=0)
        acceleration += np.einsum("kij,kj->ki", change, dq)
    data = mujoco.MjData(model)
    inertia, load, gravity, slope = (np.empty(q.shape) for _ in range(4))
    full = np.zeros((model.nv, model.nv))
    for k, way in enumerate(follows):
        data.qpos[:], data.qvel[:], data.qacc[:] = poses[k], speed[k], acceleration[k]
        mujoco.mj_inverse(model, data)
        mujoco.mj_fullM(model, data, full)
        whole = np.einsum("ij,ij->j", way, full @ way)
        inertia[k] = whole - model.dof_armature[dofs]
        load[k] = way.T @ data.qfrc_inverse - whole * ddq[k]
        data.qvel[:] = data.qacc[:] = 0.0
        mujoco.mj_inverse(model, data)
        gravity[k] = way.T @ data.qfrc_inverse
        for j, column in enumerate(way.T):
            mujoco.mj_integratePos(model, data.qpos, column, NUDGE)
            mujoco.mj_inverse(model, data)
            data.qpos[:] = poses[k]
            slope[k, j] = (column @ data.qfrc_inverse - gravity[k, j]) / NUDGE
    gravity[:, [j for j, d in enumerate(twin.drives) if model.jnt_type[d.joint] != mujoco.mjtJoint.mjJNT_HINGE]] = 0.0
    return {"inertia": inertia, "load": load, "gravity": gravity, "slope": slope}


def _closed(model: mujoco.MjModel, poses: Array, q: Array, dofs: Sequence[int], places: Sequence[int]) -> tuple[Array, Array]:
    """Whole poses with driven joints at q, and how fast every degree of freedom moves with each driven joint.

    In an open chain nothing else moves. Joints in closed chains, and those coupled to others, go where the equality constraints
    put them, with springs bent as little as possible. Shapes: (samples, nq) and (samples, nv, joints).
    """
    poses[:, places] = q
    way = np.zeros((model.nv, len(dofs)))
    way[dofs, np.arange(len(dofs))] = 1.0
    rest = np.setdiff1d(np.arange(model.nv), dofs)
    if not model.eq_active0.any() or not len(rest):
        return poses, np.broadcast_to(way, (len(q), *way.shape))
    model = copy.copy(model)
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONTACT) | int(mujoco.mjtDisableBit.mjDSBL_LIMIT)
    model.opt.jacobian = mujoco.mjtJacobian.mjJAC_DENSE
    data, ways = mujoco.MjData(model), np.tile(way, (len(q), 1, 1))
    soft = 1 / (1.0 + model.jnt_stiffness[model.dof_jntid[rest]])  # 1 N m/rad: next to it, what has no spring is free
    for k in range(len(q)):
        if k:
            moved = np.setdiff1d(np.arange(model.nq), places)
            poses[k, moved] = poses[k - 1, moved]
        for _ in range(CLOSING if k else 10 * CLOSING):
            data.qpos[:] = poses[k]
            mujoco.mj_fwdPosition(model, data)
            jacobian = data.efc_J.reshape(-1, model.nv)
            pull = soft[:, None] * jacobian[:, rest].T
            back = pull @ np.linalg.pinv(jacobian[:, rest] @ pull, rcond=1e-8)
            step = np.zeros(model.nv)
            step[rest] = -back @ data.efc_pos
            mujoco.mj_integratePos(model, poses[k], step, 1.0)
        ways[k, rest] = -back @ jacobian[:, dofs]
    return poses, ways
