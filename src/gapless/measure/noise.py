"""The noise floor: how far a robot is from itself, below which no model can go.

Where a motion was repeated, what differs between the repeats; elsewhere what the sensor alone adds, from its quantum and the
highest frequencies, at which no joint moves.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gapless.arrays import Array
from gapless.logs import Log, quantum
from gapless.measure.outliers import RARE
from gapless.measure.repeated import Repeat, command_of, repeats
from gapless.measure.signals import difference, difference_columns
from gapless.measure.split import BLOCK

SETTLE = 1.0  # s that are skipped: the response still depends on the command before the repeat
ENOUGH = 3  # blocks
LONGEST = 30.0  # s: of one repeat
STILL = 0.02  # of how far a joint is ever commanded: less says nothing about how well it repeats
RESOLUTION = 1e-4  # rad: a 16-bit encoder's step; no robot tells positions apart that are closer
TILT = 2e-3  # rad: by which an IMU's orientation is off however quiet it is
SEGMENT = 64  # samples of a spectrum
TOP = 0.7  # of the highest frequency a spectrum has: above it there is noise only


@dataclass(frozen=True)
class Floor:
    """Standard deviation of what no model can predict, by column of a signal."""

    columns: tuple[str, ...]
    size: Array
    """In the signal's unit. Shape: (columns,)."""
    repeated: Array
    """Seconds of repeated motion that this is from; 0: from the sensor alone. Shape: (columns,)."""


def floors(logs: Sequence[Log], signals: Sequence[str]) -> dict[str, Floor]:
    """The floor of each signal that every log has."""
    again = [r for r in repeats(logs) if same_drive(logs[r.first], logs[r.second])] if command_of(logs) == "q_cmd" else []
    return {s: _floor(logs, s, again) for s in signals if all(s in log for log in logs)}


def sensor_noise(columns: Sequence[Array]) -> float:
    """Standard deviation of a sensor's noise, from the highest frequencies and the quantum of its readings.

    columns: its samples, log by log.
    """
    window = np.blackman(SEGMENT)  # what moves slowly hardly shows at the highest frequencies
    power = []
    for c in columns:
        c = c[np.isfinite(c)]
        whole = c[: len(c) // SEGMENT * SEGMENT].reshape(-1, SEGMENT)
        spectrum = np.fft.rfft(window * (whole - whole.mean(axis=1, keepdims=True)), axis=1)
        power.append(np.abs(spectrum[:, int(TOP * SEGMENT / 2) :]) ** 2 / (window**2).sum())
    every = np.concatenate(power) if power else np.empty(0)
    # the median leaves out steps and knocks, which have all frequencies; of an exponential distribution it is ln 2 of the mean
    white = float(np.median(every)) / np.log(2) if every.size else 0.0
    return float(np.sqrt(max(white, quantum(columns) ** 2 / 12)))


def same_drive(one: Log, other: Log) -> bool:
    """Whether drives had the same gains in both, as far as the logs say."""

    def gains(log: Log) -> list[Array]:
        stated = [np.atleast_1d(np.asarray(log.meta.get(k, np.nan), float)) for k in ("kp", "kd")]
        return stated + [np.nanmedian(log[k].values, axis=0) for k in ("kp", "kd") if k in log]

    ours, theirs = gains(one), gains(other)
    return len(ours) == len(theirs) and all(
        a.shape == b.shape and np.allclose(a, b, equal_nan=True) for a, b in zip(ours, theirs, strict=True)
    )


def _floor(logs: Sequence[Log], signal: str, again: Sequence[Repeat]) -> Floor:
    columns = tuple(c for c in logs[0][signal].columns if all(c in log[signal].columns for log in logs))
    size = np.array([sensor_noise([log[signal].column(c) for log in logs]) for c in columns])
    if signal == "quat":  # the rotation vector between two is twice the difference of their vector parts
        columns, size = difference_columns("quat", columns), 2 * size[1:]
    repeated = np.zeros(len(columns))
    squares, moved = _differences(logs, signal, columns, again)
    for i in range(len(columns)):
        use = squares[moved[:, i], i] if len(squares) else np.empty(0)
        if len(use) >= ENOUGH:
            use = np.sort(use)[: max(ENOUGH, int(len(use) * (1 - RARE)))]
            size[i], repeated[i] = np.sqrt(use.mean() / 2), BLOCK * len(use)  # half is one run's share, half the other's
    return Floor(columns, np.maximum(size, {"q": RESOLUTION, "quat": TILT}.get(signal, 0.0)), repeated)


def _differences(logs: Sequence[Log], signal: str, columns: Sequence[str], again: Sequence[Repeat]) -> tuple[Array, Array]:
    """Mean squared difference in each block of repeated motion, and whether the joint was commanded to move in it.

    Shape of both: (blocks, columns).
    """
    signal_sent = command_of(logs) or ""
    squares, moved = [], []
    for r in again:
        one, other = logs[r.first], logs[r.second]
        rate = one.rate(signal)
        times = r.times(rate)[: round((SETTLE + LONGEST) * rate)]
        times = times[(times > r.start + SETTLE) & (times + r.lag <= other[signal].time[-1]) & (times <= one[signal].time[-1])]
        per = max(1, round(BLOCK * rate))
        if len(times) < per:
            continue
        times = times[: len(times) // per * per]
        off = difference(signal, one.at(signal, times), other.at(signal, times + r.lag))
        off = off if signal == "quat" else off[:, [one[signal].columns.index(c) for c in columns]]
        squares.append(np.mean(off.reshape(-1, per, len(columns)) ** 2, axis=1))
        commands = one.at(signal_sent, times).reshape(-1, per, len(one[signal_sent].columns))
        far = np.ptp(commands, axis=1) > STILL * np.maximum(np.ptp(one[signal_sent].values, axis=0), 1e-9)
        names = one[signal_sent].columns
        moved.append(np.stack([far[:, names.index(c)] if c in names else far.any(axis=1) for c in columns], axis=1))
    none = np.zeros((0, len(columns)))
    return (np.concatenate(squares), np.concatenate(moved)) if squares else (none, none.astype(bool))
