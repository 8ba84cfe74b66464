"""What the data cannot tell: intervals, directions left free, parameters at a bound, in words a robot engineer can act on."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gapless.arrays import Array
from gapless.twin import Gaussian, Space, quantities

PRIOR = 5.0  # scaled units: as weak as the fit's own
LOOSE = 1.0  # scaled units: a standard deviation above this leaves a real mismatch possible either way
TOGETHER = 0.35  # share of the largest component from which a parameter counts as part of a free direction
FINEST = 0.005  # scaled units: no simulation in steps is closer to a robot, however much is measured
ELSEWHERE = 0.5  # scaled units: half a real mismatch
DRAWS = 200  # of the bootstrap


@dataclass(frozen=True)
class Part:
    """The end of a fit over some parameters: whitened residuals, their slopes, and what is independent of what."""

    names: tuple[str, ...]
    residual: Array
    jacobian: Array
    """Over `names`, scaled. Shape: (residuals, parameters)."""
    block: NDArray[np.int64]
    """Of each residual: errors of different blocks are independent."""
    run: int
    """Residuals that follow one another in time are this far apart in the array."""


@dataclass(frozen=True)
class Unknown:
    """Parameters that the data leave free, and what that means."""

    parameters: tuple[str, ...]
    meaning: str


def belief(space: Space, centre: Array, halves: Array, parts: Sequence[Part], rng: np.random.Generator) -> Gaussian:
    """A Gaussian over a space.

    The covariance is that of independent errors, widened by how long errors last, to what a bootstrap over blocks shows, and to
    how far the fits to either half of the logs are apart: what no model explains, fits differently each time.

    Args:
        space: what was fitted.
        centre: scaled.
        halves: the same from either half. Shape: (2, parameters).
        parts: the ends of the fits.
        rng: for the bootstrap.
    """
    from scipy.stats import t as student

    k = len(space)
    order = {n: i for i, n in enumerate(space.names)}
    information = np.zeros((k, k))
    count = max(int(p.block.max()) + 1 for p in parts)
    slopes, curves = np.zeros((count, k)), np.zeros((count, k, k))
    for p in parts:
        at = [order[n] for n in p.names]
        used = np.flatnonzero(np.abs(p.residual) + np.abs(p.jacobian).sum(axis=1))
        noise = max(float(p.residual @ p.residual) / max(len(used) - len(at), 1), 1e-18)
        last = _lasting(p.residual, p.run)
        information[np.ix_(at, at)] += p.jacobian.T @ p.jacobian / (noise * last)
        each = p.jacobian * p.residual[:, None]
        slopes[:, at] += np.stack([np.bincount(p.block, weights=c, minlength=count) for c in each.T], axis=1) / (noise * last)
        edges = np.flatnonzero(np.diff(p.block, prepend=-1))
        for rows in np.split(np.arange(len(p.block)), edges[1:]):
            j = p.jacobian[rows]
            curves[p.block[rows[0]]][np.ix_(at, at)] += j.T @ j / (noise * last)
    prior = np.eye(k) / PRIOR**2
    covariance = np.linalg.inv(information + prior) + np.eye(k) * FINEST**2
    blocks = np.flatnonzero(np.abs(curves).sum(axis=(1, 2)) > 0)
    shifts = []
    for _ in range(DRAWS if len(blocks) >= 4 else 0):
        picked = rng.choice(blocks, len(blocks))
        shifts.append(-np.linalg.solve(curves[picked].sum(axis=0) + prior, slopes[picked].sum(axis=0)))
    usual = np.sqrt(np.diag(covariance))
    if shifts:
        # the middle two thirds: few draws without a decisive block do not count; not more than four times
        spread = np.subtract(*np.percentile(shifts, [84, 16], axis=0)) / 2
        wider = np.clip(spread / usual, 1.0, 4.0)
        covariance = covariance * np.outer(wider, wider)
    if len(blocks) > 1:  # few independent blocks tell little about the spread: Student's distribution instead of the normal one
        covariance = covariance * (float(student.ppf(0.95, len(blocks) - 1)) / 1.645) ** 2
    usual = np.sqrt(np.diag(covariance))
    # each half has twice the variance of the whole, and their difference four times
    apart = np.minimum(np.maximum(np.abs(halves[0] - halves[1]) / 2 / usual, 1.0), PRIOR / np.minimum(usual, PRIOR))
    covariance = covariance * np.outer(apart, apart)
    return Gaussian(space, centre, (covariance + covariance.T) / 2)


def _lasting(residual: Array, run: int) -> float:
    """For how many samples an error lasts: the sum of its autocorrelation, up to where that first vanishes."""
    series = residual[: len(residual) // run * run].reshape(-1, run)
    square = float((series**2).sum())
    total, lag = 1.0, 1
    while square > 0 and lag < len(series) // 4:
        rho = float((series[:-lag] * series[lag:]).sum()) / square
        if rho <= 0.05:
            break
        step = max(1, lag // 4)  # far lags change slowly
        total += 2 * rho * step
        lag += step
    return total


def free(space: Space, covariance: Array, electric: bool, position_only: bool) -> list[Unknown]:
    """The directions that the data leave free, and what to do about them."""
    places: dict[str, list[int]] = {}
    for i, name in enumerate(space.names):
        places.setdefault(name.partition("/")[2], []).append(i)
    groups: dict[tuple[str, ...], list[str]] = {}  # quantities to all of the parameters that are free together
    for at in places.values():
        values, vectors = np.linalg.eigh(covariance[np.ix_(at, at)])
        for vector in vectors.T[values > LOOSE**2]:
            names = [space.names[at[i]] for i in np.flatnonzero(np.abs(vector) > TOGETHER * np.abs(vector).max())]
            group = groups.setdefault(tuple(sorted(n.partition("/")[0] for n in names)), [])
            group += [n for n in names if n not in group]
    out = [Unknown(tuple(names), _meaning(names)) for names in groups.values()]
    if "latency.action" in space.names:
        words = "only the total delay of command and reading is observable; it is reported as latency.action"
        out.append(Unknown(("latency.action", "latency.observation"), words))
    if electric:
        all_of = tuple(n for n in space.names if n.startswith(("motor.kt", "motor.resistance", "friction.")))
        words = "kt and friction are coupled: with one known mass, more friction and a stronger motor give the same motion"
        out.append(Unknown(all_of, f"{words}; take kt from the data sheet, or log motion with a second known mass"))
    elif position_only and "inertia.payload" in space.names:
        words = "payload, gains and friction share one free scale: a robot on its feet shows only ratios of forces"
        out.append(
            Unknown(("inertia.payload", "gains.kp"), f"{words}; weigh it (--fix inertia.payload=...), fix kp, or log torque")
        )
    elif position_only:
        kinds = {p.quantity for p in space.parameters if p.quantity.startswith(("gains", "friction", "armature"))}
        words = "fitted to positions: joints without gravity load share one free scale of kp, damping, friction and armature"
        out.append(Unknown(tuple(sorted(kinds)), f"{words}; fix kp, add a known mass, or log torque"))
    return out


def elsewhere(belief: Gaussian, rivals: Sequence[tuple[tuple[str, ...], Array, Array]]) -> list[Unknown]:
    """Parameters that another start of the fit put elsewhere, outside of their intervals, at no worse an error."""
    space, spread = belief.space, 1.645 * np.sqrt(np.diag(belief.covariance))
    off: dict[str, tuple[float, float]] = {}
    for names, here, there in rivals:
        for name, a, b in zip(names, here, there, strict=True):
            i = space.names.index(name) if name in space.names else -1
            if i >= 0 and abs(b - a) > max(float(spread[i]), ELSEWHERE):
                one = replace(space, parameters=space.parameters[i : i + 1])
                low, high = sorted(float(one.clip(one.from_scaled([x]))[0]) for x in (a, b))
                off[name] = (low, high)
    out = []
    for quantity in dict.fromkeys(n.partition("/")[0] for n in off):
        alike = tuple(n for n in off if n.partition("/")[0] == quantity)
        low, high = off[alike[0]]
        more = f", and {len(alike) - 1} more like it" if len(alike) > 1 else ""
        out.append(Unknown(alike, f"another starting point fits equally well: {alike[0]} may be {low:.3g} or {high:.3g}{more}"))
    return out


def _meaning(names: Sequence[str]) -> str:
    kinds = sorted({n.partition("/")[0] for n in names})
    places = sorted({n.partition("/")[2] for n in names} - {""})
    where = f" of {places[0]}" if len(places) == 1 else f" of each of {len(places)} joints" if places else ""
    subject = ", ".join(q.partition(".")[2] for q in kinds) + where
    if len(kinds) == 1:
        return f"{subject}: the logs do not tell; {quantities.of(kinds[0]).shows or 'no motion in them depends on it'}"
    if kinds == ["friction.viscous", "gains.kd"]:
        return f"{subject}: only their sum is observable; fix one of them"
    if len([q for q in kinds if q.startswith(("gains", "friction", "armature"))]) >= 3 and "gains.kp" in kinds:
        return f"{subject} share one free scale: fix kp, add a known mass, or log torque"
    return (
        f"{subject}: only a combination is observable; fix one of them, or record a motion that separates them (gapless excite)"
    )
