"""A sensor by its readings alone: the step to which they are rounded, how far they go, and whether they chatter."""

from collections.abc import Sequence

import numpy as np

from gapless.arrays import Array

STILL = 1e-3  # rad or m: less is noise
SWING = 0.3  # of its range: what a channel that chatters swings, and swings back, from sample to sample
OFTEN = 0.0075  # of the samples; a drive that follows a command of many steps comes close to it


def quantum(columns: Sequence[Array]) -> float:
    """The step in which readings come, or 0 where they are not rounded."""
    steps = np.abs(np.concatenate([np.diff(c) for c in columns] or [np.empty(0)]))
    steps = steps[np.isfinite(steps) & (steps > 1e-9)]
    if len(steps) < 10:
        return 0.0
    smallest = float(np.quantile(steps, 0.01))
    unit = float(np.median(steps[steps < 1.5 * smallest]))
    small = steps[steps < 20 * unit] / unit  # of larger ones the rounding of the unit itself adds up
    return unit if np.mean(np.abs(small - np.round(small)) < 0.05) > 0.95 else 0.0


def travel(position: Array) -> float:
    """How far a joint moves, single samples left out [rad]; NaN where nothing was measured. position: (samples,)."""
    seen = position[np.isfinite(position)]
    return float(np.ptp(np.percentile(seen, [0.5, 99.5]))) if len(seen) else np.nan


def chatter(values: Array) -> float:
    """Share of the samples at which a channel swings over much of its range and back; 0 where that is rare."""
    step = np.diff(values) / max(float(np.ptp(values)), 1e-12)
    back = (np.abs(step[1:]) > SWING) & (np.abs(step[:-1]) > SWING) & (step[1:] * step[:-1] < 0)
    share = float(back.mean())
    return share if share > OFTEN else 0.0
