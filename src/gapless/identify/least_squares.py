"""Damped Gauss-Newton in a scaled space: every finite-difference column, and every trial step, in one call of the residuals."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gapless.arrays import Array

DIFFERENCE = 0.02  # scaled units: wide enough that stick and slip average out, mostly
# Width of the slopes and least damping of the steps, in turn, where the one before gains nothing more: slopes over a wider
# stretch may see over the edge; last, slopes may hold over a short way only.
TRIES = ((DIFFERENCE, 1.0), (0.1, 1.0), (0.4, 1.0), (DIFFERENCE, 1e5))
SEEN, WIDEST = 0.1, 1.0  # share of the residuals' size that a difference should make, and scaled units
DAMPINGS = np.array([1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3])
MOST_DAMPED = 10.0  # at the next step: one that had to be short says little about it
LARGEST_STEP = 2.0  # scaled units in one iteration


@dataclass(frozen=True)
class Solution:
    """Where a fit ended."""

    x: Array
    """Scaled parameters. Shape: (parameters,)."""
    cost: float
    """Sum of squared residuals."""
    residual: Array


@dataclass(frozen=True)
class Colouring:
    """Parameters that move different residuals share a column of finite differences (Curtis, Powell and Reid 1974)."""

    colour: NDArray[np.int64]
    """Of each parameter; two of the same colour affect no residual in common."""
    affects: NDArray[np.bool_]
    """Shape: (parameters, residuals)."""


def colouring(affects: NDArray[np.bool_]) -> Colouring:
    """Give each parameter the first colour that none of the parameters it meets has."""
    colours: list[int] = []
    taken: list[NDArray[np.bool_]] = []  # residuals by colour
    for row in affects:
        c = next((i for i, used in enumerate(taken) if not (used & row).any()), len(taken))
        if c == len(taken):
            taken.append(row.copy())
        else:
            taken[c] |= row
        colours.append(c)
    return Colouring(np.array(colours, dtype=np.int64), affects)


def least_squares(
    residuals: Callable[[Array], Array],
    start: Array,
    low: Array,
    high: Array,
    prior: float | Array = 5.0,
    iterations: int = 20,
    tolerance: float = 1e-3,
    coloured: Colouring | None = None,
    anchor: Array | None = None,
) -> Solution:
    """Minimise the sum of squares of residuals (k, n) of scaled parameters (k, parameters).

    Args:
        residuals: many vectors at once.
        start: scaled parameters; 0 is nominal.
        low: lower bounds.
        high: upper bounds.
        prior: standard deviation of a weak prior about the anchor, in scaled units, weighted as one residual of typical size:
            what the data leave free stays where it was; or its covariance.
        iterations: at most.
        tolerance: relative fall of the cost below which it looks further, and in the end stops.
        coloured: which parameters can share a column of differences; each has its own unless given.
        anchor: the start, unless given.
    """
    x = np.clip(np.asarray(start, float), low, high)
    anchor, k = x.copy() if anchor is None else anchor, len(x)
    weight = precision(prior, k)
    r = residuals(x[None])[0]
    group, reach = _groups(k, coloured)
    damping, turn, wide = np.full(len(reach), 1e-2), 0, np.zeros(k)
    for _ in range(iterations if r.any() else 0):  # nothing to fit to, or nothing left to gain
        size = float(r @ r) / max(len(r), 1)  # of a typical squared residual now: the prior counts as one of those
        best = float(r @ r) + size * float((x - anchor) @ weight @ (x - anchor))
        width, short = TRIES[turn]
        jacobian = slopes(residuals, x, low, high, coloured, r, np.maximum(width, wide))
        wide = widths(jacobian, r)
        gradient = jacobian.T @ r + size * weight @ (x - anchor)
        information = jacobian.T @ jacobian + size * weight
        scale = np.diag(information) + 1e-12 * np.trace(information)
        dampings = short * damping * DAMPINGS[:, None]  # (trials, groups)
        steps = np.array([-np.linalg.solve(information + np.diag(d[group] * scale), gradient) for d in dampings])
        trials = np.clip(x + np.clip(steps, -LARGEST_STEP, LARGEST_STEP), low, high)
        tried = residuals(trials)
        i = np.full(len(reach), int(np.argmin((tried**2).sum(axis=1) + size * squared(trials - anchor, weight))))
        if len(reach) > 1:  # what is best for one leg need not be for another
            own = np.array([int(np.argmin((tried[:, rows] ** 2).sum(axis=1))) for rows in reach])
            mixed = trials[own[group], np.arange(k)]
            trials, tried = np.vstack([trials, mixed]), np.vstack([tried, residuals(mixed[None])])
        costs = (tried**2).sum(axis=1) + size * squared(trials - anchor, weight)
        j = int(np.argmin(costs))
        fall = 1 - float(costs[j]) / best if best > 0 else 0.0
        if fall > 0:
            chosen = i if j < len(dampings) else own
            x, r, damping = trials[j], tried[j], np.clip(dampings[chosen, np.arange(len(reach))], 1e-8, MOST_DAMPED)
        last = turn == len(TRIES) - 1
        if fall > tolerance:
            turn = 0 if last else turn
        elif last:
            break
        else:
            turn += 1
    return Solution(x, float(r @ r), r)


def precision(prior: float | Array, k: int) -> Array:
    """The inverse of the covariance of a prior that is given by its standard deviation, deviations, or covariance."""
    prior = np.asarray(prior, float)
    return np.asarray(np.linalg.inv(prior) if prior.ndim == 2 else np.diag(np.broadcast_to(1 / prior**2, (k,))))


def squared(steps: Array, weight: Array) -> Array:
    """Squared distances by a precision. steps: (n, parameters); shape: (n,)."""
    return np.asarray(((steps @ weight) * steps).sum(axis=1))


def widths(jacobian: Array, r: Array) -> Array:
    """Over how long a stretch each slope is worth taking: until it shows above what stick and slip do to it, scaled units."""
    moved = np.linalg.norm(jacobian, axis=0)
    return np.clip(SEEN * np.linalg.norm(r) / np.maximum(moved, 1e-300), DIFFERENCE, WIDEST)


def _groups(k: int, coloured: Colouring | None) -> tuple[NDArray[np.int64], list[NDArray[np.bool_]]]:
    """Parameters that move the same residuals step together: the group of each, and the residuals that each group moves."""
    if coloured is None:
        return np.zeros(k, dtype=np.int64), [np.ones(1, dtype=bool)]
    seen: dict[bytes, int] = {}
    group = np.array([seen.setdefault(np.packbits(row).tobytes(), len(seen)) for row in coloured.affects], dtype=np.int64)
    return group, [coloured.affects[int(np.argmax(group == g))] for g in range(len(seen))]


def slopes(
    residuals: Callable[[Array], Array],
    x: Array,
    low: Array,
    high: Array,
    coloured: Colouring | None = None,
    at: Array | None = None,
    difference: float | Array = DIFFERENCE,
) -> Array:
    """Central differences, one-sided at a bound or where the residuals `at` x are given. Shape: (residuals, parameters)."""
    colour = np.arange(len(x)) if coloured is None else coloured.colour
    groups = colour[None, :] == np.arange(colour.max() + 1)[:, None]
    up = np.minimum(x + difference, high)
    down = np.maximum(x - difference, low)
    if at is None:
        both = residuals(np.concatenate([np.where(groups, up, x), np.where(groups, down, x)]))
        change, width = both[: len(groups)] - both[len(groups) :], up - down
    else:
        there = np.where(up - x >= x - down, up, down)
        change, width = residuals(np.where(groups, there, x)) - at, there - x
    columns = change[colour] / np.where(width == 0, 1e-12, width)[:, None]
    return np.asarray((columns if coloured is None else columns * coloured.affects).T)


def lasting(errors: Array) -> float:
    """For how many samples an error lasts: the sum of its autocorrelation, up to where that first vanishes."""
    square = float(errors @ errors)
    total, lag = 1.0, 1
    while square > 0 and lag < len(errors) // 4:
        rho = float(errors[:-lag] @ errors[lag:]) / square
        if rho <= 0.05:
            break
        step = max(1, lag // 4)  # far lags change slowly
        total += 2 * rho * step
        lag += step
    return total
