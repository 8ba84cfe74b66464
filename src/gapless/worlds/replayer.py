"""Replay: a log driven through worlds, in windows that start from the measured state or free-running from the first sample.

    result = replay(Twin.load("arm.xml"), read("motion.mcap"), values, window=0.5)
    result.rmse("q")                              # (vectors of parameters, joints)

Commands are held, delayed and limited by the same rules as in `Worlds`, on the log's own clock; gains are those of the log.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import mujoco
import numpy as np
from numpy.typing import ArrayLike

from gapless.arrays import Array, Bools, Ints
from gapless.delay import in_steps
from gapless.errors import BadInput
from gapless.logs import Log
from gapless.robots import imu_of, is_dc_motor
from gapless.rotations import multiply
from gapless.twin import KD, KP, Fields, Point, Space, Twin
from gapless.worlds.command_path import CommandPath, Stream
from gapless.worlds.drive_commands import drive_commands, held_controls
from gapless.worlds.engine import BatchEngine, MakeEngine
from gapless.worlds.initial_state import base_state, joint_columns, trusted_velocity, undriven_state
from gapless.worlds.rollout import Failure, Sampler
from gapless.worlds.sense import Mounting, columns_of
from gapless.worlds.worlds import Worlds

MOST_CHANGES = 2000  # of gains in a log: each stops the stepping loop
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
    failed: Bools
    """Replays whose physics broke; they are NaN throughout. Shape: (vectors, windows)."""
    broke: str = ""
    """What broke first, and when; empty where nothing did."""

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
        engine: MakeEngine = BatchEngine,
    ):
        """Line a log up with a twin.

        Args:
            twin: the model and its mechanisms.
            log: what was commanded and measured; joints by the twin's names.
            window: length of the windows [s], each started from the measured state; None runs free from the first sample.
            threads: 0 for one per core.
            end: how much of the log to use [s]; all of it unless given.
            starts: when windows start, on the log's clock [s]; end to end unless given.
            engine: what steps the worlds.
        """
        self._engine = engine
        self.joints = _joints(twin, log)
        log = _once(log)
        self.twin, self.log = twin, log
        self._threads = threads
        self._worlds: Worlds | None = None
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
        self.commands = drive_commands(twin, log)
        self.velocity = trusted_velocity(log, self.joints)
        """What windows start from: as logged, or estimated from positions where that lags."""
        self._undriven = undriven_state(log, twin, self.velocity, self.starts)
        self._line_up()

    def _samples(self, clock: Array, length: float) -> None:
        """The sample times of each window, and what was measured then."""
        log = self.log
        slack = 1e-6 * self._step
        rows = [np.flatnonzero((clock >= s - slack) & (clock <= s + length + slack)) for s in self.starts]
        most = max(len(r) for r in rows)
        self.time = np.full((len(rows), most), np.nan)
        for w, r in enumerate(rows):
            self.time[w, : len(r)] = clock[r] - self.starts[w]
        self.columns: dict[str, tuple[str, ...]] = {}
        self.measured: dict[str, Array] = {}
        for signal in ("q", "dq", "tau", *(BASE if self.twin.floating else ())):
            names = self.joints if signal not in BASE else log[signal].columns if signal in log else ()
            if signal in log and set(names) <= set(log[signal].columns):
                self.columns[signal], self.measured[signal] = names, self._logged(signal, names)
        self.command = self._logged("q_cmd", self.joints)

    def _logged(self, signal: str, names: tuple[str, ...]) -> Array:
        """Columns of a signal at the sample times, NaN where it has no such column. Shape: (windows, samples, columns)."""
        out = np.full((*self.time.shape, len(names)), np.nan)
        columns = self.log[signal].columns if signal in self.log else ()
        known = [i for i, name in enumerate(names) if name in columns]
        if known:
            seen = np.isfinite(self.time)
            times = (self.time + self.starts[:, None])[seen]
            rows = np.full((len(times), len(names)), np.nan)
            rows[:, known] = self.log.at(signal, times)[:, [columns.index(names[i]) for i in known]]
            out[seen] = rows
        return out

    def __call__(self, values: ArrayLike, space: Space | None = None, shift: Array | None = None) -> Replay:
        """Replay for vectors of parameters (k, parameters) over a space of the twin's (its own unless given).

        shift: how far off windows start from the measured state, in position and in velocity, (k, windows, 2, nv).
        """
        twin = self.twin
        full = twin.expand(values, space)
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
            self._broke(worlds.failures, window),
        )

    def _broke(self, failures: Sequence[Failure], window: Ints) -> str:
        """The first of some failures in words."""
        if not failures:
            return ""
        first = min(failures, key=lambda f: f.time)
        since = self.starts[window[first.world]] - self.log["q"].time[0]
        return f"{first.reason} {first.time:.3f} s after the start from the state measured at {since:.3f} s"

    def controls(self, late: float = 0.0) -> Array:
        """What the actuators receive if commands act `late` seconds after they were sent. Shape: (windows, steps, controls)."""
        window = np.arange(len(self.starts))
        path = {name: np.repeat(values[None], len(window), axis=0) for name, values in self.twin.path.items()}
        path["path.action"] += late
        stream = self._stream(np.tile(self.twin.space.nominal, (len(window), 1)), window)
        return CommandPath(self.twin, 1, {}).play(stream, path, 0, self.steps)

    def _stream(self, full: Array, window: Ints) -> Stream:
        """The commands of worlds with some parameters in their windows."""
        names, ahead = self.twin.space.names, self._ahead
        gains = np.zeros((len(full), *ahead.shape[::2]))
        for d in self._drives if ahead.size else ():
            if ahead[:, :, d.control].any():
                kp, kd = (full[:, names.index(f"gains.{quantity}/{d.name}")] for quantity in ("kp", "kd"))
                gains[:, :, d.control] = np.column_stack([kd / kp, 1 / kp])
        return Stream(self._sent, self._targets, window, ahead, gains)

    def _line_up(self) -> None:
        """Put the commands on the clock of each window, and find the steps at which gains change."""
        messages, nu = self.commands, self.twin.model.nu
        controls = [d.control for d in self._drives]
        self._sent = in_steps(messages.time[None, :] - self.starts[:, None], self._step)
        self._targets, self._ahead = held_controls(self.twin, self.log, messages.time), np.zeros((2, 0, nu))
        self._targets[:, controls] = messages.target
        if messages.velocity.any() or messages.torque.any():
            # velocity and torque fed forward to a servo act as a shift of its position target
            stiff = np.where(messages.kp > 0, messages.kp, np.inf)
            self._ahead = np.zeros((2, len(messages.time), nu))
            self._ahead[:, :, controls] = messages.velocity * messages.kd / stiff, messages.torque / stiff
        changed = messages.time[1:][(np.diff(np.hstack([messages.kp, messages.kd]), axis=0) != 0).any(axis=1)]
        if len(changed) > MOST_CHANGES:
            raise BadInput(f"{self.log.name}: gains change {len(changed)} times, and at most {MOST_CHANGES} can be replayed")
        steps = np.rint((changed - self.starts[:, None]) / self._step).astype(int)
        inside = np.unique(steps[(steps > 0) & (steps < self.steps)])
        self._changes = {int(step): np.flatnonzero((steps == step).any(axis=1)) for step in inside}

    def _fresh(self, n: int) -> Worlds:
        if self._worlds is None or self._worlds.n != n:
            nominal = Point(self.twin.space, self.twin.space.nominal)
            self._worlds = Worlds(self.twin, n, nominal, threads=self._threads, signals=("q",), engine=self._engine)
        return self._worlds

    def _write(self, worlds: Worlds, full: Array, window: Ints, step: int, ids: Ints) -> None:
        """Write parameters with the gains in force at a step; drives that are switched off give no torque."""
        messages = self.commands.at(self.starts[window] + (step + 0.5) * self._step)

        def edit(fields: Fields) -> None:
            gain, bias = fields["actuator_gainprm"], fields["actuator_biasprm"]
            for j, d in enumerate(self._drives):
                kp, kd = messages.kp[:, j], messages.kd[:, j]
                if is_dc_motor(self.twin.model, d.actuator):
                    gain[:, d.actuator, KP] *= kp
                    gain[:, d.actuator, KD] *= kd
                else:
                    gain[:, d.actuator, 0] *= kp
                    bias[:, d.actuator, :3] *= np.column_stack([kp > 0, kp, kd])

        same = (messages.kp == 1).all() and (messages.kd == 1).all()
        worlds.write(full, ids, None if same else edit)

    def _start(self, worlds: Worlds, window: Ints) -> None:
        """Put every world into the state that was measured at its window's start."""
        twin, log = self.twin, self.log
        worlds.reset(redraw=False)
        age = worlds.age
        times = self.starts[window][:, None] + age
        q = joint_columns(log["q"], self.joints, times) - worlds.path["path.offset_q"]
        dq = joint_columns(self.velocity, self.joints, times)
        qpos, qvel = worlds.qpos, worlds.qvel
        if self._undriven is not None:
            places, dofs, still, moving = self._undriven
            qpos[:, places], qvel[:, dofs] = still[window], moving[window]
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

    def _run(self, worlds: Worlds, full: Array, window: Ints) -> tuple[dict[str, Array], Bools]:
        """Step all worlds through their windows and read them at the log's sample times."""
        samplers = self._samplers(worlds, window)

        def change(step: int) -> None:
            ids = np.flatnonzero(np.isin(window, self._changes[step]))
            self._write(worlds, full[ids], window[ids], step, ids)

        changes = {step: partial(change, step) for step in self._changes}
        fields = sorted({s.field for s in samplers.values()})
        for chunk in worlds.play(self._stream(full, window), self.steps, fields, changes):
            for sampler in samplers.values():
                sampler.take(chunk)
        out = {signal: sampler.values for signal, sampler in samplers.items()}
        out["q"] += worlds.path["path.offset_q"][:, None]
        imu = imu_of(self.twin.model)
        if imu is not None:
            for signal in {"quat", "gyro"} & set(out):
                out[signal] = Mounting.of(worlds.path, imu).read(signal, out[signal])
            if "quat" in out:
                out["quat"] /= np.linalg.norm(out["quat"], axis=-1, keepdims=True)
        for values in out.values():
            values[worlds.failed] = np.nan
        return out, worlds.failed

    def _samplers(self, worlds: Worlds, window: Ints) -> dict[str, Sampler]:
        """What reads each signal from the engine's state, late as it is."""
        places, out = columns_of(self.twin.model), {}
        for signal, names in self.columns.items():
            age = np.repeat(worlds.age[:, :1], len(names), axis=1) if signal in BASE else worlds.age
            out[signal] = Sampler(*places[signal], age, self.time, window, self._step)
        return out


def _shift(worlds: Worlds, shift: Array) -> None:
    """Move worlds off the state they are in. shift: positions and velocities in the tangent space, (n, 2, nv)."""
    model, qpos = worlds.twin.model, worlds.qpos.copy()
    for i in np.flatnonzero(shift[:, 0].any(axis=1)):
        mujoco.mj_integratePos(model, qpos[i], shift[i, 0], 1.0)
    worlds.qpos[:] = qpos
    worlds.qvel[:] = worlds.qvel + shift[:, 1]


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


def _once(log: Log) -> Log:
    """The log without samples of q that repeat the time of the one before, as recorders write them now and then."""
    q = log["q"]
    new = np.diff(q.time, prepend=-np.inf) != 0
    if new.all():
        return log
    host = None if q.host_time is None else q.host_time[new]
    once = replace(q, time=q.time[new], values=q.values[new], host_time=host)
    return replace(log, signals={**log.signals, "q": once})


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
