"""Baselines: predictions that need no model, which any model has to beat."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from gapless.arrays import Array
from gapless.logs import Log
from gapless.worlds import Replay

DELAYS = np.arange(0, 0.2001, 0.005)  # s: what a pure delay may be
MOST_SAMPLES = 20_000  # of all logs, to choose the delay by

Delays = Mapping[str, Array]
"""Signal to the best pure delay of each joint [s]."""


def hold(result: Replay) -> dict[str, Array]:
    """The state that each window starts from, held. Shape of each: (windows, samples, columns)."""
    return {s: np.broadcast_to(m[:, :1], m.shape) for s, m in result.measured.items()}


def command(log: Log, result: Replay, delays: Delays | None = None) -> dict[str, Array]:
    """What was commanded, as prediction; late, if delays are given. Shape of each: (windows, samples, joints)."""
    out = {}
    times = result.starts[:, None] + np.where(np.isnan(result.time), 0.0, result.time)
    for signal, measured in result.measured.items():
        if _told(log, signal, result.columns[signal]):
            late = np.zeros(measured.shape[-1]) if delays is None else delays[signal]
            out[signal] = _at(log, signal, result.columns[signal], times.ravel(), late).reshape(measured.shape)
    return out


def best_delays(logs: Sequence[Log], joints: tuple[str, ...]) -> dict[str, Array]:
    """The delay with which the command predicts each joint best, over all logs."""
    out = {}
    for signal in ("q", "dq", "tau"):
        if not all(signal in log and _told(log, signal, joints) for log in logs):
            continue
        every = max(1, sum(len(log[signal].time) for log in logs) // MOST_SAMPLES)
        cost = np.zeros((len(DELAYS), len(joints)))
        for log in logs:
            times = log[signal].time[::every]
            order = [log[signal].columns.index(j) for j in joints]
            measured = log[signal].values[::every, order]
            for k, delay in enumerate(DELAYS):
                off = _at(log, signal, joints, times, np.full(len(joints), delay)) - measured
                cost[k] += np.nansum(off**2, axis=0)
        out[signal] = DELAYS[cost.argmin(axis=0)]
    return out


def _told(log: Log, signal: str, columns: Sequence[str]) -> bool:
    return f"{signal}_cmd" in log and set(columns) <= set(log[f"{signal}_cmd"].columns)


def _at(log: Log, signal: str, columns: Sequence[str], times: Array, late: Array) -> Array:
    """The command in force at each time, as late as each column's delay says. Shape: (times, columns)."""
    out = np.empty((len(times), len(columns)))
    for delay in np.unique(late):
        rows = log.at(f"{signal}_cmd", times - delay)
        for c, name in enumerate(columns):
            if late[c] == delay:
                out[:, c] = rows[:, log[f"{signal}_cmd"].columns.index(name)]
    return out
