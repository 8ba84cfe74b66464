"""Replay: a log driven through worlds, in windows that start from the measured state or free-running from the first sample.

    result = replay(Twin.load("arm.xml"), read("motion.mcap"), values, window=0.5)
    result.rmse("q")                              # (vectors of parameters, joints)

Commands are held, delayed and limited by the same rules as in `Worlds`, on the log's own clock; gains are those of the log.
"""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import mujoco.batch
import numpy as np
from numpy.typing import ArrayLike, NDArray

from gapless.arrays import Array
from gapless.errors import BadInput
from gapless.logs import Log
from gapless.robots import imu_of, is_dc_motor
from gapless.rotations import multiply
from gapless.twin import KD, KP, Point, Space, Twin
from gapless.worlds import path as _path
from gapless.worlds.commands import commands
from gapless.worlds.initial_state import base_state, joint_state, trusted_velocity
from gapless.worlds.quiet import quiet
from gapless.worlds.schedule import Schedule
from gapless.worlds.sense import to_imu
from gapless.worlds.worlds import Worlds

STRETCH = 4e6  # numbers: how much of a replay is recorded at a time
BASE = ("base_pos", "quat", "base_vel", "gyro")


@dataclass(frozen=True)
class Replay:
    """What the twin did beside what the robot did, at the log's own sample times."""

    joints: tuple[str, ...]
    columns: dict[str, tuple[str, ...]]
    """Signal to the names of its columns: joints, or axes."""
    starts: Array
    """When each window starts [s]. Shape: (windows,)."""
    time: Array
    """Since the start of the window [s], NaN where a window has fewer samples. Shape: (windows, samples)."""
    measured: dict[str, Array]
    """Shape of each: (windows, samples, columns)."""
    replayed: dict[str, Array]
    """Shape of each: (vectors of parameters, windows, samples, columns)."""
    command: Array
    """The command in force at each sample, by joint. Shape: (windows, samples, joints)."""
    failed: NDArray[np.bool_]
    """Replays whose physics broke; they are NaN from there on. Shape: (vectors, windows)."""

    def error(self, signal: str = "q") -> Array:
        """Replayed minus measured; of a quaternion the rotation vector between both [rad].

        Shape: (vectors, windows, samples, columns).
        """
        ours, theirs = self.replayed[signal], self.measured[signal]
        if signal != "quat":
            return ours - theirs
        off = multiply(np.broadcast_to(theirs * [1, -1, -1, -1], ours.shape), ours)
        return 2 * off[..., 1:] * np.sign(off[..., :1])

    def rmse(self, signal: str = "q") -> Array:
        """Root mean square error over all samples, infinite where physics broke. Shape: (vectors, columns)."""
        error = np.where(np.isnan(self.time)[None, :, :, None], np.nan, self.error(signal))
        out = np.full((len(error), error.shape[-1]), np.inf)
        whole = ~self.failed.any(axis=1)
        out[whole] = np.sqrt(np.nanmean(error[whole] ** 2, axis=(1, 2)))
        return out

    def command_rmse(self) -> Array:
        """The commanded position as prediction. Shape: (joints,)."""
        return np.sqrt(np.nanmean((self.command - self.measured["q"]) ** 2, axis=(0, 1)))


