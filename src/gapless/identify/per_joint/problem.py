"""Joints fitted alone, along the measured trajectory: one by one, or as a team that shares its values."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

import numpy as np

from gapless.arrays import Array, Bools
from gapless.identify.least_squares import least_squares, slopes
from gapless.identify.per_joint.kernel import PLACE, QUANTITIES, Data, residuals
from gapless.measure import mean_by, soft
from gapless.robots import is_position_servo
from gapless.twin import Latency, Parameter, Space, Twin

ROBUST = 1.5  # times the median error: beyond it errors count less than their square
NATURAL = (10.0, 20.0, 40.0)  # rad/s: how fast a servo may be when its gain is not to be trusted
DELAY = "latency.action"
AS_GOOD = 0.02  # share of the squared error by which a fit from another start may be worse and still be as good


@dataclass(frozen=True)
class Problem:
    """One joint's fit: its samples, and the twin's parameters that it is about."""

    joint: str
    data: Data
    space: Space
    """The joint's own parameters among the twin's."""
    base: Array
    """Vector of the simulation where nothing is fitted. Shape: (quantities,)."""
    delay: str = DELAY
    """The parameter that delays its commands."""

    def free(self, quantities: Sequence[str]) -> list[int]:
        """Places in `space` of the quantities that this joint has."""
        names = dict.fromkeys(_name(q, self.joint, self.delay) for q in quantities)
        return [self.space.names.index(n) for n in names if n in self.space.names]

    def vectors(self, scaled: Array, free: list[int]) -> Array:
        """Vectors of the simulation for scaled values of some parameters. Shape: (k, quantities)."""
        full = np.zeros((len(scaled), len(self.space)))
        full[:, free] = scaled
        values = self.space.clip(self.space.from_scaled(full))
        out = np.tile(self.base, (len(scaled), 1))
        for i in free:
            out[:, PLACE[self.space.parameters[i].quantity]] = values[:, i]
        return out

    def at_scaled(self, full: Array, quantities: Sequence[str]) -> Array:
        """The simulation's vector at a scaled vector over `space`, all but some quantities left as they are."""
        free = self.free(quantities)
        return self.vectors(full[free][None], free)[0]

    def put(self, scaled: Array, values: Mapping[str, float]) -> Array:
        """A scaled vector over `space` with some quantities set to values, within their bounds."""
        full = self.space.from_scaled(scaled)
        for quantity, value in values.items():
            full[self.free((quantity,))] = value
        return self.space.to_scaled(self.space.clip(full))

    def at(self, quantity: str, value: float) -> Problem:
        """The same problem with a quantity held at a value."""
        base = self.base.copy()
        base[PLACE[quantity]] = value
        return replace(self, base=base)

    def errors(self, vector: Array) -> Array:
        """Squared error by block, NaN where a block has no valid samples. Shape: (blocks,)."""
        square = residuals(self.data, vector[None])[0] ** 2
        valid = self.data.valid
        return mean_by(self.data.block[valid], square[valid, None], self.data.blocks)[:, 0]


def problem(
    twin: Twin, joint: str, data: Data, known: Mapping[str, float] | None = None, more: Sequence[Parameter] = ()
) -> Problem:
    """The fit of one joint of a twin, with parameters that it may get besides its own; what is known keeps its value."""
    known = known or {}
    base = np.zeros(len(QUANTITIES))
    base[PLACE["friction.stribeck_speed"]], base[PLACE["motor.limit"]], base[PLACE["motor.strength"]] = 0.1, 1e9, 1.0
    # a servo's strength and gain are one number, as are a stated gain and its motor's constant; a torque drive has no gain
    electric = f"motor.kt/{joint}" in twin.space.names
    fixed = {"motor.strength"} if data.servo else {"gains.kp", "gains.kd"}
    if electric:
        fixed = {"gains.kp", "gains.kd", "motor.strength", "motor.limit", "motor.voltage"}
    mine = next(d for d in twin.drives if d.name == joint)
    several = np.count_nonzero(twin.model.dof_treeid == twin.model.dof_treeid[mine.dof]) > 1
    if several or (data.servo and not electric):
        # it moves the load of the other joints too, which a joint alone does not see; and a stiff servo hardly shows it
        fixed.add("offset.encoder")
    own = []
    there = {p.name: p for p in twin.space.parameters}
    offered = {p.name: p for p in more} | there
    loose = offered.get(f"flex.damping/{joint}")
    if loose is not None:  # more than critical damping makes a spring a rigid joint, and a soft one at that
        rotor, link = base[PLACE["armature.inertia"]] + 1e-4, float(np.median(data.series.inertia))
        critical = 2 * np.sqrt(offered[f"flex.stiffness/{joint}"].nominal * rotor * link / (rotor + link))
        offered[loose.name] = replace(loose, high=max(float(critical), loose.nominal))
    delay = delay_of(twin, joint)
    for quantity in QUANTITIES:
        name = _name(quantity, joint, delay)
        if name in there:
            base[PLACE[quantity]] = known.get(name, there[name].nominal)
        if name in offered and quantity not in fixed and name not in known:
            own.append(offered[name])
    return Problem(joint, data, Space(tuple(own)), base, delay)


