"""Least squares in a box: the step of a fit whose numbers may not leave their bounds."""

import numpy as np

from gapless.arrays import Array
from gapless.compiled import compiled

SWEEPS = 400
ENOUGH = 1e-6  # of the largest step: smaller ones end the search


def boxed(hessian: Array, gradient: Array, low: Array, high: Array) -> Array:
    """The d that minimises d'Hd / 2 + g'd with low <= d <= high, by coordinate descent. Shape: (parameters,)."""
    ridge = 1e-9 * max(float(np.trace(hessian)) / max(len(hessian), 1), 1e-12)
    return np.asarray(_descend(hessian + ridge * np.eye(len(hessian)), gradient, low, high, SWEEPS, ENOUGH))


@compiled
def _descend(hessian, gradient, low, high, sweeps, enough):  # type: ignore[no-untyped-def]
    n = len(gradient)
    d = np.zeros(n)
    for i in range(n):
        d[i] = min(max(0.0, low[i]), high[i])
    slope = gradient + hessian @ d
    for _ in range(sweeps):
        largest = 0.0
        for i in range(n):
            if high[i] <= low[i]:
                continue
            new = min(max(d[i] - slope[i] / hessian[i, i], low[i]), high[i])
            step = new - d[i]
            if step != 0.0:
                d[i] = new
                for j in range(n):
                    slope[j] += step * hessian[i, j]  # a row, which lies together, of what is symmetric
                largest = max(largest, abs(step) * np.sqrt(hessian[i, i]))
        if largest < enough * (1.0 + np.sqrt(abs(slope @ d))):
            break
    return d
