"""The ladder: which friction and motor model does an actuator need? Climbed as long as held-out error truly falls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gapless.identify.joint import PLACE, QUANTITIES, Data, residuals, without
from gapless.identify.solve import least_squares, slopes
from gapless.twin import Space, Twin
from gapless.twin.space import Array

RUNGS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("drive: gains or motor, armature, delay", ("kp", "kd", "armature", "delay", "strength", "kt", "resistance", "offset")),
    ("+ viscous and Coulomb friction", ("viscous", "coulomb")),
    ("+ friction with load", ("load", "load2")),
    ("+ friction with angle", ("angle", "angle2")),
    ("+ Stribeck friction", ("stribeck", "stribeck_speed")),
    ("+ torque limit", ("limit",)),
)
SOUND_AFTER = ("viscous", "coulomb")  # the rung after which blocks that stay far off are taken for broken
ROBUST = 1.5  # times the median error: beyond it errors count less than their square
LEAST = 0.05  # share of the squared error that a rung must take away to be worth its parameters
OUTLIER = 4.0  # times the median error of a block
FEW_LOGS = 12  # fewer differ too much from each other for one half to speak for the other
NATURAL = (10.0, 20.0, 40.0)  # rad/s: how fast a servo may be when its gain is not to be trusted


Tick = Callable[[str], object]
Remember = Callable[[str, Callable[[], dict[str, Any]]], dict[str, Any]]
"""A name and how to compute something: computed, or what was computed under that name before."""


def quiet(_: str) -> None:
    """Say nothing."""


def forget(_: str, compute: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Compute everything anew."""
    return compute()


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


def problem(twin: Twin, joint: str, data: Data, known: Mapping[str, float] | None = None) -> Problem:
    """The fit of one joint of a twin; parameters that are known keep their values."""
    known = known or {}
    base = np.zeros(len(QUANTITIES))
    base[PLACE["stribeck_speed"]], base[PLACE["limit"]], base[PLACE["strength"]] = 0.1, 1e9, 1.0
    # a servo's strength and gain are one number, as are a stated gain and its motor's constant; a torque drive has no gain
    electric = f"motor.kt/{joint}" in twin.space.names
    fixed = {"kp", "kd", "strength", "limit", "voltage"} if electric else {"strength"} if data.servo else {"kp", "kd"}
    mine = next(d for d in twin.drives if d.name == joint)
    several = np.count_nonzero(twin.model.dof_treeid == twin.model.dof_treeid[mine.dof]) > 1
    if several or (data.servo and not electric):
        # it moves the load of the other joints too, which a joint alone does not see; and a stiff servo hardly shows it
        fixed.add("offset")
    own = []
    for quantity in QUANTITIES:
        name = _name(quantity, joint)
        if name in twin.space.names:
            base[PLACE[quantity]] = known.get(name, twin.space.nominal[twin.space.names.index(name)])
            if quantity not in fixed and name not in known:
                own.append(name)
    return Problem(joint, data, twin.space.select(*own), base)


@dataclass(frozen=True)
class Found:
    """Where the fit of one joint ended."""

    x: Array
    """Scaled, over the problem's space."""
    free: list[int]
    """Places in it that were fitted."""
    cost: float
    residual: Array
    slopes: Callable[[], Array]
    """Of the residuals with respect to what was fitted, scaled. Shape: (residuals, parameters)."""


def solve(
    p: Problem, quantities: Sequence[str], keep: NDArray[np.bool_], starts: Sequence[Array], iterations: int = 20
) -> Found:
    """The best fit over several starts (scaled vectors over `p.space`), to the samples of the blocks in `keep`."""
    free = p.free(quantities)
    weight = keep[p.data.block].astype(float)
    low, high = p.space.to_scaled(p.space.low)[free], p.space.to_scaled(p.space.high)[free]
    use = p.data.valid & keep[p.data.block]
    begin = [np.abs(residuals(p.data, p.vectors(start[free][None], free))[0, use]) for start in starts]
    size = ROBUST * min(float(np.median(e)) if len(e) else 0.0 for e in begin) + 1e-9

    def residual(scaled: Array) -> Array:
        return soft(residuals(p.data, p.vectors(scaled, free)), size) * weight

    found = [least_squares(residual, start[free], low, high, iterations=iterations) for start in starts]
    best = min(found, key=lambda s: s.cost)
    full = np.zeros(len(p.space))
    full[free] = best.x
    return Found(full, free, best.cost, best.residual, lambda: slopes(residual, best.x, low, high))


