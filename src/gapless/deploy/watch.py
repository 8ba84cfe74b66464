"""The online watch: the twin runs beside the robot, and what leaves the envelope in which the policy was checked is said live.

Each period the twin starts from what the robot measured and runs to the next reading under the same targets. The error is
compared with what twins make of each other: their parameters are drawn anew within tolerance, and the policy walks in them.
"""

from dataclasses import dataclass

import mujoco
import numpy as np

from gapless.arrays import Array
from gapless.policy import Pilot, Policy
from gapless.robots import imu_of
from gapless.rotations import up_of
from gapless.twin import Twin, callback, within_tolerance
from gapless.worlds import Worlds

WORLDS, SECONDS = 16, 6.0
"""Twins that the envelope is from, and how long the policy runs in each [s]."""
WIDER = 2.0
"""Times the worst of these that a robot may be off: an envelope of 16 twins misses rare ones."""
SPAN = 0.5
"""s over which errors are averaged."""
WARN, FALL_BACK = 1.0, 2.0
"""Times the envelope at which a warning is given, and at which the robot falls back once the warning has lasted `LASTING`."""
LASTING = 0.5


@dataclass(frozen=True)
class Envelope:
    """The largest that was seen while the policy ran in twins."""

    prediction: float
    """RMS error of a joint's position after a period, averaged over SPAN [rad]."""
    lean: float
    """Of the base [rad]."""
    turn: float
    """Of the base [rad/s]."""


class Watch:
    """Compares a robot with its twin while it runs."""

    def __init__(self, twin: Twin, envelope: Envelope):
        self.twin, self.envelope = twin, envelope
        self._ahead = Ahead(twin)
        self._decay = float(np.exp(-twin.control_dt / SPAN))
        self._mean, self._since = 0.0, np.nan
        self.level, self.warnings = 0.0, 0
        """How far out the robot is, 1 at the edge of the envelope; and how often it left it."""
        self.error = 0.0
        self.prediction: Array | None = None
        """RMS over SPAN of what the twin made of the last periods [rad]; and what it makes of this one."""

    @property
    def warned(self) -> bool:
        """Whether the robot is outside of the envelope now."""
        return not np.isnan(self._since)

    def see(self, reading: dict[str, Array], target: Array, now: float) -> bool:
        """Look at a reading and at the targets that answer it (joints,); whether the robot has to fall back."""
        if self.prediction is not None:
            error = float(np.mean((reading["q"] - self.prediction) ** 2))
            self._mean = self._decay * self._mean + (1 - self._decay) * error
        self.prediction = self._ahead(reading, target)
        self.error = float(np.sqrt(self._mean))
        levels = [self.error / self.envelope.prediction]
        if "quat" in reading:
            levels += [_lean(reading["quat"]) / self.envelope.lean, float(np.abs(reading["gyro"]).max()) / self.envelope.turn]
        self.level = float(max(levels))
        if self.level < WARN:
            self._since = np.nan
            return False
        if np.isnan(self._since):
            self._since = now
            self.warnings += 1
        return self.level > FALL_BACK and now - self._since > LASTING


class Ahead:
    """The twin one period on: from a reading and targets to the joints' positions at the next reading."""

    def __init__(self, twin: Twin):
        self._twin, self._data = twin, mujoco.MjData(twin.model)
        callback.install_for(twin.model)
        self._qpos, self._dof = (np.array([getattr(d, k) for d in twin.drives]) for k in ("qpos", "dof"))
        self._control = np.array([d.control for d in twin.drives])
        self._imu, self._substeps = imu_of(twin.model), round(twin.control_dt / twin.model.opt.timestep)

    def __call__(self, reading: dict[str, Array], target: Array) -> Array:
        """Positions (joints,)."""
        data, imu = self._data, self._imu
        data.qpos[:], data.qvel[:] = self._twin.home, 0.0
        data.qpos[self._qpos], data.qvel[self._dof] = reading["q"], reading["dq"]
        if imu is not None:
            data.qpos[imu.qpos + 3 : imu.qpos + 7], data.qvel[imu.dof + 3 : imu.dof + 6] = reading["quat"], reading["gyro"]
            self._stand(imu.qpos)
        data.ctrl[self._control] = target
        for _ in range(self._substeps):
            mujoco.mj_step(self._twin.model, data)
        return data.qpos[self._qpos].copy()

    def _stand(self, first: int) -> None:
        """Put the lowest foot on the floor: no sensor says how high the base is."""
        model, data = self._twin.model, self._data
        mujoco.mj_kinematics(model, data)
        feet = [model.geom(name).id for name in self._twin.feet]
        if feet:
            data.qpos[first + 2] -= min(float(data.geom_xpos[g, 2] - model.geom_rbound[g]) for g in feet)


def envelope_of(policy: Policy, twin: Twin, command: Array, rng: np.random.Generator) -> Envelope:
    """Let the policy run in twins drawn within tolerance, and keep how far they leave what the nominal twin predicts."""
    worlds = Worlds(twin, WORLDS, within_tolerance(twin.space), rng, threads=1)
    pilot, ahead = Pilot(policy, twin, tuple(command), WORLDS), Ahead(twin)
    decay, mean = np.exp(-twin.control_dt / SPAN), np.zeros(WORLDS)
    most, lean, turn = 0.0, 0.05, 0.5
    control, columns = np.tile(worlds.home_command, (WORLDS, 1)), [d.control for d in twin.drives]
    readings, predicted = worlds.readings, None
    up = np.ones(WORLDS, bool)
    for _ in range(round(SECONDS / twin.control_dt)):
        targets = pilot.answer(readings)
        if predicted is not None:
            mean = decay * mean + (1 - decay) * ((readings["q"] - predicted) ** 2).mean(axis=1)
        if "quat" in readings:
            up &= up_of(readings["quat"])[:, 2] > 0.5
            lean = max([lean, *(_lean(q) for q in readings["quat"][up])])
            turn = max(turn, float(np.abs(readings["gyro"][up]).max(initial=0.0)))
        most = max(most, float(mean[up].max(initial=0.0)))
        predicted = np.array([ahead({s: v[w] for s, v in readings.items()}, targets[w]) for w in range(WORLDS)])
        control[:, columns] = targets
        readings = worlds.step(control)
    return Envelope(WIDER * float(np.sqrt(most)), WIDER * lean, WIDER * turn)


def _lean(quat: Array) -> float:
    return float(np.arccos(np.clip(up_of(quat)[2], -1.0, 1.0)))
