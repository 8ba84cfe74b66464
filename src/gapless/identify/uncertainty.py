"""What the data cannot tell: intervals, directions left free, parameters at a bound, in words a robot engineer can act on."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from gapless.arrays import Array, Bools, Ints
from gapless.identify.evidence import SELDOM, grown_with, informed
from gapless.identify.sensitivity import MISMATCH, Sensitivity
from gapless.twin import Gaussian, Space, quantities

PRIOR = 5.0  # scaled units: as weak as the fit's own
WRONG = 1.5  # scaled units that a quantity which was not fitted is off by, where it is
WEIGHT = "inertia.mass"
LOOSE = 0.6  # scaled units: with a larger standard deviation the 90 % interval is wider than a real mismatch to either side
TOGETHER = 0.35  # share of the largest component from which a parameter counts as part of a free direction
FINEST = 0.005  # scaled units: no simulation in steps is closer to a robot, however much is measured
ELSEWHERE = 0.5  # scaled units: half a real mismatch


@dataclass(frozen=True)
class Unknown:
    """Parameters that the data leave free, and what that means."""

    parameters: tuple[str, ...]
    meaning: str


def belief(
    space: Space,
    centre: Array,
    every: Sensitivity,
    unlike: Sequence[Sequence[int]] = (),
    halves: Array | None = None,
    finer: Array | None = None,
    instead: Collection[str] = (),
    hiding: Collection[str] = (),
) -> Gaussian:
    """A Gaussian over what was fitted, which counts everything that may be wrong.

    The covariance is that of the most probable numbers, by how long errors last, while what was not fitted may be off within
    its tolerance, and seldom by far, masses all together; how far the fit is from those numbers; what the time step has put
    into them; damping gains that may be as stated; and how far stretches of the logs disagree, since what no model explains,
    fits differently each time.
    Nothing counts as known only because another number should not be as far off as the fit took it.
    Numbers that the logs do not tell are taken back to what the model says, along what they tell of them together.

    Args:
        space: what was fitted.
        centre: scaled.
        every: slopes of everything at the fit.
        unlike: numbers, each time of one quantity, that should be alike: where they are not, something else is in them.
        halves: the fits of either half of the logs, scaled, which show what slopes do not: numbers that wander far along
            curves of equal error. The mean square of their way from the fit is its variance (McCarthy 1969).
        finer: where the numbers would be at half the time step, scaled. To none at all it is about twice as far, and a robot's
            drives have some step of their own: the mean square of all that lies between is 4/3 of the way's.
        instead: quantities that were fitted and may be right, since others may be off instead: errors do not tell them apart.
        hiding: quantities that may have been fitted to something that the model lacks: each number is as fitted or as the model
            says, whatever the others are.
    """
    posed, n = _posed(space, every), len(space)
    information = posed.information
    # joints that share a number have their own, each within its tolerance of it
    shared = np.diag([posed.tolerated[own].mean() if len(own) > 1 else 0.0 for own in posed.members])
    # a step of time: states at its end are up to half a step ahead of forces, and no delay is told from that
    instant = np.diag([every.step**2 / 12 / p.scale**2 if p.unit == "s" else 0.0 for p in space.parameters])
    stated = np.vstack([_damping_as_stated(space, centre), *(_back(space, centre, posed, q) for q in instead)])
    others = shared + instant + stated.T @ stated + np.eye(n) * FINEST**2
    if finer is not None:
        others += 4 / 3 * np.outer(finer - centre, finer - centre)

    def probable(usual: Array) -> tuple[Array, Array, Array]:
        """Covariance if fitted numbers are off by so much, scaled; how far errors, and that, are from the most probable."""
        prior = np.zeros_like(information)
        prior[:n, :n] = expected = _expected(space, usual)
        inverse = np.linalg.inv(information + prior)[:n]
        return inverse[:, :n] + others, inverse @ posed.pull, inverse[:, :n] @ expected @ centre

    covariance, away, back = probable(np.full(n, MISMATCH))
    covariance += np.outer(away, away)
    likely = space.to_scaled(space.clip(space.from_scaled(centre - back)))
    # a prior that the logs have left behind for one number does not hold the others that are known together with it
    beyond, away, back = probable(np.maximum(MISMATCH, np.abs(centre)))
    covariance = _widened(covariance, np.minimum(np.diag(beyond) + (away + back) ** 2, MISMATCH**2))
    if halves is not None:
        covariance = _widened(covariance, np.minimum(((halves - centre) ** 2).mean(axis=0), MISMATCH**2))
    covariance = _widened(covariance, np.diag(covariance) + _moved(space, posed.fitted, every) ** 2)
    hides = np.array([p.quantity in hiding for p in space.parameters])
    covariance = _widened(covariance, np.diag(covariance) + hides * centre**2 / 2)
    centre = np.where(np.diag(covariance) > LOOSE**2, likely, centre)
    for alike in map(list, unlike):  # each is what was fitted, or what the others are: mean and variance of these two
        halfway = (np.median(centre[alike]) - centre[alike]) / 2
        least = np.diag(covariance).copy()
        centre[alike], least[alike] = centre[alike] + halfway, least[alike] + halfway**2
        covariance = _widened(covariance, least)
    return Gaussian(space, centre, (covariance + covariance.T) / 2)


def at_bound(belief: Gaussian) -> Bools:
    """Whether each number is as far as it may go. Shape: (parameters,)."""
    space = belief.space
    value, width = space.clip(space.from_scaled(belief.centre)), 1e-6 * (space.high - space.low)
    return np.asarray((value - space.low < width) | (space.high - value < width))


def _widened(covariance: Array, least: Array) -> Array:
    """A covariance with variances of at least so much, and the same correlations."""
    wider = np.sqrt(np.maximum(1.0, least / np.diag(covariance)))
    return np.asarray(covariance * np.outer(wider, wider))


def _damping_as_stated(space: Space, centre: Array) -> Array:
    """The ways from each fitted damping gain to the one that the model states, viscous friction with the rest; scaled.

    Their sum is seen, and which is which only by details of transmissions and torques that no model has right: each is as
    fitted or as stated, whose mean square about the fit is half of the way's. Shape: (gains, parameters).
    """
    out, values = np.zeros((0, len(space))), space.clip(space.from_scaled(centre))
    for i, p in enumerate(space.parameters):
        viscous = p.name.replace("gains.kd", "friction.viscous")
        if p.quantity != "gains.kd" or viscous not in space.names:
            continue
        way, k = np.zeros(len(space)), space.names.index(viscous)
        moved = values.copy()
        moved[i], moved[k] = p.nominal, values[k] + values[i] - p.nominal
        way[[i, k]] = (space.to_scaled(space.clip(moved)) - centre)[[i, k]]
        out = np.vstack([out, np.clip(np.sqrt(0.5) * way, -MISMATCH, MISMATCH)])  # each as far as it may be off at all
    return out


def _expected(space: Space, usual: Array) -> Array:
    """The inverse covariance of fitted numbers before any log, of which half the variance is shared by all of a quantity.

    Shape: (parameters, parameters). usual: how far each may be off, scaled.
    """
    same = np.array([[p.quantity == q.quantity for q in space.parameters] for p in space.parameters])
    return np.asarray(2 * np.linalg.inv(np.diag(usual**2) + same * MISMATCH**2))


@dataclass(frozen=True)
class _Posed:
    """What everything that was measured says of what was fitted, then of everything else that may be off; scaled."""

    members: list[list[int]]
    """Where in everything each fitted number is."""
    fitted: Array
    """Slopes of what was fitted. Shape: (residuals, fitted)."""
    rest: Ints
    """Where in everything the others are."""
    tolerated: Array
    """Variance of everything by its tolerance."""
    information: Array
    """With how far the others may be off, and nothing of the kind for what was fitted."""
    pull: Array
    """How errors pull at each."""


def _posed(space: Space, every: Sensitivity) -> _Posed:
    places = {name: i for i, name in enumerate(every.space.names)}
    members = [[places[n] for n in p.members or (p.name,)] for p in space.parameters]
    tolerated = np.diff(every.space.tolerated, axis=0)[0] ** 2 / 12  # of a uniform distribution
    allowed, n = _allowed(every, tolerated, members), len(space)
    rest = np.flatnonzero(np.diag(allowed) > 0)
    information = np.zeros((n + len(rest),) * 2)
    information[n:, n:] = np.linalg.inv(allowed[np.ix_(rest, rest)])
    each = np.eye(len(every.space))
    chosen = np.stack([each[own].sum(axis=0) for own in members] + [each[i] for i in rest], axis=1)  # some are shared by joints
    everything, pulls = informed(every)
    information, pull = information + chosen.T @ everything @ chosen, chosen.T @ pulls
    return _Posed(members, every.slopes @ chosen[:, :n], rest, tolerated, information, pull)


def _back(space: Space, centre: Array, posed: _Posed, quantity: str) -> Array:
    """The way to a fitted quantity as the model has it, with what is then most probable of everything else; scaled.

    It is one as probable as the other, and the mean square about the fit is half of the way's. Shape: (parameters,).
    """
    n, way = len(space), np.zeros(len(posed.pull))
    off = np.r_[[p.quantity == quantity for p in space.parameters], np.zeros(len(posed.rest), dtype=bool)]
    way[off] = -centre[off[:n]]
    inner = posed.information[~off]
    inner = inner + np.diag(np.r_[np.full(n, MISMATCH**-2), np.zeros(len(posed.rest))])[~off]
    way[~off] = -np.linalg.solve(inner[:, ~off], inner[:, off] @ way[off])
    return np.asarray(way[:n] * np.sqrt(0.5))


def heavier(space: Space, every: Sensitivity) -> tuple[float, float] | None:
    """Logarithm of how many times as heavy as in the twin all links are, as measured torques say, and its standard deviation.

    None where they were not measured.
    """
    posed, n = _posed(space, every), len(space)
    masses = [k for k, i in enumerate(posed.rest) if every.space.parameters[i].quantity == WEIGHT]
    if every.torque is None or not masses:
        return None
    mean = np.zeros(n + len(posed.rest))
    mean[[n + k for k in masses]] = [every.space.parameters[posed.rest[k]].scale / len(masses) for k in masses]
    prior = np.zeros_like(posed.information)
    prior[:n, :n] = _expected(space, np.full(n, MISMATCH))
    way = np.linalg.solve(posed.information + prior, mean)
    return float(-way @ posed.pull), float(np.sqrt(way @ mean))


def _allowed(every: Sensitivity, tolerated: Array, members: Sequence[Sequence[int]]) -> Array:
    """How far off everything may be that was not fitted, as a covariance; what a fitted number stands for cannot be."""
    space, covariance, fitted = every.space, np.diag(tolerated), {i for own in members for i in own}
    chosen = {space.parameters[i].quantity for i in fitted}
    anywhere = {WEIGHT, *grown_with(chosen)}
    for quantity in {p.quantity for p in space.parameters} - chosen:
        rows = [i for i, p in enumerate(space.parameters) if p.quantity == quantity]
        if quantities.cause(quantity) is not None:
            # positions of servos do not tell masses from torques, so all of them may be off by a real mismatch
            covariance[np.ix_(rows, rows)] += MISMATCH**2 if quantity in anywhere else SELDOM * WRONG**2
    stood_for = {name for i in fitted for name in quantities.stood_for(space.names[i])}
    alone = {own[0] for own in members if len(own) == 1}
    still = [i for i, name in enumerate(space.names) if i in alone or name in stood_for]
    covariance[still], covariance[:, still] = 0.0, 0.0
    return covariance


def _moved(space: Space, fitted: Array, every: Sensitivity) -> Array:
    """How far each number moves between stretches of the logs beyond what errors explain (DerSimonian and Laird 1986).

    Joints are pooled: few stretches tell little about one. Shape: (parameters,), scaled.
    """
    fits, spreads = [], []
    for number in np.unique(every.stretch):
        rows = every.stretch == number
        weighed = every.weighed(fitted, rows)
        information = fitted[rows].T @ weighed
        inverse = np.linalg.inv(information + np.eye(len(space)) / MISMATCH**2)
        fits.append(inverse @ (weighed.T @ every.residual[rows]))
        spreads.append(np.maximum(np.diag(inverse @ information @ inverse), 1e-12))
    ends, weight = np.array(fits), 1 / np.array(spreads)
    away = weight * (ends - (weight * ends).sum(axis=0) / weight.sum(axis=0)) ** 2
    room = weight.sum(axis=0) - (weight**2).sum(axis=0) / weight.sum(axis=0)
    kinds = np.array([p.quantity for p in space.parameters])
    out = np.zeros(len(space))
    for kind in set(kinds) if len(ends) > 1 else ():
        own = kinds == kind
        chance = (len(ends) - 1) * own.sum()  # what errors give on average
        out[own] = np.sqrt(max(0.0, away[:, own].sum() - chance) / room[own].sum())
    return out


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
