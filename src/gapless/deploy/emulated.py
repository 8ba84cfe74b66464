"""The robot's own side of a live stand-in: physics with secrets, MIT drives, a watchdog with its fallback, and an auditor.

Whatever carries commands to it (memory, UDP, CAN, DDS) calls `take` with what arrived and `step` once a period; nothing here
knows a policy or a safety layer, so that what it counts is independent of both.
"""

import dataclasses
import math
from collections.abc import Mapping

import mujoco
import numpy as np

from gapless.arrays import Array
from gapless.deploy.drive import AUDITED, audit, no_counts, torques
from gapless.deploy.limits import Limits, limits_of
from gapless.errors import BadInput, PhysicsError
from gapless.robots import MIT, base_joint, imu_of, is_dc_motor
from gapless.twin import callback, network_drives
from gapless.worlds import Sense, StandInSpec, hidden_standin

PERIOD = 0.001
"""s between two states that it sends, as a drive bus of 1 kHz has it."""
WATCHDOG = 0.03
"""s without a command after which the robot damps its joints by itself."""
IDLE, DRIVEN, FALLBACK, STOPPED = "idle", "driven", "fallback", "stopped"
MODES = (IDLE, DRIVEN, FALLBACK, STOPPED)
ANSWERED = 4
"""Periods ago that a command answers a state, at most: there and back, to compute, and its own delay."""
AFTER = 20
"""Periods after a touch in which a joint may still swing from it."""
FULL, EMPTY = 29.4, 21.0
"""V of the battery, full and empty."""
ENERGY = 8.0e5
"""J in the battery: 222 W h, as a Go2 has."""


