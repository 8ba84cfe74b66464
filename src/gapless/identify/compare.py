"""Compare: which numbers moved between two fits of the same robot, and what may have changed.

print(compare("monday", "tuesday"))

Numbers that depend on the recording are not the robot's: another day, gain or amplitude should find the same ones.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gapless.arrays import Array
from gapless.errors import BadInput
from gapless.identify import compare_page, drift
from gapless.identify.result import NINETY, Estimate, Fit
from gapless.identify.uncertainty import LOOSE
from gapless.report import Result, few
from gapless.twin import Gaussian, Parameter, quantities

DRAWS = 4000  # of a belief that is not a Gaussian
CERTAIN = 1e-6  # scaled units: a standard deviation of what is certain


@dataclass(frozen=True)
class Change:
    """One number in both fits."""

    members: tuple[str, ...]
    """The twin's parameters that have it in both fits."""
    unit: str
    a: Estimate
    b: Estimate
    difference: float
    """B less A, in joint standard deviations."""
    identified: bool
    """Whether both recordings determine it."""
    moved: bool
    """Whether both determine it, and it differs by more than the 90 % interval of the difference."""
    ratio: float
    """B over A; not known where one of them is not above zero."""
    ratio_error: float
    """Standard deviation of the ratio's logarithm."""

    @property
    def quantity(self) -> str:
        return self.members[0].partition("/")[0]

    @property
    def places(self) -> tuple[str, ...]:
        """Joints or links that have it; empty for a number of the whole robot."""
        return tuple(place for m in self.members if (place := m.partition("/")[2]))


@dataclass(frozen=True)
class Side:
    """One of the two fits."""

    name: str
    """Its folder, where it was read from one."""
    logs: tuple[str, ...]
    seconds: float
    """That its logs last [s]."""
    heldout: float
    """Held-out error, mean over joints [rad]."""


@dataclass(frozen=True, repr=False)
class Comparison(Result):
    """What moved between two fits."""

    NAME = "comparison"
    PAGE = compare_page

    robot: str
    a: Side
    b: Side
    parameters: dict[str, Change]
    """What both fits have: first what both recordings determine, the one that moved most at the head."""
    determined: int
    """How many of them both recordings determine."""
    moved: int
    """How many of these moved; chance alone moves 10 %."""
    holds: bool
    """Whether chance explains it, so that one model holds in both recordings."""
    changed: list[str]
    """Which must have changed to explain all differences at once, as fits know some combinations better than single numbers."""
    suspicions: list[str]
    """What may have changed between the recordings."""
    unseen: dict[str, str]
    """What neither recording shows, and the motion that would."""
    zeros: dict[str, tuple[float, float]]
    """Joint to its encoder's zero in A and in B, mean over logs, where logs have zeros of their own [rad]."""
    only_a: list[str]
    only_b: list[str]
    """What only one of the fits has."""
    notes: list[str]
    """What makes the comparison less than fair."""


def compare(a: Fit | str | os.PathLike[str], b: Fit | str | os.PathLike[str]) -> Comparison:
    """Which numbers moved between two fits of the same robot; each a fit, or the folder that one was saved to."""
    (name_a, first), (name_b, second) = _loaded(a, "A"), _loaded(b, "B")
    _same_robot(name_a, first, name_b, second)
    one, other = _Numbers(name_a, first), _Numbers(name_b, second)
    pairs = list(_pairs(one, other))
    if not pairs:
        raise BadInput(f"{name_a} and {name_b} have no fitted parameter in common, so there is nothing to compare")
    apart, covariance, widened, growth = _differences(one, other, [(i, k) for _, _, i, k in pairs])
    far = apart / np.sqrt(np.diag(covariance))
    found = {n: _change(both, one, i, other, k, float(z)) for (n, both, i, k), z in zip(pairs, far, strict=True)}
    # what differs by less than a model may be wrong by without being news, is none
    news = np.array([(np.subtract(*one.space.tolerated) / 2)[i] for _, _, i, _ in pairs])
    shifts = drift.explain(found, apart, widened + np.diag(news**2 / 3), growth)
    changes = dict(sorted(found.items(), key=lambda item: (not item[1].identified, -abs(item[1].difference))))
    determined = {n: c for n, c in changes.items() if c.identified}
    holds = not shifts and _usual(determined)
    zeros = _zeros(first, second)
    common = {m for c in changes.values() for m in c.members}
    only_a, only_b = ([n for n, p in f.parameters.items() if not common & {n, *p.shared_by}] for f in (first, second))
    return Comparison(
        robot=first.robot,
        a=_side(name_a, first),
        b=_side(name_b, second),
        parameters=changes,
        determined=len(determined),
        moved=sum(c.moved for c in determined.values()),
        holds=holds,
        changed=[name for s in shifts for name in s.names],
        suspicions=[*drift.meaning(shifts, changes, second), *drift.mount(shifts, first, second, zeros)],
        unseen={n: _shown_by(n) for n, c in changes.items() if not c.a.identified and not c.b.identified},
        zeros={j: (float(x.mean()), float(y.mean())) for j, (x, y) in zeros.items()},
        only_a=only_a,
        only_b=only_b,
        notes=list(_notes(first, second, changes, [*only_a, *only_b])),
    )


