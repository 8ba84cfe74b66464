"""Fits of hypotheses, many at a time: what the tolerances alone explain, and what each cause explains beside them."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gapless.arrays import Array
from gapless.explain.bounded_qp import boxed
from gapless.explain.contest import Contest, Hypothesis
from gapless.twin import quantities

GRID = (-3.0, -1.0, 1.0, 3.0)  # scaled starts
SMALL = 0.3  # scaled: a start that the bounds have brought nearer to nominal than this is none
RADII = (2.0, 0.5)  # scaled units: how far a cause may move in one step
FINALISTS = 6  # causes that are fitted after the screening
CLOSE = 2.5  # times the smallest left: hypotheses that are fitted to the end
ROUNDS = 4  # steps of every finalist, at most: cheap beside the slopes of all tolerances
OUTLIER = 5.0  # floors, or times 1.5 of what is typical of a worse fit (of a normal distribution: its standard deviation)
HOPELESS = 4.0  # times enough: tolerances that leave as much will not explain it with better slopes either
SHARES = (1.0, 0.5, 0.2)  # of a step of the tolerances that are tried
DONE = 1.05  # times what is left after a step: less progress ends a fit


def tolerances(contest: Contest, base: Hypothesis, rounds: int = 3) -> Hypothesis:
    """The best that numbers within their tolerances can do beside the causes of a fit, which stay where they are."""
    fit = base
    for _ in range(rounds):
        full = step(contest, fit, None, 0.0)
        best = min(moved(contest, [(fit, fit.x + share * full) for share in SHARES]), key=lambda f: f.left)
        if best.left * DONE > fit.left:
            return min(fit, best, key=lambda f: f.left)
        fit = best
    return fit


def absorbed(contest: Contest, nominal: Hypothesis, enough: float) -> tuple[Contest, Hypothesis]:
    """What the tolerances explain, iterated until little is left or nothing more is gained."""
    contest = replace(contest, outlier=_outlier(contest, nominal))
    fit = tolerances(contest, moved(contest, [(nominal, nominal.x)])[0])
    for _ in range(3 if fit.left < HOPELESS * enough else 0):
        contest, fit = relinearised(contest, fit)
        before, fit = fit, tolerances(contest, fit)
        if fit.left < 0.8 * enough or fit.left > 0.9 * before.left:
            break
    return contest, fit


def relinearised(contest: Contest, fit: Hypothesis) -> tuple[Contest, Hypothesis]:
    """The same contest and fit with slopes taken where the fit is, and outliers told by what it leaves."""
    contest, fit = settled(contest, fit)
    return linearised(contest, fit, contest.coupled)


def settled(contest: Contest, fit: Hypothesis) -> tuple[Contest, Hypothesis]:
    """The same contest and fit with outliers told by what the fit leaves."""
    contest = replace(contest, outlier=_outlier(contest, fit))
    return contest, moved(contest, [(fit, fit.x)])[0]


def _outlier(contest: Contest, fit: Hypothesis) -> float:
    return contest.loose * OUTLIER * max(1.0, 1.5 * float(np.median(np.abs(fit.residual))))


def linearised(contest: Contest, fit: Hypothesis, affects: NDArray[np.bool_]) -> tuple[Contest, Hypothesis]:
    """The same with slopes taken where the fit is."""
    arena = contest.arena(fit.causes) or ""
    common = [i for i in range(len(contest.variables)) if contest.has("", i)]
    own = [i for i in range(len(contest.variables)) if contest.has(arena, i) and i not in common]
    slopes = np.zeros((len(fit.residual), len(contest.variables)))
    # what a rival model shares with the twin has much the same slopes there, and costs less
    there = fit.residual if not arena else contest.errors([("", fit.x)])[0]
    slopes[:, common] = contest.slopes_of([("", fit.x, there, common)], affects)[0]
    if own:
        slopes[:, own] = contest.slopes_of([(arena, fit.x, fit.residual, own)], contest.local)[0]
    return replace(contest, slopes=slopes), fit


def step(contest: Contest, fit: Hypothesis, own: Array | None, radius: float, rest: bool = True) -> Array:
    """A step of the linearised problem: causes within a radius, everything else (unless it rests) within its tolerance.

    own: slopes of the causes' numbers where the fit is; those of the contest unless given.
    """
    free = contest.numbers(fit.causes)
    low, high = (b.copy() for b in contest.box)
    low[free], high[free] = (b[free] for b in contest.reach)
    down, up = low - fit.x, high - fit.x
    down[free], up[free] = np.maximum(down[free], -radius), np.minimum(up[free], radius)
    lacking = ~contest.present(contest.arena(fit.causes) or "")
    if not rest:
        lacking = np.ones(len(low), dtype=bool)
        lacking[free] = False
    down[lacking] = up[lacking] = 0.0
    hessian, slopes = contest.information, contest.slopes
    gradient = slopes.T @ fit.residual
    if own is not None and free:
        cross = own.T @ slopes
        cross[:, free] = own.T @ own
        hessian = hessian.copy()
        hessian[free], hessian[:, free] = cross, cross.T
        gradient[free] = own.T @ fit.residual
    return boxed(hessian, gradient, down, up)


def compete(contest: Contest, base: Hypothesis, rivals: Sequence[str]) -> list[Hypothesis]:
    """Each rival beside the causes of `base`, screened from a grid and the most promising fitted: best first."""
    met = [c for c in rivals if contest.arena((*base.causes, c)) is not None]
    rivals = [c for c in met if c not in base.causes and contest.visible(c)]
    fits = screened(contest, base, rivals)
    finalists = fits[:FINALISTS] + [f for f in fits[FINALISTS:] if contest.arena(f.causes)]
    fits = moved(contest, [(f, f.x) for f in finalists])
    for turn in range(ROUNDS):
        best = min(f.left for f in fits)
        near = [f for f in fits if turn == 0 or f.left < CLOSE * best]
        fits = [f for f in fits if f not in near] + stepped(contest, near)
        if turn and min(f.left for f in fits) * DONE > best:
            break
    fits.sort(key=contest.evidence)
    return fits


def refined(contest: Contest, fits: Sequence[Hypothesis], rounds: int = ROUNDS) -> tuple[Contest, list[Hypothesis]]:
    """The best fits carried on with slopes taken at the best of them."""
    there, first = relinearised(contest, fits[0])
    fits = [first, *moved(there, [(f, f.x) for f in fits[1:]])]
    near = [f for f in fits if f.left < CLOSE * fits[0].left][:4]
    rest = [f for f in fits if f not in near]
    for _ in range(rounds):
        before = near[0].left
        near = sorted(stepped(there, near), key=there.evidence)
        if near[0].left * DONE > before:
            break
    return there, sorted([*near, *rest], key=there.evidence)


def screened(contest: Contest, base: Hypothesis, rivals: Sequence[str]) -> list[Hypothesis]:
    """Starts, one a rival, by what a linear fit of the rest would leave there: most promising first."""
    low, high = contest.reach
    starts: list[tuple[Hypothesis, Array]] = []
    for cause in rivals:
        mine = contest.causes[cause]
        for g in (*quantities.of(cause).far, *GRID):
            x = base.x.copy()
            x[mine] = np.clip(g, low[mine], high[mine])
            if np.abs(x[mine]).max() > SMALL and not any(np.array_equal(x, o) for f, o in starts if f.causes[-1] == cause):
                starts.append((Hypothesis((*base.causes, cause), x, base.residual), x))
    found = moved(contest, starts)
    mixed = []
    joints = contest.arenas[""].twin.joints
    for cause in rivals:
        if not any(contest.variables[i].name.partition("/")[2] in joints[1:] for i in contest.causes[cause]):
            continue  # nothing to mix
        mine_fits = [f for f in found if f.causes[-1] == cause]
        x = _mixed(contest, base, cause, mine_fits)
        mixed.append((Hypothesis((*base.causes, cause), x, base.residual), x))
    found += moved(contest, mixed)
    found += [Hypothesis((*base.causes, cause), base.x, base.residual) for cause in rivals]
    promise: dict[str, tuple[float, Hypothesis]] = {}
    for f in found:
        d = step(contest, f, None, 1.0)
        left = f.residual + contest.slopes @ d
        value = float(left @ left) / len(left)
        if f.causes[-1] not in promise or value < promise[f.causes[-1]][0]:
            promise[f.causes[-1]] = (value, Hypothesis(f.causes, f.x + d, left))
    return [f for _, f in sorted(promise.values(), key=lambda p: p[0])]


def stepped(contest: Contest, fits: Sequence[Hypothesis]) -> list[Hypothesis]:
    """One step of every fit: slopes of its causes where it is, then the best of a few steps."""
    which = [contest.numbers(f.causes) for f in fits]
    own = contest.slopes_of(
        [(contest.arena(f.causes) or "", f.x, f.residual, w) for f, w in zip(fits, which, strict=True)], contest.local
    )
    tried: list[tuple[Hypothesis, Array]] = []
    for f, s in zip(fits, own, strict=True):
        far, near = (step(contest, f, s, radius) for radius in RADII)
        alone = step(contest, f, s, RADII[0], rest=False)
        tried += [(f, f.x + d) for d in (far, near, 0.5 * far, alone)]
    found, n = moved(contest, tried), 4
    return [min([f, *found[n * i : n * i + n]], key=lambda m: m.left) for i, f in enumerate(fits)]


def moved(contest: Contest, tried: Sequence[tuple[Hypothesis, Array]]) -> list[Hypothesis]:
    """Fits moved to other places."""
    errors = contest.errors([(contest.arena(f.causes) or "", x) for f, x in tried])
    return [Hypothesis(f.causes, x, e) for (f, x), e in zip(tried, errors, strict=True)]


def _mixed(contest: Contest, base: Hypothesis, cause: str, fits: Sequence[Hypothesis]) -> Array:
    """The start in which each joint has the value of the grid that suits its own column best."""
    every = [*fits, base]
    by_column = np.array([(f.residual.reshape(-1, len(contest.floor)) ** 2).sum(axis=0) for f in every])
    best, pooled = by_column.argmin(axis=0), int(by_column.sum(axis=1).argmin())
    joints = contest.arenas[""].twin.joints
    x = base.x.copy()
    for i in contest.causes[cause]:
        place = contest.variables[i].name.partition("/")[2]
        x[i] = every[best[joints.index(place)] if place in joints else pooled].x[i]
    return x
