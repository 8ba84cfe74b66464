"""Everything that may be wrong takes part: how each parameter of a twin, fitted or not, moves its predictions of logs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import eigh

from gapless.arrays import Array, Bools, Ints
from gapless.identify.full_model.window_objective import ROBUST, Objective, typical
from gapless.identify.least_squares import lasting, least_squares
from gapless.logs import Log
from gapless.measure import Split, Windows, holds, runs, soft, soft_slope, windows
from gapless.twin import Space, Twin, quantities

STEPS, SECONDS = 3e6, (10.0, 40.0)  # of twelve joints that slopes may take, and s of the logs that they are taken on
WIDTH = 0.03  # scaled units over which slopes are taken: few, since a torque that saturates bends them
SENSOR = 0.03  # share that torque sensors may be off by, as motors of one type are in strength
NOTHING = 1e-3  # information that is none
MISMATCH = 1.0  # scaled units that a number may be off where the logs do not tell: a mismatch that is met in practice
MOST_ITERATIONS = 3  # of numbers at another time step, which are close by
STRETCHES = 8  # that logs are cut into, each with motion of its own, to see whether they agree


@dataclass(frozen=True)
class Sensitivity:
    """Errors of a twin at a fit, and how they depend on everything. All are in units of the errors' own size."""

    space: Space
    """The parameters that predictions depend on."""
    residual: Array
    """Shape of this and the next two: (residuals,)."""
    stretch: Ints
    """Which stretch of the logs it belongs to."""
    first: Bools
    """Whether it is of the first half of the logs."""
    slopes: Array
    """Shape: (residuals, parameters), scaled."""
    nuisance: Array
    """Slopes of the encoder zeros of single logs and of where windows begin, times how far off these may be."""
    coarse: Array
    """Root mean square of what half the time step changes, in each column's own unit. Shape: (columns,)."""
    step: float = 0.0
    """Of time in the twin [s]."""
    factors: Array | None = None
    """Directions along which all torques and the rotor of one joint grow by the same share, and last all else that is a torque,
    a force or an inertia, such as masses. Shape: (parameters, joints + 1)."""
    torque: "Sensitivity | None" = None
    """The same of how large measured torques are, which weigh a robot; None where they were fitted to or some log has none."""
    blur: Array | None = None
    """Information that slopes seem to have since they are not exact: stick, slip and contact change a little with anything.
    Shape: (parameters, parameters)."""

    def weighed(self, values: Array, rows: Bools | slice = slice(None)) -> Array:
        """What is left of residuals or slopes in some rows once zeros and starts have explained there what they may."""
        n, values = self.nuisance[rows], values[rows]
        return values - n @ np.linalg.solve(np.eye(n.shape[1]) + n.T @ n, n.T @ values) if n.size else values

    def says(self, rows: Bools | slice = slice(None)) -> tuple[Array, Array]:
        """What residuals in some rows say about everything: information, (parameters, parameters), and how they pull.

        Along each direction they count by that share of its information which errors of the slopes have not put there
        (reliability, Fuller 1987).
        """
        weighed = self.weighed(self.slopes, rows)
        information, pull = self.slopes[rows].T @ weighed, weighed.T @ self.residual[rows]
        if self.blur is None:
            return information, pull
        share = len(self.residual[rows]) / len(self.residual)
        unreliable, ways = eigh(self.blur * share, information + NOTHING * np.eye(len(pull)))
        known = information @ ways * np.clip(1 - unreliable, 0.0, 1.0)
        return known @ (information @ ways).T, known @ (ways.T @ pull)


