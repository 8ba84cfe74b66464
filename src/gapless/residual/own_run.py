"""What each joint of a twin felt along the twin's own replay of a log, at each physics step, so that it can be simulated alone.

The load of a joint is all that its drive, damping and dry friction had to overcome: gravity, the other joints, contact. It is
read from the step that the engine took, so a joint alone repeats the full model exactly as long as nothing is added to it.
Loads from filtered measurements would carry the filter's error, which a network learns.
"""

from __future__ import annotations

import copy
from collections import namedtuple
from collections.abc import Mapping
from dataclasses import dataclass

import mujoco
import numpy as np

from gapless.arrays import Array, Ints
from gapless.logs import Log
from gapless.residual.adjoint import command_velocity
from gapless.robots import Drive
from gapless.twin import Twin, callback, field_of
from gapless.worlds import Replayer, age_of

SLOPE_EVERY = 20  # steps: gravity's slope changes slowly
NUDGE = 1e-4  # rad

Felt = namedtuple("Felt", "x v base stiffness damping command_velocity bias inertia load slope target between")
"""Of one joint at each step: its state in the run; what the command pushes with, and how that changes with angle and velocity;
the command's velocity; gravity and Coriolis torque; inertia with the rotor; load, and how it grows with the angle; what was
measured between this step and the next (NaN: nothing), and at which share of the step. Shape of each: (steps,)."""


class Recorder:
    """An engine that takes plain steps, one world after the other, and keeps what every degree of freedom felt."""

    def __init__(self, model: mujoco.MjModel, n: int, threads: int = 0):
        self.model, self.models = model, [copy.copy(model) for _ in range(n)]
        self._data = [mujoco.MjData(model) for _ in range(n)]
        self._states: dict[str, Array] = {}
        self.kept: list[list[tuple[Array, Array, Array]]] = [[] for _ in range(n)]
        """By world and roll: what `_rolled` gives, and the controls."""

    def state(self, field: str) -> Array:
        if field not in self._states:
            self._states[field] = np.stack([np.array(getattr(d, field)) for d in self._data])
        return self._states[field]

    def field(self, name: str) -> Array:
        return np.stack([field_of(m, name) for m in self.models])

    def put(self, fields: Mapping[str, Array], ids: Ints) -> None:
        for i, world in enumerate(ids):
            for name, values in fields.items():
                field_of(self.models[world], name)[:] = values[i]
            mujoco.mj_setConst(self.models[world], mujoco.MjData(self.models[world]))

    def reset(self, ids: Ints) -> None:
        for world in ids:
            mujoco.mj_resetData(self.models[world], self._data[world])
            self.kept[world] = []
            for name, values in self._states.items():
                values[world] = getattr(self._data[world], name)

    def roll(self, control: Array, record: Mapping[str, Array]) -> dict[int, str]:
        for world, (model, data) in enumerate(zip(self.models, self._data, strict=True)):
            for name, values in self._states.items():
                getattr(data, name)[:] = values[world]
            mine = {name: values[world] for name, values in record.items()}
            self.kept[world].append((*_rolled(model, data, control[world], mine), control[world].copy()))
            for name, values in self._states.items():
                values[world] = getattr(data, name)
        return {}


def _rolled(model: mujoco.MjModel, data: mujoco.MjData, control: Array, record: Mapping[str, Array]) -> tuple[Array, Array]:
    """Step one world; what its degrees of freedom felt, and its pose before each step, (steps, nq).

    Of each degree of freedom: position, velocity, bias, inertia, passive forces, and dry friction.
    Shape: (6, steps, nv).
    """
    diagonal, places = model.M_rowadr + model.M_rownnz - 1, model.jnt_qposadr[model.dof_jntid]
    rubbed = np.flatnonzero(model.dof_frictionloss > 0)
    out, poses = np.zeros((6, len(control), model.nv)), np.empty((len(control), model.nq))
    qpos, qvel, bias, inertia, ctrl = data.qpos, data.qvel, data.qfrc_bias, data.M, data.ctrl
    passive, fields = data.qfrc_passive, [(v, getattr(data, name)) for name, v in record.items()]
    for k in range(len(control)):
        ctrl[:] = control[k]
        out[0, k], out[1, k], poses[k] = qpos[places], qvel, qpos
        mujoco.mj_step(model, data)
        out[2, k], out[3, k], out[4, k] = bias, inertia[diagonal], passive
        if len(rubbed):
            first = data.ne
            out[5, k, rubbed] = data.efc_force[first : first + len(rubbed)]
        for values, now in fields:
            values[k] = now
    return out, poses


@dataclass(frozen=True)
class Run:
    """A log as the joints of a twin would have felt it."""

    starts: Array
    """When each window starts, on the log's clock [s]. Shape: (windows,)."""
    felt: list[list[Felt]]
    """By window and joint."""
    grip: Array
    """Angle of home, and the numbers of dry friction from `coulomb` on. Shape: (joints, 8)."""
    damping: Array
    """Of each joint besides the drive's [N m s/rad]. Shape: (joints,)."""
    limit: Array
    """The least and the most that each drive gives [N m]. Shape: (joints, 2)."""
    gain: Array
    """Torque of each drive for a unit of its command. Shape: (joints,)."""


