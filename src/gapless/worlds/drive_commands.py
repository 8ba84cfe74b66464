"""What each drive of a twin was told according to a log: target, feed-forward and gains, by joint and time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from gapless.arrays import Array
from gapless.delay import rows_in_force
from gapless.errors import BadInput
from gapless.logs import Log
from gapless.robots import Drive, every_drive, is_dc_motor
from gapless.twin import Twin

SOFTEST = 1e-6  # of the nominal gain: a drive that is switched on has no less, so that 0 means off and torque acts at kp = 0


@dataclass(frozen=True)
class DriveCommands:
    """Messages to the drives, each in force until the next. Shape of each array but `time`: (messages, joints).

    A position servo gives the torque kp (target - q) + kd (velocity - dq) + torque, with the gains below times its own.
    """

    time: Array
    """When they were sent [s]. Shape: (messages,)."""
    target: Array
    """A position [rad] for position servos, a velocity [rad/s] for velocity servos, a torque [N m] for torque drives."""
    velocity: Array
    """Feed-forward to position servos [rad/s]."""
    torque: Array
    """Feed-forward to position servos [N m]."""
    kp: Array
    """Factor on the gain with which the target acts: the log's over the twin's nominal one, 0 while the drive is off."""
    kd: Array
    """The same of the damping gain."""

    def at(self, times: Array) -> DriveCommands:
        """What is in force at some times (k,) [s]."""
        rows = rows_in_force(self.time, times)
        return DriveCommands(times, *(v[rows] for v in (self.target, self.velocity, self.torque, self.kp, self.kd)))


def drive_commands(twin: Twin, log: Log) -> DriveCommands:
    """Read what the drives of a twin were told from a log.

    Gains in a log (signals kp and kd by joint, or constants `meta["kp"]`, `meta["kd"]`, by joint or for all) take the place of
    the twin's nominal ones; a parameter `gains.kp` then says by how much the logged gain is wrong. A drive that is not
    `enabled` gives no torque.
    """
    rows = [_of_drive(twin, log, d) for d in twin.drives]
    clocks = [clock for row in rows for clock, _ in row if clock is not None] or [log["q"].time]
    same = all(t is clocks[0] or np.array_equal(t, clocks[0]) for t in clocks)
    time = clocks[0] if same else np.unique(np.concatenate(clocks))
    if not len(time) or time[-1] < log["q"].time[0] or time[0] > log["q"].time[-1]:
        raise BadInput(f"{log.name}: commands and positions were not logged at the same time; are their clocks the same?")
    if np.any(np.diff(time) < 0):
        raise BadInput(f"{log.name}: the time of commands runs backwards; see `gapless inspect`")
    held = np.array([[_held(clock, values, time) for clock, values in row] for row in rows]).reshape(len(rows), -1, len(time))
    target, velocity, torque, kp, kd, enabled = held.transpose(1, 2, 0) if rows else np.zeros((6, len(time), 0))
    for values, what in ((target, "command"), (kp, "gain"), (kd, "gain")):
        if not np.isfinite(values).all():
            first = time[int(np.argwhere(~np.isfinite(values))[0, 0])]
            raise BadInput(f"{log.name}: a {what} at {first:.3f} s is not a number")
    off = enabled < 0.5
    return DriveCommands(
        time,
        target,
        np.nan_to_num(velocity),
        np.nan_to_num(torque),
        np.where(off, 0.0, np.maximum(kp, SOFTEST)),
        np.where(off, 0.0, kd),
    )


def held_controls(twin: Twin, log: Log, times: Array) -> Array:
    """What actuators are told that are none of the twin's drives: what the log says of their joints, else as at home.

    Shape: (times, controls).
    """
    controls = np.tile(twin.home_command, (len(times), 1))
    for d in (d for d in every_drive(twin.model) if d.name not in twin.joints):
        if (told := _signal(log, f"{d.signal}_cmd", d.name)) is not None and np.isfinite(told[1]).all():
            controls[:, d.control] = _held(*told, times)
        elif d.signal == "q" and (seen := _signal(log, "q", d.name)) is not None and np.isfinite(seen[1]).all():
            controls[:, d.control] = _held(*seen, times)
    return controls


Column = tuple[Array | None, Array]
"""A clock and the values sent then, or None and a constant."""


def _of_drive(twin: Twin, log: Log, d: Drive) -> tuple[Column, ...]:
    """Target, velocity, torque, kp, kd and enabled of a drive."""
    kind, none = d.signal, np.zeros(1)
    if d.passive:
        return (None, none), (None, none), (None, none), (None, none + 1.0), (None, none + 1.0), (None, none + 1.0)
    target = _signal(log, f"{kind}_cmd", d.name)
    if target is None:
        have = ", ".join(s for s in ("q_cmd", "dq_cmd", "tau_cmd") if s in log) or "no commands at all"
        hint = "; state the drive's gains (kp, kd)" if kind == "tau" and "q_cmd" in log else ""
        raise BadInput(f"{log.name}: {d.name} is driven by {kind}_cmd in {twin.name}, but the log has {have}{hint}")
    ahead = [_signal(log, s, d.name) if kind == "q" else None for s in ("dq_cmd", "tau_ff")]
    kp, kd = (_gain(twin, log, quantity, d.name) for quantity in ("kp", "kd"))
    if any(a is not None and np.nan_to_num(a[1]).any() for a in ahead) and f"gains.kp/{d.name}" not in twin.space.names:
        raise BadInput(f"{log.name}: {d.name} was told a velocity or torque too, which needs its gains: add Gains to the twin")
    if kind != "q":
        kp = kd if kind == "dq" else (None, none + 1.0)
    if is_dc_motor(twin.model, d.actuator):
        kd = (None, none + 1.0)  # its damping is the motor's own
    enabled = _signal(log, "enabled", d.name) or (None, none + 1.0)
    return target, *(a or (None, none) for a in ahead), kp, kd, enabled


def _signal(log: Log, signal: str, joint: str) -> Column | None:
    """A joint's column of a signal, or None where it is not logged."""
    return (log[signal].time, log[signal].column(joint)) if signal in log and joint in log[signal].columns else None


def _gain(twin: Twin, log: Log, quantity: str, joint: str) -> Column:
    """A gain that a log states, signal or constant, over what it would state of the twin; 1 where either is not known."""
    nominal = twin.stated_gains.get(joint, (0.0, 0.0))[("kp", "kd").index(quantity)]
    constant = log.meta.get(quantity)
    constant = constant.get(joint) if isinstance(constant, Mapping) else constant
    clock, values = _signal(log, quantity, joint) or (None, constant if isinstance(constant, int | float) else None)
    return (clock, np.ravel(values) / nominal) if values is not None and nominal > 0 else (None, np.ones(1))


def _held(clock: Array | None, values: Array, times: Array) -> Array:
    """Values in force at some times."""
    if clock is None:
        return np.broadcast_to(values, times.shape)
    return values if clock is times else values[rows_in_force(clock, times)]