def sensitivity(
    twin: Twin,
    values: Array,
    logs: Sequence[Log],
    split: Split,
    signals: tuple[str, ...],
    zeros: Mapping[int, Array],
    known: Mapping[str, float],
) -> Sensitivity:
    """Slopes of everything at a fit.

    Args:
        twin: the model.
        values: over its space.
        logs: what was measured.
        split: of the logs.
        signals: what is compared.
        zeros: encoder zeros of single logs, by their number [rad].
        known: parameters that cannot be wrong.
    """
    free = (p for p in twin.space.parameters if quantities.of(p.name).repeatable and p.name not in known)
    space = Space(tuple(free))
    trees = 1 if twin.floating else len({int(twin.model.dof_treeid[d.dof]) for d in twin.drives})
    afford = STEPS * twin.model.opt.timestep / (len(space) / trees * twin.model.nv / 12)
    stretches = split.spread(split.logs, float(np.clip(afford, *SECONDS)))
    logged = all("tau" in log and {*twin.joints} <= {*log["tau"].columns} for log in logs)
    weighs = logged and twin.all_servos and "tau" not in signals
    compared = (*signals, "tau") if weighs else signals
    if holds(twin):
        data = runs(twin, logs, split, stretches, compared)
    else:
        data = windows(twin, logs, split, split.blocks(stretches) & split.measured, signals=compared)
    begins = twin.floating and not {"base_pos", "base_vel"} <= set(signals)
    objective = Objective(data, space, values, typical(data, values), bool(zeros), begins)
    x = objective.with_zeros(objective.start, zeros)
    plain, half = objective.plain(x[None])[0], replace(objective, data=data.halved()).plain(x[None])[0]
    # differences are taken before large errors are softened, which bends what is much larger than the errors of a good fit
    every, bends = _both_ways(objective, x, plain)
    columns, samples = len(objective.size), len(data.log)
    torque = np.arange(columns) >= columns - len(twin.joints) * weighs
    rows, needed = np.tile(torque, samples), np.zeros((samples, columns))
    if weighs:
        needed[:, torque] = (
            plain.reshape(samples, columns)[:, torque] + np.nan_to_num(data.measured("tau")) / objective.size[torque]
        )
    factors = _factors(space, values[[twin.space.names.index(name) for name in space.names]], twin.joints)
    every[:, : len(space)] = _along_factors(objective, x, plain, every[:, : len(space)], np.linalg.norm(bends, axis=0), factors)
    torques = None
    if weighs:
        speed = np.gradient(np.nan_to_num(data.measured("q")), axis=0)
        own_slopes = every[rows, : len(space)]
        torques = _torque_sizes(needed[:, torque], plain[rows], own_slopes, speed, space, twin.model.opt.timestep)
    residual, gain = soft(plain[~rows], ROBUST), soft_slope(plain[~rows], ROBUST)
    each = residual.reshape(samples, -1).T
    unit = np.tile([np.sqrt(max(float(np.mean(r**2)), 1e-18) * lasting(r)) for r in each], samples)
    change, every, bends = gain * (half - plain)[~rows], *((gain / unit)[:, None] * s[~rows] for s in (every, bends))
    coarse = objective.size[~torque] * np.sqrt(np.mean(change.reshape(samples, -1) ** 2, axis=0))
    kept = int((~torque).sum())
    return Sensitivity(
        space,
        residual / unit,
        np.repeat(_stretches(data), kept),
        np.repeat(split.first[data.block], kept),
        every[:, : len(space)],
        every[:, len(space) :] * objective.prior[len(space) :],
        coarse,
        twin.model.opt.timestep,
        factors,
        torques,
        _blur((bends**2).sum(axis=0), factors),
    )


def _both_ways(objective: Objective, x: Array, plain: Array) -> tuple[Array, Array]:
    """Slopes by differences to both sides, or to one at a bound, and the standard errors of their entries.

    A smooth change is nearly the same over the first half of the stretch as over the second; what is left of it is an error of
    each of three simulations, or curvature; of parameters only. Shape: (residuals, parameters), scaled.
    """
    low, high = objective.bounds
    colour, affects = objective.coloured.colour, objective.coloured.affects
    groups = colour[None, :] == np.arange(colour.max() + 1)[:, None]
    near, far = x - WIDTH < low, x + WIDTH > high
    ends = np.where(near, 1.0, -1.0), np.where(near, 2.0, np.where(far, -2.0, 1.0))
    one, other = (((objective.plain(np.where(groups, x + WIDTH * end, x)) - plain)[colour] * affects).T for end in ends)
    aside = near | far
    slopes = np.where(aside, other * np.where(near, 1.0, -1.0), other - one) / (2 * WIDTH)
    return slopes, (np.where(aside, other - 2 * one, other + one) / (np.sqrt(12) * WIDTH))[:, : len(objective.space)]