@dataclass(frozen=True)
class Found:
    """Where the fit of a team, joints that share their values, ended."""

    x: Array
    """Scaled, over the space of each of its problems."""
    free: list[int]
    """Places in it that were fitted."""
    cost: float
    residual: Array
    """Joint after joint, in units of the usual error of each."""
    jacobian: Array
    """Slopes of the residuals, where they were asked for, over what was fitted, scaled. Shape: (residuals, parameters)."""
    rivals: list[Array]
    """Where other starts ended that are as good, over what was fitted."""


Team = Sequence[Problem]
"""Problems of joints with the same drive in the model, that share their values; often just one."""


def solve(
    team: Team,
    quantities: Sequence[str],
    keep: Bools,
    starts: Sequence[Array],
    iterations: int = 20,
    with_slopes: bool = False,
) -> Found:
    """The best fit over several starts (scaled vectors over the problems' space), to the samples of the blocks in `keep`."""
    one = team[0]
    free = one.free(quantities)
    low, high = (end[free] for end in one.space.bounds)
    sizes = [_usual(p, keep, [p.vectors(start[free][None], free) for start in starts]) for p in team]
    weights = [keep[p.data.block] / size for p, size in zip(team, sizes, strict=True)]

    def residual(scaled: Array) -> Array:
        each = zip(team, sizes, weights, strict=True)
        parts = [soft(residuals(p.data, p.vectors(scaled, free)), size) * weight for p, size, weight in each]
        return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)

    found = [least_squares(residual, start[free], low, high, iterations=iterations) for start in starts]
    good = [s for s in found if s.cost <= (1 + AS_GOOD) * min(s.cost for s in found)]
    best = good[0]  # of starts as good as each other the first, since the prior holds a fit near where it began
    full = np.zeros(len(one.space))
    full[free] = best.x
    jacobian = slopes(residual, best.x, low, high) if with_slopes else np.empty((0, len(free)))
    return Found(full, free, best.cost, best.residual, jacobian, [s.x for s in good[1:]])


def _usual(p: Problem, keep: Bools, vectors: Sequence[Array]) -> float:
    """The error beyond which errors count less than their square, from the best of several vectors [rad]."""
    use = p.data.valid & keep[p.data.block]
    errors = [np.abs(residuals(p.data, v)[0, use]) for v in vectors]
    return ROBUST * min(float(np.median(e)) if len(e) else 0.0 for e in errors) + 1e-9


def alike(twin: Twin, known: Mapping[str, float] | None = None) -> list[list[int]]:
    """Numbers of the joints to which the model gives the same drive: one actuator type, as far as it can tell."""
    out: dict[tuple[object, ...], list[int]] = {}
    for i, d in enumerate(twin.drives):
        kind = [
            (p.quantity, p.nominal, p.low, p.high, (known or {}).get(p.name))
            for p in twin.space.parameters
            if p.name == f"{p.quantity}/{d.name}" and p.quantity in QUANTITIES
        ]
        out.setdefault((is_position_servo(twin.model, d.actuator), delay_of(twin, d.name), *kind), []).append(i)
    return list(out.values())


def starts(team: Team) -> list[Array]:
    """Where to begin: the nominal model, and servos of several speeds where the gain may be far off."""
    p = team[0]
    out = [np.zeros(len(p.space))]
    kp, kd = (_name(q, p.joint) for q in ("gains.kp", "gains.kd"))
    if p.data.servo and kp in p.space.names:
        mass = float(np.median([np.median(t.data.series.inertia) for t in team])) + p.base[PLACE["armature.inertia"]]
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


