"""How two runs of the same commands part: how quickly, up to where, and how long they can be compared.

The rate is the slope of the logarithm of the distance, between what it is at first and what it is at most: a largest Lyapunov
exponent where runs start close together and move for long (Rosenstein, Collins and De Luca 1993), otherwise what it says.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gapless.arrays import Array

SHARE = 0.1  # of the motion: runs that are farther apart tell little about a model any more
SMOOTH = 0.1  # s: distances pass through zero as two runs cross; a running mean square does not
STAYS = 0.5  # s: a knock is not a horizon
ENDS = 0.1  # of the time, at the beginning and in the end
BETWEEN = ((4.0, 0.1), (2.0, 0.2), (1.5, 0.4))
"""Of the first distance and of the largest: growth is looked for in between; the strictest that leaves enough."""
GROWN = 4.0  # times: enough
BLOCKS = 8  # of the growing part, left out one at a time for the interval
STUDENT = 1.895  # 95 % quantile at BLOCKS - 1 degrees of freedom


@dataclass(frozen=True)
class Growth:
    """What became of a distance over time."""

    rate: float
    """[1/s]; NaN where the distance does not grow."""
    low: float
    high: float
    """90 % interval of the rate."""
    start: float
    """Share of the motion at first."""
    end: float
    """Share of the motion in the end: where it grows to."""
    horizon: float
    """Time until the distance is `SHARE` of the motion [s]; infinite if it never is."""


def growth(time: Array, apart: Array) -> Growth:
    """Fit distances.

    Args:
        time: since the start [s], even. Shape: (samples,).
        apart: distances as shares of the motion, of several pairs of runs. Shape: (pairs, samples), NaN after a pair's end,
            which the longest pair has none of.
    """
    typical = np.exp(np.nanmean(np.log(np.maximum(smoothed(time, apart), 1e-12)), axis=0))
    few = max(1, int(ENDS * len(time)))
    rows = _growing(typical)
    # what does not grow, and is usually near, may be compared throughout
    horizon = _reaches(time, typical) if rows is not None or np.median(typical) >= SHARE else np.inf
    first, end = float(typical[0]), float(np.median(typical[-few:]))
    if rows is None or end < GROWN * first:
        return Growth(np.nan, np.nan, np.nan, float(np.median(typical[:few])), end, horizon)
    t, log_d = time[rows], np.log(typical[rows])
    rate = float(np.polyfit(t, log_d, 1)[0])
    # jackknife: blocks of time are what is nearly independent in one curve
    blocks = np.array_split(np.arange(len(t)), BLOCKS)
    without = [np.polyfit(np.delete(t, block), np.delete(log_d, block), 1)[0] for block in blocks]
    half = STUDENT * float(np.sqrt((BLOCKS - 1) * np.var(without)))
    return Growth(rate, rate - half, rate + half, first, end, horizon)


def smoothed(time: Array, apart: Array) -> Array:
    """Root of the running mean square over `SMOOTH`. Shape: (pairs, samples)."""
    from scipy.ndimage import uniform_filter1d

    width = max(1, round(SMOOTH / max(float(np.median(np.diff(time))), 1e-9)))
    there = np.isfinite(apart)
    total = uniform_filter1d(np.where(there, apart, 0.0) ** 2, width, axis=-1, mode="constant")
    count = uniform_filter1d(there.astype(float), width, axis=-1, mode="constant")
    return np.where(there, np.sqrt(np.maximum(total, 0.0) / np.maximum(count, 1e-12)), np.nan)


def _reaches(time: Array, distance: Array) -> float:
    """When the distance gets to `SHARE`, and stays there for `STAYS`; infinite if it never does [s]."""
    for begin in np.flatnonzero(np.diff(np.append(False, distance >= SHARE).astype(int)) == 1):
        until = np.flatnonzero(distance[begin:] < SHARE)
        end = time[begin + until[0]] if len(until) else np.inf
        if end - time[begin] >= STAYS:
            return float(time[begin])
    return np.inf


def _growing(distance: Array) -> NDArray[np.int64] | None:
    """The samples in which it grows from the first distance to near the largest; None where it does not grow enough."""
    for low, high in BETWEEN:
        least, most = low * distance[0], high * distance.max()
        if most < GROWN * least:
            continue
        last = int(np.argmax(distance >= most))
        below = np.flatnonzero(distance[:last] < least)
        begin = int(below[-1]) + 1 if len(below) else 0
        if last - begin >= 2 * BLOCKS:
            return np.arange(begin, last)
    return None