def soft(error: Array, size: float) -> Array:
    """Errors whose squares grow like the error itself beyond `size`, so that few large ones do not rule (pseudo-Huber)."""
    root = np.sqrt(1 + (error / size) ** 2)
    return np.asarray(error * np.sqrt(2 / (1 + root)))


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
    for kt in (0.3, 0.6) if f"motor.kt/{p.joint}" in p.space.names else ():
        values = p.space.nominal.copy()
        values[p.space.names.index(f"motor.kt/{p.joint}")] *= kt
        out.append(p.space.to_scaled(p.space.clip(values)))
    return out


@dataclass(frozen=True)
class Climb:
    """Where the ladder ended."""

    problems: list[Problem]
    """Less the blocks that no model fits."""
    chosen: tuple[str, ...]
    """What is needed, by the names of `identify.joint`."""
    rungs: list[Rung]
    left_out: dict[str, list[int]]
    """Joint to the blocks that were left out: blocked, slipped or broken, since a fit to the rest misses them by far."""
    where: list[list[Array]]
    """Scaled vectors over each problem's space, from everything."""
    errors: list[Array]
    """Held-out squared error by joint and block."""
    stopped: bool = False
    """By Ctrl-C, before all rungs were tried."""


def climb(problems: Sequence[Problem], tick: Tick = quiet, remember: Remember = forget) -> Climb:
    """Drive and plain friction first; then the rung that lowers held-out error most, as long as one truly does.

    Truly: by more than its standard error, and by 5 %. Two halves of the logs are each predicted by a fit to the other.
    Ctrl-C keeps what was climbed so far.
    """
    problems = list(problems)
    chosen: tuple[str, ...] = ()
    kept = fold(problems[0].data)
    where = [starts(p) for p in problems]
    before = [p.errors(p.base) for p in problems]
    rungs = [Rung("as given", _rms(before), 0.0, 0.0, True)]
    left_out: dict[str, list[int]] = {}
    waiting = [r for r in RUNGS if any(p.free(r[1]) for p in problems)]
    try:
        while waiting:
            candidates = waiting[:1] if len(chosen) == 0 or waiting[0][1] == SOUND_AFTER else waiting
            tried = []
            for name, extra in candidates:
                begin = [at + ([_pushed(p, at[0], extra)] if chosen else []) for p, at in zip(problems, where, strict=True)]
                found, after = _tried(problems, chosen + extra, kept, begin, f"{name} on {len(chosen)}", remember)
                tried.append((gain_of(before, after), name, extra, found, after))
                tick(f"{name}: held-out {np.degrees(_rms(after)):.3f} deg")
            tried.sort(key=lambda t: -t[0][0])
            (gain, error), name, extra, found, after = tried[0]
            # the best of several is good by luck too: the largest of k errors is about sqrt(2 ln k) of them;
            # and without the drive's own numbers no other rung can show what it is worth
            luck = max(1.0, float(np.sqrt(2 * np.log(len(tried)))))
            better = gain > max(luck * error, LEAST) or not chosen
            rungs += [Rung(n, _rms(a), g, e, False) for (g, e), n, _, _, a in (tried if not better else [])]
            if better:
                rungs.append(Rung(name, _rms(after), gain, error, True))
                chosen, before, where = chosen + extra, after, found
            waiting = [w for w in waiting if w[1] != extra] if better or extra == SOUND_AFTER else []
            if extra == SOUND_AFTER:
                bad = [outliers(e) for e in before]
                left_out = {p.joint: np.flatnonzero(b).tolist() for p, b in zip(problems, bad, strict=True) if b.any()}
                if left_out:
                    problems = [replace(p, data=without(p.data, ~b)) for p, b in zip(problems, bad, strict=True)]
                    where, before = _tried(problems, chosen, kept, where, "less what no model fits", remember)
                    rungs.append(Rung("  less what no model fits", _rms(before), 0.0, 0.0, True))
    except KeyboardInterrupt:
        if not chosen:
            raise
        return Climb(problems, chosen, rungs, left_out, where, before, stopped=True)
    return Climb(problems, chosen, rungs, left_out, where, before)