class Emulated:
    """A robot that is told MIT commands and reports what it measures; time passes when it is stepped."""

    def __init__(self, spec: StandInSpec, period: float = PERIOD, watchdog: float = WATCHDOG):
        """Build it.

        Args:
            spec: of the stand-in; its `control_dt` is replaced by the period.
            period: between two states and commands [s].
            watchdog: silence after which it falls back [s].
        """
        step = min(spec.timestep or period, period)
        spec = dataclasses.replace(spec, control_dt=period, timestep=period / math.ceil(period / step - 1e-9))
        twin, values, _ = hidden_standin(spec)
        unlike = any(is_dc_motor(twin.model, d.actuator) for d in twin.drives) or network_drives(twin.model)
        if unlike or twin.force(values) is not None:
            raise BadInput(f"{twin.name}: drives with a DC motor, a network or a learned force cannot be emulated live")
        self.twin, self.joints, self.period, self.watchdog = twin, twin.joints, period, watchdog
        callback.install_for(twin.model)
        self._as_torque_drives(twin.compile(values), values)
        fields = twin.fields(values)
        self._path = {k: fields.get(k, np.repeat(v[None], 1, axis=0)) for k, v in twin.path.items()}
        signals = ("q", "dq", "tau", "quat", "gyro") if imu_of(twin.model) is not None else ("q", "dq", "tau")
        self._sense = Sense(twin, 1, signals, {p.quantity: p.high for p in twin.space.parameters})
        self._rng, self._chance = np.random.default_rng([spec.seed, 1]).spawn(2)
        self._latest = float(np.max(self._path["path.action"]))
        n = len(self.joints)
        self._asked, self._torque, self._now, self._before = np.zeros(n), np.zeros(n), np.zeros((5, n)), np.zeros((5, n))
        self._q, self._dq, self._earlier, self._spare = (
            np.zeros((ANSWERED, n)),
            np.zeros((ANSWERED, n)),
            np.zeros(n),
            np.zeros(n),
        )
        depth = math.ceil((self._latest + float(np.max(self._path["path.jitter"]))) / period) + 2
        self._queue, self._due, self._heard, self._taken = np.zeros((depth, 5, n)), np.full(depth, np.inf), np.zeros(depth), 0
        self._damping = np.zeros((5, n))
        self.limits: Limits = limits_of(twin)
        ends = np.array([(d.low, d.high) for d in twin.drives]).T
        own = self.limits
        self._bounds = np.stack([own.low, own.high, own.velocity, own.torque, own.power, own.rate, *ends])
        self._damping[3] = np.minimum(self.limits.kd, 0.05 * self.limits.torque)
        self.reset()

    def _as_torque_drives(self, model: mujoco.MjModel, values: Array) -> None:
        """Make plain torque drives of the model's servos: the firmware closes the loop, with gains as far off as theirs."""
        as_given = self.twin.model
        ids = [d.actuator for d in self.twin.drives]
        self._ratio = np.ones((2, len(ids)))
        for row, column in enumerate((1, 2)):
            told, real = as_given.actuator_biasprm[ids, column], model.actuator_biasprm[ids, column]
            self._ratio[row] = np.divide(real, told, out=np.ones(len(ids)), where=told != 0)
        self._most = np.array(
            [np.abs(model.actuator_forcerange[a]).max() if model.actuator_forcelimited[a] else np.inf for a in ids]
        )
        model.actuator_gainprm[ids, :3] = (1.0, 0.0, 0.0)
        model.actuator_biasprm[ids, :3] = 0.0
        model.actuator_ctrllimited[:] = 0
        self.model, self.data = model, mujoco.MjData(model)
        self._control = np.array([d.control for d in self.twin.drives])
        self._qpos = np.array([d.qpos for d in self.twin.drives])
        self._dof = np.array([d.dof for d in self.twin.drives])

    def reset(self) -> None:
        """Put it back into its home pose, idle, with its counts at nothing."""
        mujoco.mj_resetData(self.model, self.data)
        self.data.qpos[:] = self.twin.home
        self.mode, self.ticks, self.heard, self.accepted = IDLE, 0, -math.inf, 0
        self._due[:] = np.inf
        self._torque[:] = 0.0
        self._now[:] = self._before[:] = self._damping  # until it is commanded it holds its home pose by itself
        self._now[0], self._now[2], self._now[3] = self.twin.home[self._qpos], self.limits.kp, self.limits.kd
        self._touched = -AFTER
        self._since = -math.inf  # when the command that acts now was heard [s]
        self._q[:], self._dq[:] = self.data.qpos[self._qpos], 0.0
        self.fell_back_after = math.nan
        """s between the last command and the fallback."""
        self.counts, self.most = no_counts()
        self.energy, self.heat = 0.0, np.full(len(self.joints), 30.0)
        every = np.arange(1)
        self._sense.wire(self._path, every)
        self._sense.reset(every, self.data.qpos[None].copy(), self.data.qvel[None].copy(), self._path)

    @property
    def time(self) -> float:
        """On its own clock [s]."""
        return self.ticks * self.period

    def take(self, command: Array) -> None:
        """Accept a command (5, joints) by rows of MIT; it acts after the robot's own delay."""
        if self.mode in (STOPPED, FALLBACK) or not np.isfinite(command).all() or (command[2:4] < 0).any():
            return
        chance = self._chance.random(2)
        self.heard, self.mode = self.time, DRIVEN
        self.accepted += 1
        if chance[1] < self._path["path.drop"][0]:
            return
        slot = self._taken % len(self._due)
        self._queue[slot], self._due[slot] = command, self.time + self._latest + chance[0] * self._path["path.jitter"][0, 0]
        self._heard[slot] = self.time
        self._taken += 1

    def stop(self) -> None:
        """Cut the torque of every drive until it is reset."""
        self.mode = STOPPED
        self._now[:] = 0.0
        self._due[:] = np.inf

    def step(self) -> None:
        """Let a period pass."""
        due, elapsed = self._due <= self.time + 1e-9, 0.0
        if due.any():
            newest = int(np.argmax(np.where(due, self._due, -np.inf)))
            elapsed, self._since = self._heard[newest] - self._since, self._heard[newest]
            self._before[:], self._now[:] = self._now, self._queue[newest]
            self._due[due] = np.inf
        if self.mode == DRIVEN and self.time - self.heard > self.watchdog:
            self.mode, self.fell_back_after = FALLBACK, self.time - self.heard
            self._now[:] = self._damping
            self._due[:] = np.inf
        record = self._sense.next_period()
        data, driven, zero = self.data, self.mode == DRIVEN, self._path["path.offset_q"][0]
        for k in range(self.twin.substeps):
            q, dq = data.qpos[self._qpos] + zero, data.qvel[self._dof]
            torques(self._now, q, dq, self._ratio, self._most, self._asked, self._torque)
            data.ctrl[self._control] = self._torque
            mujoco.mj_step(self.model, data)
            for field, array in record.items():
                array[0, k] = getattr(data, field)
        limits = self.limits
        q, dq = data.qpos[self._qpos], data.qvel[self._dof]
        then = self.ticks % ANSWERED
        torques(self._now, self._q[then], self._dq[then], self._ratio, self._most, self._earlier, self._spare)
        self._touched = self.ticks if data.ncon else self._touched
        touched = self.ticks - self._touched < AFTER
        audit(
            self._now, self._before, elapsed, q, dq, self._asked, self._earlier, self._bounds, driven, touched,
            self.counts, self.most,
        )  # fmt: skip
        self._q[then], self._dq[then] = q, dq
        self.energy += float(np.abs(self._torque * data.qvel[self._dof]).sum()) * self.period
        self.heat += self.period * (0.05 * (self._torque / limits.torque) ** 2 * 60.0 - 0.01 * (self.heat - 30.0))
        self.ticks += 1
        self._sense.update(self._path, self._rng)
        if not np.isfinite(data.qpos).all():
            self.stop()
            raise PhysicsError(f"the stand-in's physics broke after {self.time:.2f} s: change it less or lower its timestep")

    def readings(self) -> dict[str, Array]:
        """What it measures now, by signal."""
        out = {"time": np.float64(self.time)} | {s: v[0] for s, v in self._sense.readings.items()}
        left = max(0.0, 1.0 - self.energy / ENERGY)
        return out | {"temperature": self.heat.copy(), "battery": np.float64(EMPTY + (FULL - EMPTY) * left)}

    def push(self, velocity: Array) -> None:
        """Kick the floating base [m/s]."""
        base = base_joint(self.model)
        if base is None:
            raise BadInput(f"{self.twin.name} has a fixed base, which a push does not move")
        first = int(self.model.jnt_dofadr[base])
        self.data.qvel[first : first + 3] += velocity

    def audit_by(self, limits: Limits) -> None:
        """Count from now on what exceeds these limits, which are tighter than those of its model."""
        self._bounds[:6] = limits.low, limits.high, limits.velocity, limits.torque, limits.power, limits.rate

    def audited(self) -> dict[str, dict[str, float]]:
        """How often each limit was exceeded, and the largest share of it that was reached."""
        return {name: {"exceeded": int(self.counts[i]), "most": float(self.most[i])} for i, name in enumerate(AUDITED)}


class InProcess:
    """A robot of the protocol in this process: a period passes with each command. For tests and practice at any speed."""

    realtime = False

    def __init__(self, inside: Emulated):
        self.inside, self.joints, self.period = inside, inside.joints, inside.period
        self._command = np.zeros((5, len(self.joints)))

    @property
    def mode(self) -> str:
        return self.inside.mode

    def read(self) -> Mapping[str, Array]:
        return self.inside.readings()

    def write(self, command: Mapping[str, Array]) -> None:
        for row, name in enumerate(MIT):
            self._command[row] = command[name]
        self.inside.take(self._command)
        self.inside.step()

    def wait(self) -> None:
        """Let a period pass without a command."""
        self.inside.step()

    def stop(self) -> None:
        self.inside.stop()
