"""What a gap's logs cannot show: of each cause the smallest mismatch, its own tolerance and all, that is called a gap."""

from bisect import bisect_right
from functools import cache

import numpy as np

from gapless.arrays import Array
from gapless.explain.bounded_qp import boxed
from gapless.explain.contest import Contest
from gapless.identify import DetectionLimit, detection_limit

SIZES = (0.1, 0.2, 0.4, 0.8, 1.6, 3.2)  # scaled units


def unseen(contest: Contest, enough: float) -> list[DetectionLimit]:
    """Each cause put into the model as given at several sizes, and what numbers within their tolerances leave of it.

    What is left grows with the mismatch, roughly: only the sizes on either side of the limit are simulated, begun where the
    slopes expect it. Where replays are dear the slopes are believed, unless they see nothing, and structures are left out.

    Args:
        contest: with slopes at the model as given.
        enough: mean square in units of the floor above which there is a gap.
    """
    needed = float(np.sqrt(enough))  # alone: stick and slip make up to a floor of it, however small the mismatch
    zero = np.zeros(len(contest.space))
    main = {cause: _main(contest, cause) for cause in contest.causes if not (contest.dear and cause in contest.arenas)}
    begun = {a: contest.replayed([((a,) if a else (), zero)])[0].residual for a in contest.arenas if not a or a in main}
    left: dict[str, dict[int, float]] = {cause: {} for cause in main}
    wanted = set[tuple[str, int]]()
    for c, numbers in main.items():
        expected = _expected(contest, numbers, needed)
        if contest.dear and max(expected.values()) > needed:
            left[c] = expected
        else:
            wanted |= {(c, k) for k in expected}
    while wanted:
        tried = sorted(wanted)
        moved = contest.replayed([((c,), _put_in(contest, main[c], SIZES[k])) for c, k in tried])
        for (c, k), fit in zip(tried, moved, strict=True):
            left[c][k] = _rest(contest, fit.residual - begun[contest.arena((c,))])
        wanted = {(c, more) for c, seen in left.items() if (more := _next(seen, needed)) is not None}
    return [detection_limit(contest.space.parameters[main[c][0]], _limit(seen, needed)) for c, seen in left.items()]


def _main(contest: Contest, cause: str) -> list[int]:
    """The variables of a cause's first quantity."""
    numbers = contest.causes[cause]
    quantity = contest.space.parameters[numbers[0]].quantity
    return [i for i in numbers if contest.space.parameters[i].quantity == quantity]


def _put_in(contest: Contest, main: list[int], size: float) -> Array:
    """A mismatch of all variables alike."""
    sign = 1.0 if contest.reach[1][main].min() > SIZES[0] else -1.0
    return np.clip(sign * size * np.isin(np.arange(len(contest.space)), main), *contest.reach)


def _rest(contest: Contest, change: Array) -> float:
    """What numbers within their tolerances leave of a change of the residuals, in floors."""
    rest = change + contest.slopes @ boxed(contest.information, contest.slopes.T @ change, *contest.box)
    return float(np.sqrt(rest @ rest / len(rest)))


def _expected(contest: Contest, main: list[int], needed: float) -> dict[int, float]:
    """The sizes on either side of where enough is left, and what is left of them if slopes held so far."""
    left = cache(lambda k: _rest(contest, contest.slopes @ _put_in(contest, main, SIZES[k])))
    above = int(np.clip(bisect_right(range(len(SIZES)), needed, key=left), 1, len(SIZES) - 1))
    return {above - 1: left(above - 1), above: left(above)}


def _next(left: dict[int, float], needed: float) -> int | None:
    """The size to simulate next; None where the limit lies between two that were, or beyond the ends."""
    above = min((k for k, each in left.items() if each > needed), default=None)
    if above is None:
        return max(left) + 1 if max(left) + 1 < len(SIZES) else None
    return above - 1 if above > 0 and above - 1 not in left else None


def _limit(left: dict[int, float], needed: float) -> float:
    """The size that leaves enough: between two that were simulated, or beyond the largest as it grew last; infinite if none."""
    sizes, rest = [0.0, *SIZES], {-1: 0.0} | left
    above = min((k for k, each in rest.items() if each > needed), default=max(rest))
    slope = (rest[above] - rest[above - 1]) / (sizes[above + 1] - sizes[above])
    return sizes[above + 1] + (needed - rest[above]) / slope if slope > 0 else np.inf