def _blur(variance: Array, factors: Array) -> Array:
    """Information that errors of slopes add, which are none along the factors of torques; see `_along_factors`.

    Shape: (parameters, parameters). variance: of each slope, summed over residuals.
    """
    along = _alongs(factors)
    spread = variance[:, None] * along
    return np.asarray(np.diag(variance) - spread @ np.linalg.pinv(along.T @ spread) @ spread.T)


def _alongs(factors: Array) -> Array:
    """Factors of each joint's torques, and that of all torques, forces and inertias. Shape: (parameters, joints + 1)."""
    return np.column_stack([factors[:, :-1], factors.sum(axis=1)])


def _torque_sizes(needed: Array, plain: Array, slopes: Array, speed: Array, space: Space, step: float) -> Sensitivity:
    """What measured torques say: of each joint, how large they are beside what the twin needs, and beside its speed.

    These two shares are all that is believed of them, and only as far as torques look like that: sensors and currents have
    scales that are a little off, all alike and each by itself.

    Args:
        needed: torque that the twin needs, in units of its errors. Shape: (samples, joints).
        plain: what is needed less what was measured, flat.
        slopes: of that. Shape: (samples * joints, parameters).
        speed: of the joints. Shape: (samples, joints).
        space: of the slopes.
        step: of time in the twin [s].
    """
    error, change = plain.reshape(needed.shape), slopes.reshape(*needed.shape, -1)
    residual, own, scale = [], [], []
    for j in range(needed.shape[1]):
        measured, both = needed[:, j] - error[:, j], np.column_stack([needed[:, j], speed[:, j]])
        left = measured - both @ np.linalg.lstsq(both, measured)[0]
        # each less what is like the other: how torque is shared between gain and damping is no size
        large, beside = (np.linalg.qr(shapes)[0][:, 1] for shapes in (both[:, ::-1], both))
        size = np.array([large @ needed[:, j], np.linalg.norm(needed[:, j])])
        size = np.where(np.abs(size) > 1e-9, size, 1e-9)
        unit, shapes = np.hypot(SENSOR, np.linalg.norm(left) / size), np.stack([large, beside]) / size[:, None]
        residual.append(shapes @ error[:, j] / unit)
        own.append(shapes @ change[:, j] / unit[:, None])
        scale.append(SENSOR * np.array([shapes[0] @ measured, 0.0]) / unit)
    none = np.zeros(2 * needed.shape[1])
    nuisance = np.concatenate(scale)[:, None]
    return Sensitivity(space, np.concatenate(residual), none.astype(int), none > 0, np.concatenate(own), nuisance, none, step)


def _stretches(data: Windows) -> Ints:
    """The stretch of the logs that each sample belongs to."""
    pieces = np.maximum(1, np.round(STRETCHES * np.bincount(data.log) / len(data.log)).astype(int))
    ends = np.array([float(data.clock[data.log == i].max()) for i in range(len(pieces))])
    return np.cumsum([0, *pieces])[data.log] + (data.clock / (ends[data.log] + 1e-9) * pieces[data.log]).astype(int)


def _factors(space: Space, values: Array, joints: Sequence[str]) -> Array:
    """How torques and the rotor of each joint grow by the same share, and last all other forces and inertias; scaled.

    Shape: (parameters, joints + 1).
    """
    weighs = np.array([any(unit in p.unit for unit in ("N", "kg")) for p in space.parameters])
    logarithm, scale = (np.array([getattr(p, name) for p in space.parameters]) for name in ("log", "scale"))
    along = np.where(weighs, np.where(logarithm, 1.0, values) / scale, 0.0)
    places = [p.name.partition("/")[2] if p.unit != "kg" else "" for p in space.parameters]  # links may be called as joints are
    own = np.stack([along * [place == j for place in places] for j in joints], axis=1)
    return np.column_stack([own, along - own.sum(axis=1)])