def _loaded(given: Fit | str | os.PathLike[str], name: str) -> tuple[str, Fit]:
    if isinstance(given, Fit):
        return name, given
    folder = Path(given)
    missing = [f for f in ("fit.json", "belief.json", "twin.xml") if not (folder / f).is_file()]
    if missing:
        raise BadInput(f"{folder}: not a folder that `gapless fit` wrote, since it has no {missing[0]}")
    return str(folder), Fit.load(folder)


def _same_robot(name_a: str, a: Fit, name_b: str, b: Fit) -> None:
    if a.robot != b.robot:
        raise BadInput(f"{name_a} is a fit of {a.robot} and {name_b} of {b.robot}: only fits of the same robot can be compared")
    other = sorted(set(a.pose) ^ set(b.pose))
    if other:
        raise BadInput(
            f"{name_a} and {name_b} are fits of different robots called {a.robot}: only one of them has the joint {other[0]}"
        )


class _Numbers:
    """A fit's numbers as its belief has them: means, and covariance in the scaled space."""

    def __init__(self, name: str, fit: Fit):
        belief = fit.belief
        strange = [n for n in belief.space.names if n not in fit.parameters]
        if strange:
            raise BadInput(f"{name}: belief.json and fit.json are of different fits, since only one of them has {strange[0]}")
        self.fit, self.space = fit, belief.space
        if isinstance(belief, Gaussian):
            centre, self.covariance = belief.centre, belief.covariance + CERTAIN**2 * np.eye(len(belief.space))
        else:
            drawn = belief.space.to_scaled(belief.sample(DRAWS, np.random.default_rng(0)))
            centre, self.covariance = drawn.mean(axis=0), np.cov(drawn.T).reshape(2 * drawn.shape[1:])
        self.value = self.space.clip(self.space.from_scaled(centre))
        # where a log does not determine a number, the fit may have gone anywhere: as far as it went, nothing is known
        self.widened = self.covariance + np.diag(np.where(np.diag(self.covariance) > LOOSE**2, centre**2, 0.0))

    def on(self, i: int, log: bool) -> tuple[float, float]:
        """A number, and a scaled unit of it: as logarithms or in its unit."""
        p, value = self.space.parameters[i], float(self.value[i])
        if log:
            return math.log(value), p.scale if p.log else p.scale / value
        return value, p.scale * value if p.log else p.scale


def _pairs(a: _Numbers, b: _Numbers) -> Iterator[tuple[str, tuple[str, ...], int, int]]:
    """Each pair of numbers that stand for the same parameters of the twin, by a name, these parameters, and places in the fits.

    Joints that share a number in one fit may not in the other.
    """
    for i, p in enumerate(a.space.parameters):
        for k, q in enumerate(b.space.parameters):
            own = _members(q)
            both = tuple(m for m in _members(p) if m in own)
            if both:
                yield _name(both, p, q), both, i, k


def _differences(a: _Numbers, b: _Numbers, places: list[tuple[int, int]]) -> tuple[Array, Array, Array, Array]:
    """Pairs of numbers, B less A in scaled units of A; their covariance; the same where undetermined numbers say less;
    and what they change by if B is e times A."""
    logs = [a.space.parameters[i].log and b.space.parameters[k].log for i, k in places]
    x, unit_a = np.transpose([a.on(i, log) for (i, _), log in zip(places, logs, strict=True)])
    y, unit_b = np.transpose([b.on(k, log) for (_, k), log in zip(places, logs, strict=True)])
    (rows, columns), ratio = np.transpose(places), unit_b / unit_a

    def joint(one: Array, other: Array) -> Array:
        return np.asarray(one[np.ix_(rows, rows)] + other[np.ix_(columns, columns)] * np.outer(ratio, ratio))

    covariances = joint(a.covariance, b.covariance), joint(a.widened, b.widened)
    return (y - x) / unit_a, *covariances, np.where(logs, 1.0, (x + y) / 2) / unit_a


