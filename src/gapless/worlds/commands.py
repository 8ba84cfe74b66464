"""What every control of a twin was told according to a log, on one clock."""

from __future__ import annotations

import numpy as np

from gapless.arrays import Array
from gapless.errors import BadInput
from gapless.logs import Log
from gapless.robots import Drive, is_position_servo
from gapless.twin import Twin
from gapless.worlds.schedule import logged_gain


def commands(twin: Twin, log: Log) -> tuple[Array, Array]:
    """Times of commands [s], shape (k,), and what each control was told then, shape (k, controls)."""
    told = {d: _stream(twin, log, d) for d in twin.drives}
    clocks = [t for t, _ in told.values()]
    if not clocks:
        return log["q"].time, np.zeros((len(log["q"].time), twin.model.nu))
    same = all(t is clocks[0] or np.array_equal(t, clocks[0]) for t in clocks)
    times = clocks[0] if same else np.unique(np.concatenate(clocks))
    if not len(times) or times[-1] < log["q"].time[0] or times[0] > log["q"].time[-1]:
        raise BadInput(f"{log.name}: commands and positions were not logged at the same time; are their clocks the same?")
    out = np.zeros((len(times), twin.model.nu))
    for d, (t, v) in told.items():
        extra = _feed_forward(twin, log, d, times) if is_position_servo(twin.model, d.actuator) else 0.0
        out[:, d.control] = v[_held(t, times)] + extra
    bad = ~np.isfinite(out)
    if bad.any():
        raise BadInput(f"{log.name}: a command at {times[int(np.argwhere(bad)[0, 0])]:.3f} s is not a number")
    return times, out


def _stream(twin: Twin, log: Log, d: Drive) -> tuple[Array, Array]:
    """Times and values of the signal that a drive takes."""
    signal = f"{d.signal}_cmd"
    if signal not in log or d.name not in log[signal].columns:
        have = ", ".join(s for s in ("q_cmd", "dq_cmd", "tau_cmd") if s in log) or "no commands at all"
        hint = "; state the drive's gains (kp, kd)" if signal == "tau_cmd" and "q_cmd" in log else ""
        raise BadInput(f"{log.name}: {d.name} is driven by {signal} in {twin.name}, but the log has {have}{hint}")
    return log[signal].time, log[signal].column(d.name)


def _feed_forward(twin: Twin, log: Log, d: Drive, times: Array) -> Array:
    """A velocity or torque that a servo was told besides its position, as the shift of position with the same effect [rad]."""
    told = [s for s in ("dq_cmd", "tau_ff") if s in log and d.name in log[s].columns]
    values = {s: np.nan_to_num(log.at(s, times)[:, log[s].columns.index(d.name)]) for s in told}
    if not any(v.any() for v in values.values()):
        return np.zeros(len(times))
    kp, kd = (_gain(twin, log, quantity, d.name, times) for quantity in ("kp", "kd"))
    push = kd * values.get("dq_cmd", 0.0) + values.get("tau_ff", 0.0)
    if np.any((push != 0) & (kp <= 0)):
        raise BadInput(f"{log.name}: {d.name} was told {' and '.join(told)} while its kp was 0, which a servo cannot replay")
    return np.asarray(push / np.maximum(kp, 1e-12))


def _gain(twin: Twin, log: Log, quantity: str, joint: str, times: Array) -> Array:
    """The gain in force: as logged, else the twin's nominal one."""
    logged, name = logged_gain(log, quantity, joint), f"gains.{quantity}/{joint}"
    if logged is not None:
        return logged[1][_held(logged[0], times)]
    if name not in twin.space.names:
        raise BadInput(f"{log.name}: {joint} was told a velocity or torque too, which needs its gains: add Gains to the twin")
    return np.full(len(times), twin.space.nominal[twin.space.names.index(name)])


def _held(sent: Array, times: Array) -> np.ndarray:
    """Index of the last sample at or before each time."""
    return np.maximum(np.searchsorted(sent, times, side="right") - 1, 0)
