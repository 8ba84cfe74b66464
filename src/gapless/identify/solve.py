"""Damped Gauss-Newton in a scaled space: every finite-difference column, and every trial step, in one call of the residuals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gapless.twin.space import Array

DIFFERENCE = 0.02  # scaled units: wide enough that stick and slip average out
DAMPINGS = np.array([1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3])
LARGEST_STEP = 2.0  # scaled units in one iteration


@dataclass(frozen=True)
class Solution:
    """Where a fit ended."""

    x: Array
    """Scaled parameters. Shape: (parameters,)."""
    cost: float
    """Sum of squared residuals."""
    residual: Array
    jacobian: Array
    """Shape: (residuals, parameters)."""


def least_squares(
    residuals: Callable[[Array], Array],
    start: Array,
    low: Array,
    high: Array,
    prior: float = 5.0,
    iterations: int = 20,
    tolerance: float = 1e-3,
) -> Solution:
    """Minimise the sum of squares of residuals (k, n) of scaled parameters (k, parameters).

    Args:
        residuals: many vectors at once.
        start: scaled parameters; 0 is nominal.
        low: lower bounds.
        high: upper bounds.
        prior: standard deviation of a weak prior about the start, in scaled units, weighted as one residual of typical size:
            what the data leave free stays where it was.
        iterations: at most.
        tolerance: relative fall of the cost below which it stops.
    """
    x = np.clip(np.asarray(start, float), low, high)
    anchor, k = x.copy(), len(x)
    r = residuals(x[None])[0]
    damping = 1e-2
    for _ in range(iterations):
        size = float(r @ r) / max(len(r), 1)  # of a typical squared residual now: the prior counts as one of those
        best = float(r @ r) + size * float((((x - anchor) / prior) ** 2).sum())
        jacobian = _jacobian(residuals, x, low, high)
        gradient = jacobian.T @ r + size * (x - anchor) / prior**2
        information = jacobian.T @ jacobian + size * np.eye(k) / prior**2
        scale = np.diag(np.diag(information) + 1e-12 * np.trace(information))
        dampings = damping * DAMPINGS
        steps = np.array([-np.linalg.solve(information + d * scale, gradient) for d in dampings])
        trials = np.clip(x + np.clip(steps, -LARGEST_STEP, LARGEST_STEP), low, high)
        tried = residuals(trials)
        costs = (tried**2).sum(axis=1) + size * (((trials - anchor) / prior) ** 2).sum(axis=1)
        i = int(np.argmin(costs))
        if not costs[i] < best:
            break
        fall = 1 - float(costs[i]) / best
        x, r, damping = trials[i], tried[i], max(float(dampings[i]), 1e-8)
        if fall < tolerance:
            break
    return Solution(x, float(r @ r), r, _jacobian(residuals, x, low, high))


def _jacobian(residuals: Callable[[Array], Array], x: Array, low: Array, high: Array) -> Array:
    """Central differences, one-sided at a bound. Shape: (residuals, parameters)."""
    up = np.minimum(x + DIFFERENCE * np.eye(len(x)), high)
    down = np.maximum(x - DIFFERENCE * np.eye(len(x)), low)
    both = residuals(np.concatenate([up, down]))
    width = np.maximum(np.diag(up) - np.diag(down), 1e-12)
    return np.asarray(((both[: len(x)] - both[len(x) :]) / width[:, None]).T)