def errors_at(p: Problem, full: Array, quantities: Sequence[str]) -> Array:
    """Squared error by block at a scaled vector over the problem's space, of which only some quantities are fitted."""
    return p.errors(p.at_scaled(full, quantities))


def _name(quantity: str, joint: str, delay: str = DELAY) -> str:
    return delay if quantity == DELAY else f"{quantity}/{joint}"


def delay_of(twin: Twin, joint: str) -> str:
    """The parameter that delays a joint's commands: the robot's, or that of the joint's bus."""
    buses = next((m.buses for m in twin.mechanisms if isinstance(m, Latency)), {})
    return next((f"{DELAY}/{bus}" for bus, pattern in buses.items() if fnmatch.fnmatchcase(joint, pattern)), DELAY)


def settle(twin: Twin, teams: Sequence[Team], chosen: tuple[str, ...], keep: Bools, begin: Sequence[list[Array]]) -> Array:
    """Values over the twin's space, with one delay a bus, from a fit of each team to the blocks in `keep`."""
    own = [solve(team, chosen, keep, start, 8, with_slopes=True) for team, start in zip(teams, begin, strict=True)]
    values = _joined(twin, teams, own, own)
    delays = {p.delay: twin.space.names.index(p.delay) for team in teams for p in team if p.delay in twin.space.names}
    if DELAY in chosen and delays:
        # joints of a bus share one delay: with that settled, the rest of each is fitted again from where it was
        settled = values[list(delays.values())]
        rest = tuple(q for q in chosen if q != DELAY)
        held = [[p.at(DELAY, float(values[delays[p.delay]])) for p in team] for team in teams]
        again = [solve(team, rest, keep, [f.x], iterations=5) for team, f in zip(held, own, strict=True)]
        values = _joined(twin, teams, again, own)
        values[list(delays.values())] = settled
    return values


def _joined(twin: Twin, teams: Sequence[Team], ends: Sequence[Found], sharp: Sequence[Found]) -> Array:
    """All joints' values as one vector; a delay that they share is their mean, weighted by how sharply each sees it.

    ends: where each team's fit ended. sharp: with the slopes that weigh.
    """
    values = twin.space.nominal.copy()
    seen: dict[str, list[tuple[float, float]]] = {}
    for team, end, slopes_of in zip(teams, ends, sharp, strict=True):
        noise = max(float(slopes_of.residual @ slopes_of.residual), 1e-12)
        for p in team:
            fitted = p.space.clip(p.space.from_scaled(end.x))
            for i in end.free:
                slope = slopes_of.jacobian[:, slopes_of.free.index(i)]
                seen.setdefault(p.space.names[i], []).append((float(fitted[i]), float(slope @ slope) / noise + 1e-300))
    for name, pairs in seen.items():
        weights = np.array([w for _, w in pairs])
        values[twin.space.names.index(name)] = float(np.array([v for v, _ in pairs]) @ weights / weights.sum())
    return values


def labels(team: Team, free: Sequence[int], twin: Twin) -> tuple[str, ...]:
    """Names of what a team shares, in the order of its problems' space."""
    names = [team[0].space.names[i] for i in free]
    which = label([p.joint for p in team], twin.joints)
    return tuple(f"{n.removesuffix(team[0].joint)}{which}" if n.endswith(f"/{team[0].joint}") else n for n in names)


def label(joints: Sequence[str], among: Sequence[str]) -> str:
    """Several joints in a word: a pattern that matches them and no other, if there is one."""
    start, end = _common(joints), _common([j[::-1] for j in joints])[::-1]
    patterns = [p for p in ("*", f"*{end}", f"{start}*") if set(fnmatch.filter(among, p)) == set(joints)]
    return joints[0] if len(joints) == 1 else patterns[0] if patterns else "+".join(joints)


def _common(words: Sequence[str]) -> str:
    """How all of the words begin."""
    return "".join(c[0] for c in takewhile(lambda c: len(set(c)) == 1, zip(*words, strict=False)))


def shared(twin: Twin, teams: Sequence[Team], quantities: Sequence[str]) -> Space:
    """What is fitted, over the twin's parameters: joints of a team share theirs."""
    space, names = twin.space, set()
    for team in teams:
        free = team[0].free(quantities)
        for i, label in zip(free, labels(team, free, twin), strict=True):
            members = [p.space.names[i] for p in team]
            if label not in members:
                space = space.join(label, members)
            names.add(label)
    return Space(tuple(p for p in space.parameters if p.name in names), space.fixed)
