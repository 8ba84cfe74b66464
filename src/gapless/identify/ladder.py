"""The ladder: which friction and motor model does an actuator need? Climbed as long as held-out error truly falls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gapless.identify.joint import PLACE, QUANTITIES, Data, residuals
from gapless.identify.solve import Solution, least_squares
from gapless.twin import Space, Twin
from gapless.twin.space import Array

RUNGS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("drive: gains, armature, delay", ("kp", "kd", "armature", "delay", "strength")),
    ("+ viscous and Coulomb friction", ("viscous", "coulomb")),
    ("+ friction with angle", ("angle", "angle2")),
    ("+ friction with load", ("load", "load2")),
    ("+ Stribeck friction", ("stribeck", "stribeck_speed")),
    ("+ torque limit", ("limit",)),
)
NATURAL = (10.0, 20.0, 40.0)  # rad/s: how fast a servo may be when its gain is not to be trusted


@dataclass(frozen=True)
class Rung:
    """A step of the ladder."""

    name: str
    heldout: float
    """Root mean square error on what was held out, mean over joints [rad]."""
    gain: float
    """By how much it lowers the held-out squared error, as a share."""
    error: float
    """Standard error of that gain."""
    climbed: bool


@dataclass(frozen=True)
class Problem:
    """One joint's fit: its samples, and the twin's parameters that it is about."""

    joint: str
    data: Data
    space: Space
    """The joint's own parameters among the twin's."""
    base: Array
    """Vector of the simulation where nothing is fitted. Shape: (quantities,)."""

    def free(self, quantities: Sequence[str]) -> list[int]:
        """Places in `space` of the quantities that this joint has."""
        names = [_name(q, self.joint) for q in quantities]
        return [self.space.names.index(n) for n in names if n in self.space.names]

    def vectors(self, scaled: Array, free: list[int]) -> Array:
        """Vectors of the simulation for scaled values of some parameters. Shape: (k, quantities)."""
        full = np.zeros((len(scaled), len(self.space)))
        full[:, free] = scaled
        values = self.space.clip(self.space.from_scaled(full))
        out = np.tile(self.base, (len(scaled), 1))
        for i in free:
            out[:, PLACE[_quantity(self.space.names[i])]] = values[:, i]
        return out

    def at(self, quantity: str, value: float) -> Problem:
        """The same problem with a quantity held at a value."""
        base = self.base.copy()
        base[PLACE[quantity]] = value
        return replace(self, base=base)

    def errors(self, vector: Array) -> Array:
        """Squared error by block, NaN where a block has no valid samples. Shape: (blocks,)."""
        square = residuals(self.data, vector[None])[0] ** 2
        total = np.bincount(self.data.block, weights=square)
        count = np.bincount(self.data.block, weights=self.data.valid)
        return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def problem(twin: Twin, joint: str, data: Data) -> Problem:
    """The fit of one joint of a twin."""
    base = np.zeros(len(QUANTITIES))
    base[PLACE["stribeck_speed"]], base[PLACE["limit"]], base[PLACE["strength"]] = 0.1, 1e9, 1.0
    own = []
    for quantity in QUANTITIES:
        name = _name(quantity, joint)
        if name in twin.space.names:
            base[PLACE[quantity]] = twin.space.nominal[twin.space.names.index(name)]
            # a servo's strength and gain are one number, and a torque drive has no gain
            if (quantity == "strength") != data.servo or quantity not in ("strength", "kp", "kd"):
                own.append(name)
    return Problem(joint, data, twin.space.select(*own), base)


def solve(
    p: Problem, quantities: Sequence[str], keep: NDArray[np.bool_], starts: Sequence[Array]
) -> tuple[Array, Solution, list[int]]:
    """The best fit over several starts (scaled vectors over `p.space`), to the samples of the blocks in `keep`."""
    free = p.free(quantities)
    weight = keep[p.data.block].astype(float)
    low, high = p.space.to_scaled(p.space.low)[free], p.space.to_scaled(p.space.high)[free]

    def residual(scaled: Array) -> Array:
        return residuals(p.data, p.vectors(scaled, free)) * weight

    found = [least_squares(residual, start[free], low, high) for start in starts]
    best = min(found, key=lambda s: s.cost)
    full = np.zeros(len(p.space))
    full[free] = best.x
    return full, best, free


def starts(p: Problem) -> list[Array]:
    """Where to begin: the nominal model, and servos of several speeds where the gain may be far off."""
    out = [np.zeros(len(p.space))]
    kp, kd = (_name(q, p.joint) for q in ("kp", "kd"))
    if p.data.servo and kp in p.space.names:
        mass = float(np.median(p.data.inertia)) + p.base[PLACE["armature"]]
        for speed in NATURAL:
            values = p.space.nominal.copy()
            values[p.space.names.index(kp)] = mass * speed**2
            values[p.space.names.index(kd)] = 1.2 * mass * speed
            out.append(p.space.to_scaled(p.space.clip(values)))
    return out


def climb(problems: Sequence[Problem], tick: Callable[[str], object] = lambda _: None) -> tuple[tuple[str, ...], list[Rung]]:
    """Try each rung on top of those climbed; keep it if held-out error falls by more than its standard error and by 2 %."""
    chosen: tuple[str, ...] = ()
    folds = [fold(p.data) for p in problems]
    where = [starts(p) for p in problems]
    before = [p.errors(p.base) for p in problems]
    rungs = [Rung("as given", _rms(before, folds), 0.0, 0.0, True)]
    for name, extra in RUNGS:
        trial = chosen + extra
        if not any(p.free(extra) for p in problems):
            continue
        fits = [solve(p, trial, fold, at) for p, fold, at in zip(problems, folds, where, strict=True)]
        after = [
            p.errors(p.vectors(full[None], list(range(len(full))))[0]) for p, (full, _, _) in zip(problems, fits, strict=True)
        ]
        gain, error = _gain(before, after, folds)
        better = gain > max(error, 0.02)
        rungs.append(Rung(name, _rms(after, folds), gain, error, better))
        tick(f"{name}: held-out {np.degrees(rungs[-1].heldout):.3f} deg")
        if better:
            chosen, before, where = trial, after, [[full] for full, _, _ in fits]
    return chosen, rungs


def fold(data: Data) -> NDArray[np.bool_]:
    """Blocks to fit to; the others are held out: every other log, or every other block of a few long ones."""
    logs = len(data.starts) - 1
    blocks = np.arange(int(data.block[-1]) + 1)
    if logs < 4:
        return blocks % 2 == 0
    log_of = np.searchsorted(data.block[data.starts[:-1]], blocks, side="right") - 1
    return log_of % 2 == 0


def _rms(errors: Sequence[Array], folds: Sequence[NDArray[np.bool_]]) -> float:
    return float(np.mean([np.sqrt(np.nanmean(e[~f])) for e, f in zip(errors, folds, strict=True)]))


def _gain(before: Sequence[Array], after: Sequence[Array], folds: Sequence[NDArray[np.bool_]]) -> tuple[float, float]:
    """Relative fall of the held-out squared error, and its standard error over blocks; mean over joints."""
    falls = [(b - a)[~f] / np.nanmean(b[~f]) for b, a, f in zip(before, after, folds, strict=True)]
    fall = np.nanmean(np.stack(falls), axis=0)
    fall = fall[np.isfinite(fall)]
    return float(fall.mean()), float(fall.std() / np.sqrt(max(len(fall), 1)))


def _name(quantity: str, joint: str) -> str:
    name = QUANTITIES[quantity]
    return name if quantity == "delay" else f"{name}/{joint}"


def _quantity(name: str) -> str:
    return next(q for q, full in QUANTITIES.items() if name == full or name.startswith(full + "/"))
