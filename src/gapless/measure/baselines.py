"""Baselines: predictions that need no model, which any model has to beat."""

from collections.abc import Sequence

import numpy as np

from gapless.arrays import Array
from gapless.logs import Log

DELAYS = np.arange(0, 0.2001, 0.005)  # s: what a pure delay may be
MOST_SAMPLES = 20_000  # of all logs, to choose the delay by


def best_delays(logs: Sequence[Log], joints: tuple[str, ...]) -> dict[str, Array]:
    """By signal, the delay with which its command predicts each joint best over all logs [s]. Shape of each: (joints,)."""
    out = {}
    for signal in ("q", "dq", "tau"):
        if not all(signal in log and is_commanded(log, signal, joints) for log in logs):
            continue
        every = max(1, sum(len(log[signal].time) for log in logs) // MOST_SAMPLES)
        cost = np.zeros((len(DELAYS), len(joints)))
        for log in logs:
            times = log[signal].time[::every]
            measured = log[signal].of(joints)[::every]
            for k, delay in enumerate(DELAYS):
                predicted = delayed_command(log, signal, joints, times, np.full(len(joints), delay))
                cost[k] += np.nansum((predicted - measured) ** 2, axis=0)
        out[signal] = DELAYS[cost.argmin(axis=0)]
    return out


def is_commanded(log: Log, signal: str, columns: Sequence[str]) -> bool:
    """Whether a signal of all these columns was commanded."""
    return f"{signal}_cmd" in log and set(columns) <= set(log[f"{signal}_cmd"].columns)


def delayed_command(log: Log, signal: str, columns: Sequence[str], times: Array, delays: Array) -> Array:
    """The command in force at each time, as late as each column's delay [s]. Shape: (times, columns)."""
    out = np.empty((len(times), len(columns)))
    for delay in np.unique(delays):
        rows = log.at(f"{signal}_cmd", times - delay)
        for c, name in enumerate(columns):
            if delays[c] == delay:
                out[:, c] = rows[:, log[f"{signal}_cmd"].columns.index(name)]
    return out
