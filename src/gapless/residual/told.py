"""What drives were told as one number each, of logs that feed velocity or torque forward, change gains or switch drives off.

A network sees one command and is of one gain. Feed-forward is a shift of the target, as `worlds` has it; torque under other
gains, or of a drive that was off, is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from gapless.arrays import Array
from gapless.errors import BadInput
from gapless.logs import Log, Signal

ALIKE = 0.01  # share by which gains may differ
PROPORTIONAL = 1e-3  # share of a torque that is not its current times a constant: digits of a file

Gains = Mapping[str, tuple[float, float]]


def as_told(logs: Sequence[Log], command: str, joints: Sequence[str], stated: Gains) -> tuple[list[Log], float]:
    """Logs whose command says all, with torque only where it is this law's; and the share of the torque that was left out.

    joints: those that matter; stated: gains by joint [N m/rad, N m s/rad], of joints whose gains logs do not say.
    """
    kept, seen, whole = [list(log["tau"].values.T) for log in logs], 0, 0
    moved = [_told(log, command, joints, stated) for log in logs]
    for joint in joints:
        usual = [_most_common([_gain(log, q, joint, log["tau"].time) for log in logs]) for q in ("kp", "kd")]
        for log, torque in zip(logs, kept, strict=True):
            clock, place = log["tau"].time, log["tau"].columns.index(joint)
            good = np.ones(len(clock), bool)
            if "enabled" in log and joint in log["enabled"].columns:
                good = log.at("enabled", clock)[:, log["enabled"].columns.index(joint)] > 0.5
            for quantity, most in zip(("kp", "kd"), usual, strict=True) if command == "q_cmd" else ():
                gain = _gain(log, quantity, joint, clock)
                good &= np.isnan(gain) | (np.abs(gain - most) <= ALIKE * abs(most))
            whole += int(np.isfinite(torque[place]).sum())
            torque[place] = np.where(good, torque[place], np.nan)
            seen += int(np.isfinite(torque[place]).sum())
    tau = [replace(log["tau"], values=np.column_stack(torque)) for log, torque in zip(logs, kept, strict=True)]
    out = [replace(log, signals={**log.signals, command: m, "tau": t}) for log, m, t in zip(logs, moved, tau, strict=True)]
    return out, 1 - seen / max(whole, 1)


def _told(log: Log, command: str, joints: Sequence[str], stated: Gains) -> Signal:
    """The command with what was fed forward as the shift of the target that it is [rad]."""
    ahead = [s for s in ("dq_cmd", "tau_ff") if s in log and np.nan_to_num(log[s].values).any()]
    if command != "q_cmd" or not ahead:
        return log[command]
    clock = np.unique(np.concatenate([log[s].time for s in (command, *ahead)]))
    values = log.at(command, clock).copy()
    for joint in joints:
        column = values[:, log[command].columns.index(joint)]
        fed = {s: np.nan_to_num(log.at(s, clock)[:, log[s].columns.index(joint)]) for s in ahead if joint in log[s].columns}
        if not any(f.any() for f in fed.values()):
            continue
        kp, kd = (_gain(log, q, joint, clock, stated) for q in ("kp", "kd"))
        if not (np.isfinite(kp).all() and np.isfinite(kd).all()):
            raise BadInput(
                f"{log.name}: {joint} was told a velocity or torque besides its position, which shifts its target as far as "
                "its gains say: state kp and kd in the mapping, or give the model that has them (--robot, --kp, --kd)"
            )
        if not kp.any():
            raise BadInput(f"{log.name}: {joint} was told a torque at kp = 0, so it is a torque drive: map tau_ff to tau_cmd")
        shift = kd * fed.get("dq_cmd", 0.0) + fed.get("tau_ff", 0.0)
        column += np.divide(shift, kp, out=np.zeros_like(kp), where=kp > 0)  # no gain, no target: left out below
    return Signal(command, clock, values, log[command].columns)


def _gain(log: Log, quantity: str, joint: str, times: Array, stated: Gains | None = None) -> Array:
    """A drive's gain at some times, by the log or else as stated; NaN where neither says it. Shape: (times,)."""
    if quantity in log and joint in log[quantity].columns:
        return np.asarray(log.at(quantity, times)[:, log[quantity].columns.index(joint)])
    constant = log.meta.get(quantity)
    constant = constant.get(joint) if isinstance(constant, Mapping) else constant
    if not isinstance(constant, int | float):
        constant = (stated or {}).get(joint, (np.nan, np.nan))[quantity == "kd"]
    return np.full(len(times), float(constant))


def _most_common(several: Sequence[Array]) -> float:
    """The value that is there most often; NaN where none is."""
    values = np.concatenate(several)
    found, counts = np.unique(values[np.isfinite(values)], return_counts=True)
    return float(found[np.argmax(counts)]) if len(found) else np.nan


def read_from_current(logs: Sequence[Log], joints: Sequence[str]) -> dict[str, float]:
    """Joints whose torque is nothing but the current of their motors times a constant [N m/A]."""
    out = {}
    for joint in joints:
        if not all("current" in log and joint in log["current"].columns for log in logs):
            continue
        tau = np.concatenate([log["tau"].column(joint) for log in logs])
        current = np.concatenate([log.at("current", log["tau"].time)[:, log["current"].columns.index(joint)] for log in logs])
        seen = np.isfinite(tau) & np.isfinite(current)
        tau, current = tau[seen], current[seen]
        constant = float(tau @ current / max(current @ current, 1e-12))
        if constant and ((tau - constant * current) ** 2).sum() <= PROPORTIONAL**2 * (tau**2).sum():
            out[joint] = constant
    return out