def _tried(
    problems: Sequence[Problem],
    quantities: tuple[str, ...],
    kept: NDArray[np.bool_],
    begin: Sequence[list[Array]],
    name: str,
    remember: Remember,
) -> tuple[list[list[Array]], list[Array]]:
    """Fits to everything (a scaled vector by joint), and squared errors by block from a fit to the half that lacks it."""
    found, errors = [], []
    for p, at in zip(problems, begin, strict=True):

        def fitted(p: Problem = p, at: list[Array] = at) -> dict[str, Any]:
            full = solve(p, quantities, np.ones_like(kept), at).x
            first, second = (errors_at(p, solve(p, quantities, half, [full]).x) for half in (kept, ~kept))
            return {"x": full.tolist(), "errors": np.where(kept, second, first).tolist()}

        done = remember(f"{name} of {p.joint}", fitted)
        found.append([np.array(done["x"], float)])
        errors.append(np.array(done["errors"], float))
    return found, errors


def _pushed(p: Problem, full: Array, extra: tuple[str, ...]) -> Array:
    """A start away from where the new quantities have no effect, since friction that is not there has no slope to follow."""
    out = full.copy()
    out[p.free(extra)] += 0.5
    return out


def outliers(errors: Array) -> NDArray[np.bool_]:
    """Blocks whose error is far above the usual; none where more than a third are, as then the model is to blame."""
    size = np.sqrt(errors)
    bad = np.nan_to_num(size) > OUTLIER * np.nanmedian(size)
    return bad if bad.mean() < 1 / 3 else np.zeros(len(bad), dtype=bool)


def errors_at(p: Problem, full: Array) -> Array:
    """Squared error by block at a scaled vector over the problem's space."""
    return p.errors(p.vectors(full[None], list(range(len(full))))[0])


def fold(data: Data) -> NDArray[np.bool_]:
    """Blocks of the first half; the other is every other log, or every other measured block of a few logs."""
    logs = len(data.logs) - 1
    count = int(data.block[-1]) + 1
    if logs < FEW_LOGS:
        measured = np.bincount(data.block, weights=data.valid) > 0.1 * np.bincount(data.block)
        return np.asarray(np.cumsum(measured) % 2 == 1)
    log_of = np.searchsorted(data.block[data.logs[:-1]], np.arange(count), side="right") - 1
    return np.asarray(log_of % 2 == 0)


def _rms(errors: Sequence[Array]) -> float:
    return float(np.mean([np.sqrt(np.nanmean(e)) for e in errors]))


def gain_of(before: Sequence[Array], after: Sequence[Array]) -> tuple[float, float]:
    """Relative fall of the held-out squared error, and its standard error over blocks; mean over joints."""
    falls = np.stack([(b - a) / np.nanmean(b) for b, a in zip(before, after, strict=True)])
    fall = np.nanmean(falls[:, np.isfinite(falls).any(axis=0)], axis=0)
    return float(fall.mean()), float(fall.std() / np.sqrt(max(len(fall), 1)))


def _name(quantity: str, joint: str) -> str:
    name = QUANTITIES[quantity]
    return name if quantity == "delay" else f"{name}/{joint}"


def _quantity(name: str) -> str:
    return next(q for q, full in QUANTITIES.items() if name == full or name.startswith(full + "/"))