class Replayer:
    """A log made ready to be replayed many times. `replay` is this, used once."""

    def __init__(
        self,
        twin: Twin,
        log: Log,
        window: float | None = None,
        threads: int = 0,
        end: float | None = None,
        starts: ArrayLike | None = None,
    ):
        """Line a log up with a twin.

        Args:
            twin: the model and its mechanisms.
            log: what was commanded and measured; joints by the twin's names.
            window: length of the windows [s], each started from the measured state; None runs free from the first sample.
            threads: 0 for one per core.
            end: how much of the log to use [s]; all of it unless given.
            starts: when windows start, on the log's clock [s]; end to end unless given.
        """
        self.twin, self.log = twin, log
        self._threads = threads
        self._worlds: Worlds | None = None
        self.joints = _joints(twin, log)
        self._drives = twin.drives
        step = self._step = twin.model.opt.timestep
        clock = log["q"].time
        if len(clock) < 2 or np.any(np.diff(clock) <= 0):
            raise BadInput(f"{log.name}: replay needs at least two samples of q with rising time; see `gapless inspect`")
        if end is not None and not end > 0:
            raise BadInput(f"the end of what is used must be a positive number of seconds, not {end:g}")
        last = clock[-1] if end is None else min(clock[-1], clock[0] + end)
        if window is not None and not 2 * step <= window:
            raise BadInput(f"a window of {window:g} s is shorter than two physics steps of {step:g} s")
        if window is not None and starts is not None:
            self.starts, length = np.asarray(starts, float), float(window)
        else:
            self.starts, length = _windows(log, self.joints, last, window)
        self.steps = int(np.ceil(length / step - 1e-6))
        self._samples(clock, length)
        times, self._commands = commands(twin, log)
        self._sent = _path.in_steps(times[None, :] - self.starts[:, None], step)
        self.velocity = trusted_velocity(log, self.joints)
        """The estimate that windows start from, or None where the logged velocity is used."""
        self.schedule = Schedule(log, twin, self.joints, self.starts, self.steps)

    def _samples(self, clock: Array, length: float) -> None:
        """The sample times of each window, and what was measured then."""
        log = self.log
        slack = 1e-6 * self._step
        rows = [np.flatnonzero((clock >= s - slack) & (clock <= s + length + slack)) for s in self.starts]
        most = max(len(r) for r in rows)
        self.time = np.full((len(rows), most), np.nan)
        for w, r in enumerate(rows):
            self.time[w, : len(r)] = clock[r] - self.starts[w]
        when = np.where(np.isnan(self.time), 0.0, self.time) + self.starts[:, None]
        self.columns: dict[str, tuple[str, ...]] = {}
        self.measured: dict[str, Array] = {}
        floating = imu_of(self.twin.model) is not None
        for signal in ("q", "dq", "tau", *(BASE if floating else ())):
            if signal not in log:
                continue
            names = log[signal].columns if signal in BASE else self.joints
            if signal not in BASE and not set(names) <= set(log[signal].columns):
                continue
            cols = [log[signal].columns.index(n) for n in names]
            flat = log.at(signal, when.ravel())[:, cols]
            self.columns[signal], self.measured[signal] = names, flat.reshape(*when.shape, len(names))
            self.measured[signal][np.isnan(self.time)] = np.nan
        self.command = np.full((*when.shape, len(self.joints)), np.nan)
        for j, name in enumerate(self.joints):
            if "q_cmd" in log and name in log["q_cmd"].columns:
                self.command[..., j] = log.at("q_cmd", when.ravel())[:, log["q_cmd"].columns.index(name)].reshape(when.shape)
        self.command[np.isnan(self.time)] = np.nan

    def __call__(self, values: ArrayLike, space: Space | None = None, shift: Array | None = None) -> Replay:
        """Replay for vectors of parameters (k, parameters) over a space of the twin's (its own unless given).

        shift: how far off windows start from the measured state, in position and in velocity, (k, windows, 2, nv).
        """
        twin = self.twin
        full = twin.expand(np.atleast_2d(np.asarray(values, float)), twin.space if space is None else space)
        twin.space.check(full)
        k, w = len(full), len(self.starts)
        vector, window = np.repeat(np.arange(k), w), np.tile(np.arange(w), k)
        worlds = self._fresh(k * w)
        self._write(worlds, full[vector], window, 0, np.arange(k * w))
        self._start(worlds, window)
        if shift is not None:
            _shift(worlds, shift.reshape(k * w, 2, -1))
        out, failed = self._run(worlds, full[vector], window)
        shape = (k, w, self.time.shape[1])
        return Replay(
            self.joints,
            self.columns,
            self.starts,
            self.time,
            self.measured,
            {s: v.reshape(*shape, -1) for s, v in out.items()},
            self.command,
            failed.reshape(k, w),
        )

    def _fresh(self, n: int) -> Worlds:
        if self._worlds is None or self._worlds.n != n:
            self._worlds = Worlds(
                self.twin, n, Point(self.twin.space, self.twin.space.nominal), threads=self._threads, signals=("q",)
            )
        return self._worlds

    def _write(self, worlds: Worlds, full: Array, window: NDArray[np.int64], step: int, ids: NDArray[np.int64]) -> None:
        """Write parameters with the gains in force at a step; drives that are switched off give no torque."""
        at = np.full(len(ids), step)
        fields = self.twin.fields(full)
        factors = self.schedule.factors(window, at)
        if factors is not None:
            for j, d in enumerate(self._drives):
                kp, kd = factors[0][:, j], factors[1][:, j]
                if is_dc_motor(self.twin.model, d.actuator):
                    fields["actuator_gainprm"][:, d.actuator, KP] *= kp
                    continue  # its damping is the motor's own
                fields["actuator_gainprm"][:, d.actuator, 0] *= kp
                fields["actuator_biasprm"][:, d.actuator, 1] *= kp
                fields["actuator_biasprm"][:, d.actuator, 2] *= kd
        off = self.schedule.off(window, at)
        if off is not None:
            for j, d in enumerate(self._drives):
                rows = np.flatnonzero(off[:, j])
                places = [KP, KD] if is_dc_motor(self.twin.model, d.actuator) else [0]
                fields["actuator_gainprm"][rows[:, None], d.actuator, places] = 0.0
                fields["actuator_biasprm"][rows, d.actuator, :3] = 0.0
        worlds.put(fields, ids)

    def _start(self, worlds: Worlds, window: NDArray[np.int64]) -> None:
        """Put every world into the state that was measured at its window's start."""
        twin, log = self.twin, self.log
        worlds.reset(redraw=False)
        age = self._age(worlds)
        q, dq = joint_state(log, self.joints, self.starts[window][:, None] + age, self.velocity)
        q = q - worlds.path["path.offset_q"]
        qpos, qvel = worlds.qpos, worlds.qvel
        for j, d in enumerate(self._drives):
            qpos[:, d.qpos], qvel[:, d.dof] = q[:, j], dq[:, j]
        if imu_of(twin.model) is not None:
            place, speed = qpos.copy(), qvel.copy()
            base_state(log, twin, self.starts[window] + age[:, 0], place, speed, worlds.path)
            qpos[:], qvel[:] = place, speed
        if not (np.isfinite(qpos).all() and np.isfinite(qvel).all()):
            bad = int(window[np.flatnonzero(~np.isfinite(qpos).all(axis=1) | ~np.isfinite(qvel).all(axis=1))[0]])
            raise BadInput(
                f"{log.name}: the state at {self.starts[bad]:.3f} s was not measured (NaN), so no window can start there"
            )

    def _run(self, worlds: Worlds, full: Array, window: NDArray[np.int64]) -> tuple[dict[str, Array], NDArray[np.bool_]]:
        """Step all worlds through their windows and read them at the log's sample times."""
        n, model = worlds.n, self.twin.model
        late, shift, commands = self._command_path(worlds)
        wanted = np.where(np.isnan(self.time), np.nan, _path.in_steps(np.nan_to_num(self.time), self._step))
        reads = self._reads(worlds)
        fields = sorted({r.field for r in reads.values()})
        out = {s: np.full((n, wanted.shape[1], len(r.columns)), np.nan) for s, r in reads.items()}
        done = {s: np.zeros((n, len(r.columns)), dtype=np.int64) for s, r in reads.items()}
        before = {f: worlds.batch.bind(f).copy() if f in ("qpos", "qvel") else np.zeros((n, model.nv)) for f in fields}
        stretch = max(1, int(STRETCH / (n * (model.nq + model.nv + model.nu))))
        first = 0
        while first < self.steps:
            steps = min(stretch, self.steps - first, self.schedule.next_change(first) - first)
            ids = np.flatnonzero(self.schedule.changed(first)[window]) if first else np.arange(0)
            if len(ids):
                self._write(worlds, full[ids], window[ids], first, ids)
            control = np.empty((n, steps, model.nu))
            _path.hold(self._sent, commands, window, late, first, control)
            control -= shift[:, None]
            with quiet():
                try:
                    record = worlds.batch.rollout(steps, control, record=fields)
                except mujoco.batch.SimulationError as error:
                    raise BadInput(f"{self.log.name}: physics failed ({error})") from None
            for signal, r in reads.items():
                _path.sample(
                    before[r.field], record[r.field], r.columns, wanted, window, r.late, first, done[signal], out[signal]
                )
            before = {f: record[f][:, -1] for f in fields}
            first += steps
        failed = worlds.batch.warning[:, :, 1].any(axis=1)
        worlds.batch.warning[:] = 0
        out["q"] += worlds.path["path.offset_q"][:, None]
        imu = imu_of(model)
        if imu is not None:
            for signal in {"quat", "gyro"} & set(out):
                out[signal] = to_imu(signal, out[signal], worlds.path, imu)
            if "quat" in out:
                out["quat"] /= np.linalg.norm(out["quat"], axis=-1, keepdims=True)
        for values in out.values():
            values[failed] = np.nan
        return out, failed

    def _command_path(self, worlds: Worlds) -> tuple[Array, Array, Array]:
        """How late each control is [steps], how far its encoder is off, and the commands as the firmware takes them."""
        column, path = worlds.drive_of, worlds.path
        # jitter delays by half of it on average
        late = _path.in_steps(path["path.action"] + path["path.jitter"] / 2, self._step)[:, column]
        shift = path["path.offset_q"][:, column] * worlds.servo
        return (
            np.ascontiguousarray(late),
            shift,
            _path.firmware(self._commands, path["path.quantum_cmd"][0, column] * worlds.servo, worlds.limits),
        )

    def _reads(self, worlds: Worlds) -> dict[str, _Read]:
        """Where each signal is found in the engine's state, and how old its readings are."""
        age = self._age(worlds)
        qpos, dof = [d.qpos for d in self._drives], [d.dof for d in self._drives]
        places = {"q": ("qpos", qpos), "dq": ("qvel", dof), "tau": ("qfrc_actuator", dof)}
        imu = imu_of(self.twin.model)
        if imu is not None:
            places["base_pos"] = ("qpos", list(range(imu.qpos, imu.qpos + 3)))
            places["quat"] = ("qpos", list(range(imu.qpos + 3, imu.qpos + 7)))
            places["base_vel"] = ("qvel", list(range(imu.dof, imu.dof + 3)))
            places["gyro"] = ("qvel", list(range(imu.dof + 3, imu.dof + 6)))
        out = {}
        for signal, names in self.columns.items():
            late = np.repeat(age[:, :1], len(names), axis=1) if signal in BASE else age
            field, columns = places[signal]
            out[signal] = _Read(
                field, np.array(columns, dtype=np.int64), np.ascontiguousarray(_path.in_steps(late, self._step))
            )
        return out

    def _age(self, worlds: Worlds) -> Array:
        """How old the reading of each joint is when it is logged [s]. Shape: (n, joints)."""
        return np.asarray(worlds.path["path.observation"] + worlds.path["path.skew"][:, None] * np.arange(len(self.joints)))


