"""Exact statistics of runs that succeed or fail, and of runs in pairs."""

import math

import numpy as np
from scipy import stats

from gapless.arrays import Array, Bools

MOST_RUNS = 100_000


def interval(successes: int, runs: int, confidence: float = 0.9) -> tuple[float, float]:
    """Of a success rate, by Clopper and Pearson (1934): it holds at least as often as it says."""
    if runs == 0:
        return 0.0, 1.0
    low, high = stats.binomtest(successes, runs).proportion_ci(confidence, "exact")
    return float(low), float(high)


def mean_interval(values: Array, confidence: float = 0.9) -> tuple[float, float]:
    """Of the mean of independent figures, by Student; all of the line for less than two."""
    values = values[np.isfinite(values)]
    if len(values) < 2:
        return -math.inf, math.inf
    half = stats.t.ppf((1 + confidence) / 2, len(values) - 1) * values.std(ddof=1) / math.sqrt(len(values))
    return float(values.mean() - half), float(values.mean() + half)


def runs_to_decide(rate: float, threshold: float, runs: int, confidence: float = 0.9) -> int | None:
    """How many more runs would decide whether a rate is above a threshold, if it stays as seen; None for too many to say."""
    n = max(runs, 1)
    while n <= MOST_RUNS:
        low, high = interval(round(rate * n), n, confidence)
        if low >= threshold or high < threshold:
            return max(n - runs, 1)
        n = math.ceil(n * 1.1) + 1
    return None


def more_for_mean(values: Array, threshold: float, confidence: float = 0.9) -> int | None:
    """How many more runs would decide whether a mean is above a threshold, if mean and spread stay as seen."""
    values = values[np.isfinite(values)]
    gap = abs(float(values.mean()) - threshold) if len(values) > 1 else 0.0
    if gap == 0:
        return None
    needed = math.ceil((stats.norm.ppf((1 + confidence) / 2) * float(values.std(ddof=1)) / gap) ** 2) + 2
    return max(needed - len(values), 1) if needed <= MOST_RUNS else None


def mcnemar(before: Bools, after: Bools) -> float:
    """How likely so uneven a split of the pairs that differ would be by chance (McNemar, exact, two-sided).

    before, after: success of the same runs with two policies. Shape: (runs,).
    """
    lost, won = int((before & ~after).sum()), int((~before & after).sum())
    return 1.0 if lost + won == 0 else float(stats.binomtest(lost, lost + won).pvalue)
