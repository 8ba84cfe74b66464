"""Whether the error of a fit grows with temperature, judged by stretches of time: samples repeat each other."""

import math
from dataclasses import dataclass

import numpy as np

from gapless.arrays import Array, Ints

FEWEST = 8  # stretches
NARROWEST = 2.0  # °C between the coldest and the hottest stretch: most sensors have steps of 1 °C
CHANCE = 0.005  # that a growth is reported where there is none
LEAST = 1.2  # times the error of the coldest third that the hottest third has at least


@dataclass(frozen=True)
class Warming:
    """The error of the coldest and of the hottest third of the stretches."""

    cold: float
    """[°C]"""
    hot: float
    cold_error: float
    """Root mean square, in the unit of the error."""
    hot_error: float
    p: float
    """How probable so close a relation is by chance."""


def warming(error: Array, temperature: Array, speed: Array, stretch: Ints, tests: int = 1) -> Warming | None:
    """How the error of a joint grows with its temperature beyond what speed explains; None if that may be chance.

    The partial rank correlation of stretches, with as many degrees of freedom as they are independent (Bartlett 1935).

    Args:
        error: of every sample. Shape of all: (samples,).
        temperature: [°C], NaN where it was not measured.
        speed: faster motion has larger errors, and warms the drive.
        stretch: number of the stretch of time that a sample belongs to.
        tests: how many joints are asked, all of which may be wrong by chance.
    """
    from scipy.stats import rankdata, t

    seen = np.isfinite(error) & np.isfinite(temperature) & np.isfinite(speed)
    _, number, count = np.unique(stretch[seen], return_inverse=True, return_counts=True)
    if len(count) < FEWEST:
        return None
    square, warm, fast = (np.bincount(number, x[seen]) / count for x in (error**2, temperature, speed**2))
    if np.ptp(warm) < NARROWEST:
        return None
    plain = np.column_stack([np.ones(len(fast)), rankdata(fast)])
    e, w = (r - plain @ np.linalg.lstsq(plain, r, rcond=None)[0] for r in (rankdata(square), rankdata(warm)))
    if not (np.std(e) > 0 and np.std(w) > 0):
        return None
    r = min(float(np.corrcoef(e, w)[0, 1]), 0.9999)
    freedom = _independent(e, w, r) - 3
    p = float(t.sf(r * math.sqrt(freedom / (1 - r**2)), freedom)) if freedom > 0 else 1.0
    order = np.argsort(warm)
    cold, hot = order[: len(order) // 3], order[-(len(order) // 3) :]
    errors = [math.sqrt(square[part].mean()) for part in (cold, hot)]
    if p > CHANCE / tests or errors[1] < LEAST * errors[0]:
        return None
    return Warming(float(warm[cold].mean()), float(warm[hot].mean()), errors[0], errors[1], p)


def _independent(e: Array, w: Array, r: float) -> float:
    """How many stretches count as independent: what the relation leaves and the temperature each remember the one before."""
    left = e - r * np.std(e) / np.std(w) * w
    memories = []
    for x in (left, w):
        x = x - x.mean()
        memory = float(x[1:] @ x[:-1] / (x @ x)) if x @ x > 0 else 0.0
        memories.append(min(memory + (1 + 3 * memory) / len(x), 1.0))  # estimates from few values are low (Kendall 1954)
    both = max(memories[0] * memories[1], 0.0)
    return len(e) * (1 - both) / (1 + both)
