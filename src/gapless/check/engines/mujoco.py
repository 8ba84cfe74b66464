"""MuJoCo: the reference, with the twin's own model, drives, contacts and time step, as in training."""

import copy

import mujoco
import numpy as np

from gapless.arrays import Array
from gapless.check.engines.engine_world import Base
from gapless.robots import base_joint, drives
from gapless.worlds import quiet


class MujocoWorld:
    """The twin's compiled model."""

    lacks: tuple[str, ...] = ()

    def __init__(self, model: mujoco.MjModel, order: tuple[str, ...]):
        """order: of joints in `reset`."""
        self._model = copy.copy(model)
        self._model.actuator_delay[:] = 0
        self._data, self._drives = mujoco.MjData(self._model), drives(model)
        base = base_joint(model)
        self._qpos, self._dof = (int(model.jnt_qposadr[base]), int(model.jnt_dofadr[base])) if base is not None else (0, 0)
        self._floating = base is not None
        self._places = [int(model.jnt_qposadr[model.joint(name).id]) for name in order]

    def reset(self, q: Array, base: Base) -> None:
        mujoco.mj_resetData(self._model, self._data)
        self._data.qpos[self._places] = q
        if self._floating:
            self._data.qpos[self._qpos : self._qpos + 7] = [*base.pos, *base.quat]
            self._data.qvel[self._dof : self._dof + 6] = [*base.velocity, *base.turn]

    def hold(self, command: Array, steps: int) -> None:
        self._data.ctrl[[d.control for d in self._drives]] = command
        with quiet():
            for _ in range(steps):
                mujoco.mj_step(self._model, self._data)

    def joints(self) -> tuple[Array, Array]:
        data = self._data
        return data.qpos[[d.qpos for d in self._drives]], data.qvel[[d.dof for d in self._drives]]

    def torque(self) -> Array:
        return np.asarray(self._data.qfrc_actuator[[d.dof for d in self._drives]])

    def base(self) -> Base:
        if not self._floating:
            return Base(np.zeros(3), np.array([1.0, 0, 0, 0]), np.zeros(3), np.zeros(3))
        qpos, qvel = self._data.qpos[self._qpos :][:7].copy(), self._data.qvel[self._dof :][:6].copy()
        return Base(qpos[:3], qpos[3:], qvel[:3], qvel[3:])