def own_run(twin: Twin, log: Log, values: Array, window: float | None = None, starts: Array | None = None) -> Run:
    """Replay a log in a twin at values (parameters,), free-running or in windows, and keep what each joint felt."""
    made: list[Recorder] = []

    def engine(model: mujoco.MjModel, n: int, threads: int) -> Recorder:
        made.append(Recorder(model, n))
        return made[-1]

    replayer = Replayer(twin, log, window, starts=starts, engine=engine)
    replayer(values[None])
    fields, recorder = twin.fields(values[None]), made[-1]
    path = {name: fields[name] for name in twin.path}
    age, offset = age_of(path)[0], path["path.offset_q"][0]
    felt = []
    for w, (model, rolls) in enumerate(zip(recorder.models, recorder.kept, strict=True)):
        parts = np.concatenate([part for part, _, _ in rolls], axis=1)
        poses, control = (np.concatenate([roll[k] for roll in rolls]) for k in (1, 2))
        slope, seen = _slopes(model, poses, twin), np.isfinite(replayer.time[w])
        measured, times = replayer.measured["q"][w][seen] - offset, replayer.time[w][seen]
        felt.append(
            [
                _felt(model, d, parts[:, :, d.dof], control[:, d.control], slope[:, j], times - age[j], measured[:, j])
                for j, d in enumerate(twin.drives)
            ]
        )
    model = recorder.models[0]
    damping = model.dof_damping[[d.dof for d in twin.drives]].copy()
    limits = np.array([np.clip(_range(model, d.actuator), -1e9, 1e9) for d in twin.drives])
    gain = model.actuator_gainprm[[d.actuator for d in twin.drives], 0].copy()
    return Run(replayer.starts, felt, _grip(model, twin), damping, limits, gain)


def _felt(model: mujoco.MjModel, d: Drive, parts: Array, control: Array, slope: Array, times: Array, measured: Array) -> Felt:
    """One joint's part of a run. times: of samples since its start [s]; measured: positions then, less the encoder's zero."""
    dt, (x, v, bias, inertia, passive, friction) = model.opt.timestep, parts
    fixed = model.actuator_biasprm[d.actuator, :3] * (model.actuator_biastype[d.actuator] == mujoco.mjtBias.mjBIAS_AFFINE)
    base = model.actuator_gainprm[d.actuator, 0] * control + fixed[0]
    low, high = _range(model, d.actuator)
    asked = base + fixed[1] * x + fixed[2] * v
    # the engine puts damping at the end of the step, except that of a drive at its limit
    implicit = model.dof_damping[d.dof] - fixed[2] * ((asked > low) & (asked < high))
    gained = np.diff(v, append=2 * v[-1] - v[-2] if len(v) > 1 else v[-1]) / dt
    spring = float(model.jnt_stiffness[d.joint])
    # all that the drive had to overcome; other actuators at the joint, such as hysteresis, are a part of it
    load = np.clip(asked, low, high) + passive + spring * (x - model.qpos_spring[d.qpos]) + friction - (inertia + dt * implicit) * gained
    target, between, at = np.full(len(x), np.nan), np.zeros(len(x)), times / dt
    row = np.floor(at + 1e-9).astype(int)
    good = (row >= 0) & (row < len(x)) & np.isfinite(measured)
    target[row[good]], between[row[good]] = measured[good], np.clip(at[good] - row[good], 0.0, 1.0)
    even, speed = np.ones(len(x)), command_velocity(control, dt)
    return Felt(x, v, base, fixed[1] * even, fixed[2] * even, speed, bias, inertia, load, slope + spring, target, between)


def _range(model: mujoco.MjModel, actuator: int) -> tuple[float, float]:
    if not model.actuator_forcelimited[actuator]:
        return -np.inf, np.inf
    return float(model.actuator_forcerange[actuator, 0]), float(model.actuator_forcerange[actuator, 1])


def _grip(model: mujoco.MjModel, twin: Twin) -> Array:
    """See `Run.grip`."""
    out = np.zeros((len(twin.drives), 8))
    for row, d in zip(out, twin.drives, strict=True):
        row[1], row[3] = model.dof_frictionloss[d.dof], 0.1
        if callback.frictional(model) and model.jnt_user[d.joint, -1] == callback.MARKED:
            user = model.jnt_user[d.joint, callback.slot(model) :]
            row[0], row[2:] = user[callback.HOME], user[:6]
    return out


def _slopes(model: mujoco.MjModel, qpos: Array, twin: Twin) -> Array:
    """How gravity's torque on each joint grows with its angle [N m/rad]. Shape: (steps, joints)."""
    data, few = mujoco.MjData(model), np.arange(0, len(qpos), SLOPE_EVERY)
    out, torque = np.empty((len(few), len(twin.drives))), np.empty((2, model.nv))
    for row, k in enumerate(few):
        for j, d in enumerate(twin.drives):
            for side, result in zip((-0.5, 0.5), torque, strict=True):
                data.qpos[:] = qpos[k]
                data.qpos[d.qpos] += side * NUDGE
                mujoco.mj_kinematics(model, data)
                mujoco.mj_comPos(model, data)
                mujoco.mj_rne(model, data, 0, result)
            out[row, j] = (torque[1, d.dof] - torque[0, d.dof]) / NUDGE
    return np.column_stack([np.interp(np.arange(len(qpos)), few, column) for column in out.T])