def _members(p: Parameter) -> tuple[str, ...]:
    return p.members or (p.name,)


def _name(both: tuple[str, ...], *pair: Parameter) -> str:
    """What a pair is called: as a fit calls exactly these parameters, or by listing them."""
    fitted = (p.name for p in pair if set(_members(p)) == set(both))
    quantity, _, first = both[0].partition("/")
    return next(fitted, f"{quantity}/{'+'.join([first, *(m.partition('/')[2] for m in both[1:])])}")


def _change(both: tuple[str, ...], a: _Numbers, i: int, b: _Numbers, k: int, difference: float) -> Change:
    p, q = a.space.parameters[i], b.space.parameters[k]
    one, other = a.fit.parameters[p.name], b.fit.parameters[q.name]
    ratio = error = math.nan
    if a.value[i] > 0 and b.value[k] > 0:
        (x, unit_a), (y, unit_b) = a.on(i, True), b.on(k, True)
        ratio = math.exp(y - x)
        error = math.hypot(unit_a * math.sqrt(a.covariance[i, i]), unit_b * math.sqrt(b.covariance[k, k]))
    identified = one.identified and other.identified
    return Change(both, p.unit, one, other, difference, identified, identified and abs(difference) > NINETY, ratio, error)


def _usual(changes: Mapping[str, Change]) -> bool:
    """Whether chance moves as many of these numbers though none has changed."""
    n, k = len(changes), sum(c.moved for c in changes.values())
    return sum(math.comb(n, m) * 0.1**m * 0.9 ** (n - m) for m in range(k, n + 1)) > drift.RARE


def _zeros(a: Fit, b: Fit) -> dict[str, tuple[Array, Array]]:
    """Joint to its encoder's zero in every log of either fit, where logs have zeros of their own [rad]."""
    if not (a.zeros and b.zeros):
        return {}

    def of(fit: Fit, place: int, joint: str) -> Array:
        shared = next((p.value for n, p in fit.parameters.items() if f"offset.encoder/{joint}" in (n, *p.shared_by)), 0.0)
        return shared + np.array([zeros[place] for zeros in fit.zeros.values()])

    places = [{joint: i for i, joint in enumerate(fit.pose)} for fit in (a, b)]
    return {joint: (of(a, places[0][joint], joint), of(b, places[1][joint], joint)) for joint in a.pose}


def _side(name: str, fit: Fit) -> Side:
    return Side(name, fit.origin.logs, fit.seconds_given, fit.heldout.fit)


def _shown_by(name: str) -> str:
    return quantities.of(name).shows or "no motion is known that shows it alone; `gapless excite` looks for one"


def _notes(a: Fit, b: Fit, changes: Mapping[str, Change], single: list[str]) -> Iterator[str]:
    """What makes two fits differ besides the robot."""
    hashes = [fit.origin.sha256.get(fit.origin.model) for fit in (a, b)]
    if None not in hashes and hashes[0] != hashes[1]:
        yield "the model's files differ between the fits, so numbers may have moved for that reason alone"
    stated = [n for n in sorted({*a.fixed, *b.fixed}) if a.fixed.get(n) != b.fixed.get(n)]
    if stated:
        yield f"{few(stated)} was not stated alike in both fits, and other numbers make up for it: fit both with the same --fix"
    if single:
        yield f"only one of the fits has {few(single)}, and other numbers may have made up for it in the other fit"
    hashes_a, hashes_b = ({fit.origin.sha256.get(log): log for log in fit.origin.logs} for fit in (a, b))
    same = sorted(log for sha, log in hashes_a.items() if sha and sha in hashes_b)
    if same:
        yield f"both fits were made from {few(same)}, so they agree better than two recordings would"
    apart = {j: abs(a.pose[j] - b.pose[j]) for j in a.pose}
    if any(c.quantity.startswith("friction.angle") for c in changes.values()) and max(apart.values()) > drift.TURNED:
        yield "friction that depends on the angle is counted from the middle of each motion, which is not the same in both"