def _shift(worlds: Worlds, shift: Array) -> None:
    """Move worlds off the state they are in. shift: positions and velocities in the tangent space, (n, 2, nv)."""
    model, qpos = worlds.twin.model, worlds.qpos.copy()
    for i in np.flatnonzero(shift[:, 0].any(axis=1)):
        mujoco.mj_integratePos(model, qpos[i], shift[i, 0], 1.0)
    worlds.qpos[:] = qpos
    worlds.qvel[:] = worlds.qvel + shift[:, 1]


@dataclass(frozen=True)
class _Read:
    """A signal in the engine's state."""

    field: str
    columns: NDArray[np.int64]
    late: Array
    """[steps], shape (n, columns)."""


def replay(
    twin: Twin,
    log: Log,
    values: ArrayLike | None = None,
    window: float | None = None,
    space: Space | None = None,
    end: float | None = None,
) -> Replay:
    """Drive a log through a twin, for vectors of parameters times windows in one batch.

    Args:
        twin: the model and its mechanisms.
        log: what was commanded and measured.
        values: vectors of parameters (k, parameters) over `space`; nominal unless given.
        window: length of the windows [s]; None runs free from the first sample.
        space: the twin's own unless given.
        end: how much of the log to use [s].
    """
    return Replayer(twin, log, window, end=end)(
        twin.space.nominal if values is None else values, None if values is None else space
    )


