"""Which numbers that were not fitted are off, all joints alike or each by itself: the evidence of the errors of a fit.

A fit that lacks the true cause puts it into what it has. By slopes of everything, how probable the errors are (MacKay 1992)
is known at once for every quantity that might be off as well; what is probable by far is then fitted for real.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from gapless.arrays import Array, Bools
from gapless.identify.per_joint.kernel import QUANTITIES
from gapless.identify.sensitivity import MISMATCH, Sensitivity
from gapless.twin import Space, quantities

SELDOM = 0.15  # how probable it is that a quantity which was not fitted is off everywhere
DECISIVE = np.log(100.0)  # of evidence (Jeffreys 1961)
LEAST_ROOM = 1e-3  # scaled units


@dataclass(frozen=True)
class Suspect:
    """A quantity that is off."""

    quantity: str
    own: bool
    """Each joint or link by a number of its own, rather than all alike."""
    evidence: float
    """Logarithm of how many times as probable that is as that all are within their tolerances."""
    rivals: tuple[str, ...] = ()
    """Quantities that the errors spoke for by far too, and no longer do with this one: it may be one of them instead."""


def off(space: Space, alike: Collection[str], own: Collection[str]) -> Array:
    """How far everything may be off, as a covariance in scaled units.

    All are within their tolerances of the model; quantities `alike` are off together by a real mismatch besides, and so are
    those of their `own`, which also are so one by one; and with either what grows with something that they stand for.
    """
    tolerated = np.diff(space.tolerated, axis=0)[0] ** 2 / 12  # variance of a uniform distribution
    covariance = np.diag(np.maximum(tolerated, LEAST_ROOM**2))
    alike, own = ({*fitted, *grown_with(fitted)} for fitted in (alike, own))
    for quantity in {*alike, *own}:
        rows = [i for i, p in enumerate(space.parameters) if p.quantity == quantity]
        covariance[np.ix_(rows, rows)] += MISMATCH**2
        covariance[rows, rows] += MISMATCH**2 * (quantity in own and len(rows) > 1)
    return covariance


def informed(every: Sensitivity, rows: Bools | slice = slice(None)) -> tuple[Array, Array]:
    """What errors say about everything: information, (parameters, parameters), and how they pull, (parameters,).

    rows: of which errors; how large torques are counts in any case.
    """
    information, pull = np.zeros((len(every.space),) * 2), np.zeros(len(every.space))
    for data, own in [(every, rows), *([(every.torque, slice(None))] if every.torque else [])]:
        more, way = data.says(own)
        information, pull = information + more, pull + way
    return information, pull


def stood_for(fitted: Iterable[str]) -> set[str]:
    """Quantities that a fit puts into those it has."""
    return {name for quantity in fitted for name in quantities.of(quantity).stands_for}


def grown_with(fitted: Iterable[str]) -> set[str]:
    """Quantities that grow with those which a fit puts into the ones it has: a stronger motor has a higher limit too."""
    return {name for quantity in stood_for(fitted) for name in quantities.of(quantity).scales}


def suspects(every: Sensitivity, modes: Mapping[str, bool]) -> list[Suspect]:
    """The quantities that errors speak for by far, each time the most probable one added to those before.

    Args:
        every: slopes of everything at the fit.
        modes: quantities that were fitted; True for those with numbers of each joint's own.
    """
    space, out = every.space, list[Suspect]()
    information, pull = informed(every)
    count = {q: sum(p.quantity == q for p in space.parameters) for q in dict.fromkeys(p.quantity for p in space.parameters)}
    judged = {q for rung in list(quantities.rungs().values())[2:] for q in rung if q in QUANTITIES}  # by rungs beyond the plain
    asked = [q for q in count if quantities.cause(q) and q not in stood_for(modes) and q not in judged]

    def probable(modes: Mapping[str, bool]) -> float:
        room = off(space, [q for q, own in modes.items() if not own], [q for q, own in modes.items() if own])
        root = np.linalg.cholesky(room)
        inner = np.linalg.cholesky(np.eye(len(space)) + root.T @ information @ root)
        pulled = np.linalg.solve(inner, root.T @ pull)
        return float(pulled @ pulled / 2 - np.log(np.diag(inner)).sum())

    now, base = dict(modes), probable(modes)
    while True:
        trials = [(q, own) for q in asked for own in (False, True) if q not in now or (own and not now[q])]
        trials = [(q, own) for q, own in trials if not own or count[q] > 1]
        odds = np.log(SELDOM / (1 - SELDOM))
        found = [(probable({**now, q: own}) + odds * (1 + (own and q not in now)), q, own) for q, own in trials]
        best = max(found, default=(-np.inf, "", False))
        decisive = {q for value, q, _ in found if value - base > DECISIVE} - {best[1]}
        out = [replace(s, rivals=tuple(q for q in s.rivals if q not in decisive)) for s in out]  # those are off as well
        if not best[0] - base > DECISIVE:
            return out
        others = tuple(sorted(decisive.difference(now)))
        out = [s for s in out if s.quantity != best[1]] + [Suspect(best[1], best[2], best[0] - base, others)]
        now[best[1]], base = best[2], best[0]