def _along_factors(objective: Objective, x: Array, plain: Array, slopes: Array, spread: Array, factors: Array) -> Array:
    """Slopes that are right along the factors of each joint's torques and of all forces and inertias together.

    Where little hangs on a joint, hardly any position shows its factor, and none of servos shows that of all. Sums of
    differences of each number alone, which are not exact where torques saturate and joints stick, would say that positions do;
    so these are simulated, and the most probable slopes that agree are taken.

    Args:
        objective: errors of the twin.
        x: where slopes were taken.
        plain: errors there.
        slopes: of each number alone. Shape: (residuals, parameters), scaled.
        spread: how wrong each of these is. Shape: (parameters,).
        factors: of each joint, and last of all else. Shape: (parameters, joints + 1).
    """
    along = _alongs(factors)
    low, high = (end[: len(along)] for end in objective.bounds)
    ends = x[: len(along)] + WIDTH * along.T
    signs = np.where(((ends < low) | (ends > high)).any(axis=1), -1.0, 1.0)[:, None]
    trials = np.tile(x, (len(signs), 1))
    logarithm = np.array([p.log for p in objective.space.parameters])
    trials[:, : len(along)] += np.where(logarithm, WIDTH * signs, np.expm1(WIDTH * signs)) * along.T  # all by the same factor
    change = (objective.plain(trials) - plain).T * signs[:, 0] / WIDTH
    return np.asarray(slopes + (change - slopes @ along) @ np.linalg.pinv(spread[:, None] * along) * spread)


def at_half_step(twin: Twin, space: Space, values: Array, logs: Sequence[Log], split: Split, signals: tuple[str, ...]) -> Array:
    """Where fitted numbers would be in a simulation of half the time step that moves as this one does, scaled.

    What a coarse step does, a fit makes up for by rotors and delays. Shape: (fitted,).
    """
    afford = STEPS * twin.model.opt.timestep / (MOST_ITERATIONS * len(space) * twin.model.nv / 12)
    stretches = split.spread(split.logs, float(np.clip(afford, *SECONDS)))
    if holds(twin):
        data = runs(twin, logs, split, stretches, signals)
    else:
        data = windows(twin, logs, split, split.blocks(stretches) & split.measured, signals=signals)
    objective = Objective(data, space, values, typical(data, values))
    finer, same = replace(objective, data=data.halved()), objective.plain(objective.start[None])
    ends = [
        least_squares(
            lambda x: finer.plain(x) - same, x, *objective.bounds, MISMATCH, MOST_ITERATIONS, 1e-2, objective.coloured
        )
        for x in (objective.start, replace(objective, base=_sooner(twin, space, values)).start)
    ]
    return min(ends, key=lambda end: end.cost).x


def _sooner(twin: Twin, space: Space, values: Array) -> Array:
    """Numbers with half a step less of delay that move nearly the same; over the twin's space.

    Drives that lag by b/kp, where b is all damping, and whose rotors J lag by J/kp in the second order, lag as before with b
    larger by kp and J by b times what the delay is shorter. No slope at a fit shows this way: it is narrow and bends.
    """
    fitted = {name for p in space.parameters for name in p.members or (p.name,)}
    where, out = {name: i for i, name in enumerate(twin.space.names) if name in fitted}, values.copy()
    if "latency.action" not in where:
        return out
    less = min(twin.model.opt.timestep / 2, float(values[where["latency.action"]]))
    out[where["latency.action"]] -= less
    for joint in twin.joints:
        kp, kd, viscous, rotor = (
            where.get(f"{q}/{joint}") for q in ("gains.kp", "gains.kd", "friction.viscous", "armature.inertia")
        )
        if rotor is not None:
            out[rotor] += less * sum(float(values[i]) for i in (kd, viscous) if i is not None)
        damping = viscous if kd is None else kd
        if kp is not None and damping is not None:
            out[damping] += less * float(values[kp])
    return twin.space.clip(out)