def _windows(log: Log, joints: tuple[str, ...], last: float, window: float | None) -> tuple[Array, float]:
    """When windows start, and how long they are: end to end within stretches without gaps, each from a whole sample."""
    clock = log["q"].time
    whole = np.isfinite(np.column_stack([log["q"].column(j) for j in joints])).all(axis=1) & (clock <= last)
    if not whole[:-1].any():
        raise BadInput(f"{log.name}: no sample has a position of every joint (NaN), so no window can start")
    if window is None:
        first = clock[np.argmax(whole)]
        return np.array([first]), float(last - first)
    gaps = np.flatnonzero(np.diff(clock) > max(5 * float(np.median(np.diff(clock))), 1e-9))
    starts = []
    for run in np.split(np.arange(len(clock)), gaps + 1):
        place = int(run[0])
        while place <= run[-1]:
            good = run[(run >= place) & whole[run]]
            if not len(good) or clock[good[0]] + window / 2 > min(clock[run[-1]], last):
                break
            starts.append(clock[good[0]])
            place = int(np.searchsorted(clock, clock[good[0]] + window - 1e-9))
    if not starts:
        raise BadInput(f"{log.name}: no stretch without gaps is as long as half a window of {window:g} s")
    return np.array(starts), float(window)


def _joints(twin: Twin, log: Log) -> tuple[str, ...]:
    """The driven joints that the log measured; all of them must be there."""
    if "q" not in log:
        raise BadInput(f"{log.name}: no joint positions (signal q), so there is nothing to compare a replay with")
    if not twin.joints:
        raise BadInput(f"{twin.name} has no drives, so a log cannot be replayed in it; state gains (kp, kd) for its joints")
    missing = [j for j in twin.joints if j not in log["q"].columns]
    if missing:
        import difflib

        near = difflib.get_close_matches(missing[0], log["q"].columns, n=2, cutoff=0.5) or list(log["q"].columns)[:6]
        raise BadInput(
            f"{log.name}: joint {missing[0]!r} of {twin.name} is not in the log (it has {', '.join(near)}); "
            "rename joints with a mapping"
        )
    return twin.joints
