"""Fits of hypotheses, many at a time: what the tolerances alone explain, and what each cause explains beside them."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gapless.arrays import Array, Bools
from gapless.explain.bounded_qp import boxed
from gapless.explain.contest import DIFFERENCE, Contest, Hypothesis
from gapless.identify import colouring
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
        best = min(contest.replayed([(fit.causes, fit.x + share * full) for share in SHARES]), key=lambda f: f.left)
        if best.left * DONE > fit.left:
            return min(fit, best, key=lambda f: f.left)
        fit = best
    return fit


def absorbed(contest: Contest, nominal: Hypothesis, enough: float) -> tuple[Contest, Hypothesis]:
    """What the tolerances explain, iterated until little is left or nothing more is gained."""
    contest = replace(contest, outlier=_outlier(contest, nominal))
    fit = tolerances(contest, contest.again(nominal))
    for _ in range(3 if fit.left < HOPELESS * enough else 0):
        contest, fit = relinearised(contest, fit)
        before, fit = fit, tolerances(contest, fit)
        if fit.left < 0.8 * enough or fit.left > 0.9 * before.left:
            break
    return contest, fit


def relinearised(contest: Contest, fit: Hypothesis) -> tuple[Contest, Hypothesis]:
    """The same contest and fit with slopes taken where the fit is, and outliers told by what it leaves."""
    contest, fit = settled(contest, fit)
    return linearised(contest, fit, contest.affects(local=False), renew=contest.dear), fit


def settled(contest: Contest, fit: Hypothesis) -> tuple[Contest, Hypothesis]:
    """The same contest and fit with outliers told by what the fit leaves."""
    contest = replace(contest, outlier=_outlier(contest, fit))
    return contest, contest.again(fit)


def _outlier(contest: Contest, fit: Hypothesis) -> float:
    return contest.loose * OUTLIER * max(1.0, 1.5 * float(np.median(np.abs(fit.residual))))


def linearised(contest: Contest, fit: Hypothesis, affects: Bools, renew: bool = False) -> Contest:
    """The same contest with slopes taken where a fit is, or only renewed. affects: see `Contest.slopes_of`."""
    arena = contest.arena(fit.causes)
    shared = contest.places[""] >= 0
    common, added = (np.flatnonzero(some).tolist() for some in (shared, (contest.places[arena] >= 0) & ~shared))
    slopes = np.zeros((len(fit.residual), len(contest.space)))
    # what a rival model shares with the twin has much the same slopes there, and costs less
    in_twin = contest.replayed([((), fit.x)])[0] if arena else fit
    slopes[:, common] = _renewed(contest, in_twin, common) if renew else contest.slopes_of([in_twin], [common], affects)[0]
    if added:
        slopes[:, added] = contest.slopes_of([fit], [added], contest.affects(local=True))[0]
    return replace(contest, slopes=slopes)


def _renewed(contest: Contest, fit: Hypothesis, numbers: list[int]) -> Array:
    """Slopes by variables of the twin: what those of a joint do to that joint as it is where a fit is, all else as it was.

    All joints move at once: what the slopes so far say of the others' part in a column is taken off.
    """
    out, affects = np.ascontiguousarray(contest.slopes[:, numbers]), contest.affects(local=True)[numbers]
    chosen = np.flatnonzero(affects.sum(axis=1) == 1)
    own, old, numbers = affects[chosen], out[:, chosen], [numbers[i] for i in chosen]
    colour = colouring(own).colour
    width = np.where(fit.x + DIFFERENCE <= contest.reach[1], DIFFERENCE, -DIFFERENCE)[numbers]
    moves = np.where(colour == np.arange(colour.max() + 1)[:, None], width, 0.0)  # (replays, variables)
    nearby = np.tile(fit.x, (len(moves), 1))
    nearby[:, numbers] += moves
    made = np.array([f.residual for f in contest.replayed([((), x) for x in nearby])])
    surprise = made - fit.residual - moves @ old.T  # (replays, residuals)
    columns, mine = len(contest.floor), own.argmax(axis=1)
    change = surprise.reshape(len(moves), -1, columns)[colour, :, mine].T / width  # (samples, variables)
    out.reshape(-1, columns, len(affects))[:, mine, chosen] += change
    return out


def step(contest: Contest, fit: Hypothesis, slopes: Array | None, radius: float, rest: bool = True) -> Array:
    """A step of the linearised problem: causes within a radius, everything else (unless it rests) within its tolerance.

    slopes: by the causes' numbers where the fit is; those of the contest unless given.
    """
    free = contest.numbers(fit.causes)
    moves = np.isin(np.arange(len(fit.x)), free)
    down, up = np.where(moves, contest.reach, contest.box) - fit.x
    down, up = np.where(moves, np.maximum(down, -radius), down), np.where(moves, np.minimum(up, radius), up)
    fixed = contest.places[contest.arena(fit.causes)] < 0 if rest else ~moves
    down[fixed] = up[fixed] = 0.0
    hessian, gradient = contest.information, contest.slopes.T @ fit.residual
    if slopes is not None and free:
        cross = slopes.T @ contest.slopes
        cross[:, free] = slopes.T @ slopes
        hessian = hessian.copy()
        hessian[free], hessian[:, free] = cross, cross.T
        gradient[free] = slopes.T @ fit.residual
    return boxed(hessian, gradient, down, up)


def compete(contest: Contest, base: Hypothesis, rivals: Sequence[str]) -> list[Hypothesis]:
    """Each rival beside the causes of `base`, screened from a grid and the most promising fitted: best first."""
    taken = contest.arena(base.causes)  # causes that need different models cannot meet in one
    rivals = [c for c in rivals if c not in base.causes and not (taken and c in contest.arenas)]
    fits = screened(contest, base, [c for c in rivals if contest.visible(c)])
    most = FINALISTS // 2 if contest.dear else FINALISTS
    finalists = fits[:most] + [f for f in fits[most:] if contest.arena(f.causes)]
    fits = contest.replayed([(f.causes, f.x) for f in finalists])
    for turn in range(ROUNDS if fits else 0):
        best = min(f.left for f in fits)
        near = [f for f in fits if turn == 0 or f.left < CLOSE * best]
        fits = [f for f in fits if f not in near] + stepped(contest, near)
        if turn and min(f.left for f in fits) * DONE > best:
            break
    fits.sort(key=contest.evidence)
    return fits


def refined(contest: Contest, fits: Sequence[Hypothesis]) -> tuple[Contest, list[Hypothesis]]:
    """The best fits carried on with slopes taken at the best of them."""
    contest, first = relinearised(contest, fits[0])
    fits = [first, *contest.replayed([(f.causes, f.x) for f in fits[1:]])]
    near = [f for f in fits if f.left < CLOSE * fits[0].left][:4]
    rest = [f for f in fits if f not in near]
    for _ in range(ROUNDS):
        before = near[0].left
        near = sorted(stepped(contest, near), key=contest.evidence)
        if near[0].left * DONE > before:
            break
    return contest, sorted([*near, *rest], key=contest.evidence)


def screened(contest: Contest, base: Hypothesis, rivals: Sequence[str]) -> list[Hypothesis]:
    """Starts, one a rival, by what a linear fit of the rest would leave there: most promising first."""
    low, high = contest.reach
    starts: list[tuple[tuple[str, ...], Array]] = []
    for cause in rivals:
        mine = contest.causes[cause]
        vectors: list[Array] = []
        for g in (*quantities.of(cause).far, *_grid(contest, base, cause)):
            x = base.x.copy()
            x[mine] = np.clip(g, low[mine], high[mine])
            if np.abs(x[mine]).max() > SMALL and not any(np.array_equal(x, other) for other in vectors):
                vectors.append(x)
        starts += [((*base.causes, cause), x) for x in vectors]
    fits = contest.replayed(starts)
    others = contest.arenas[""].twin.joints[1:]  # of one joint there is nothing to mix
    mixed = [c for c in rivals if any(contest.owners[i] in others for i in contest.causes[c])]
    fits += contest.replayed([((*base.causes, c), _mixed(contest, base, c, fits)) for c in mixed])
    fits += [replace(base, causes=(*base.causes, c)) for c in rivals]
    best: dict[str, Hypothesis] = {}
    for f in fits:
        d = step(contest, f, None, 1.0)
        start = Hypothesis(f.causes, f.x + d, f.residual + contest.slopes @ d)
        best[f.causes[-1]] = min(best.get(f.causes[-1], start), start, key=lambda h: h.left)
    return sorted(best.values(), key=lambda h: h.left)


def _grid(contest: Contest, base: Hypothesis, cause: str) -> list[float]:
    """Scaled starts of a cause; where replays are dear only those on the side to which the slopes point, if these see it."""
    start = replace(base, causes=(*base.causes, cause))
    side = float(step(contest, start, None, 1.0)[contest.causes[cause]].sum()) if contest.dear else 0.0
    return [g for g in GRID if g * side >= 0]


def stepped(contest: Contest, fits: Sequence[Hypothesis]) -> list[Hypothesis]:
    """One step of every fit: slopes of its causes where it is, then the best of a few steps."""
    every = _slopes_about(contest, fits)
    tried: list[tuple[tuple[str, ...], Array]] = []
    for f, slopes in zip(fits, every, strict=True):
        far, near = (step(contest, f, slopes, radius) for radius in RADII)
        alone = step(contest, f, slopes, RADII[0], rest=False)
        tried += [(f.causes, f.x + d) for d in (far, near, 0.5 * far, alone)]
    trials, n = contest.replayed(tried), 4
    return [min([f, *trials[n * i : n * i + n]], key=lambda h: h.left) for i, f in enumerate(fits)]


def _slopes_about(contest: Contest, fits: Sequence[Hypothesis]) -> list[Array]:
    """Slopes of each fit by the numbers of its causes, taken where it is; where that is dear, those of links as they were.

    A link's mass acts in proportion wherever the fit is, and each link takes a replay of its own.
    """
    affects = contest.affects(local=True)
    kept = [bool(owner) and affects[i].sum() > 1 and contest.dear for i, owner in enumerate(contest.owners)]
    numbers = [contest.numbers(f.causes) for f in fits]
    fresh = contest.slopes_of(fits, [[i for i in each if not kept[i]] for each in numbers], affects)
    out = []
    for each, slopes in zip(numbers, fresh, strict=True):
        every = contest.slopes[:, each]
        every[:, [not kept[i] for i in each]] = slopes
        out.append(every)
    return out


def _mixed(contest: Contest, base: Hypothesis, cause: str, fits: Sequence[Hypothesis]) -> Array:
    """The start of a cause in which each joint has the value of the grid that suits its own column best."""
    every = [*(f for f in fits if f.causes[-1] == cause), base]
    by_column = np.array([(f.residual.reshape(-1, len(contest.floor)) ** 2).sum(axis=0) for f in every])
    best, pooled = by_column.argmin(axis=0), int(by_column.sum(axis=1).argmin())
    joints = contest.arenas[""].twin.joints
    x = base.x.copy()
    for i in contest.causes[cause]:
        owner = contest.owners[i]
        x[i] = every[best[joints.index(owner)] if owner in joints else pooled].x[i]
    return x
