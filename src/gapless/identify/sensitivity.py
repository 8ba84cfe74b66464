"""Everything that may be wrong takes part: how each parameter of a twin, fitted or not, moves its predictions of logs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from gapless.arrays import Array, Bools, Ints
from gapless.identify.full_model.window_objective import ROBUST, Objective, typical
from gapless.identify.least_squares import slopes
from gapless.logs import Log
from gapless.measure import Split, Windows, holds, runs, soft, soft_slope, windows
from gapless.twin import Space, Twin, quantities

STEPS, SECONDS = 3e6, (10.0, 40.0)  # of twelve joints that slopes may take, and s of the logs that they are taken on
WIDTH = 0.03  # scaled units over which slopes are taken: few, since a torque that saturates bends them
SENSOR = 0.03  # share that torque sensors may be off by, as motors of one type are in strength
FLAT = 0.1  # share of what numbers do one by one that they may do together and still count as a factor that does nothing
STRETCHES = 8  # that logs are cut into, each with motion of its own, to see whether they agree


@dataclass(frozen=True)
class Sensitivity:
    """Errors of a twin at a fit, and how they depend on everything. All are in units of the errors' own size."""

    space: Space
    """The parameters that predictions depend on."""
    residual: Array
    """Shape of this and the next three: (residuals,)."""
    half_step: Array
    """What half the time step changes."""
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
    torque: "Sensitivity | None" = None
    """The same of torques that were measured but not fitted to, which weigh a robot; None where some log has none."""

    def weighed(self, values: Array, rows: Bools | slice = slice(None)) -> Array:
        """What is left of residuals or slopes in some rows once zeros and starts have explained there what they may."""
        n, values = self.nuisance[rows], values[rows]
        return values - n @ np.linalg.solve(np.eye(n.shape[1]) + n.T @ n, n.T @ values) if n.size else values


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
    plain = objective.plain(x[None])[0]
    # differences are taken before large errors are softened, which bends what is much larger than the errors of a good fit
    residual, gain = soft(plain, ROBUST), soft_slope(plain, ROBUST)
    every = gain[:, None] * slopes(objective.plain, x, *objective.bounds, objective.coloured, difference=WIDTH)
    half = gain * (replace(objective, data=data.halved()).plain(x[None])[0] - plain)
    columns, samples = len(objective.size), len(data.log)
    torque, measured = np.arange(columns) >= columns - len(twin.joints) * weighs, np.zeros((samples, columns))
    if weighs:
        measured[:, torque] = np.nan_to_num(data.measured("tau")) / objective.size[torque]
    needed = gain * np.where(torque, plain.reshape(samples, columns) + measured, 0.0).ravel()
    own = values[[twin.space.names.index(name) for name in space.names]]
    every[:, : len(space)] = _with_factor(space, own, every[:, : len(space)], needed, np.tile(torque, samples))
    unit = np.array([np.sqrt(max(float(np.mean(r**2)), 1e-18) * lasting(r)) for r in residual.reshape(samples, columns).T])
    size, coarse = np.tile(unit, samples), objective.size * np.sqrt(np.mean(half.reshape(samples, columns) ** 2, axis=0))
    stretch, first = np.repeat(_stretches(data), columns), np.repeat(split.first[data.block], columns)
    scale = SENSOR * gain * measured.ravel()
    nuisance = np.column_stack([every[:, len(space) :] * objective.prior[len(space) :], scale]) / size[:, None]

    def part(of: Bools) -> Sensitivity:
        """What there is about some of the columns."""
        rows = np.tile(of, samples)
        errors, finer, own = residual[rows] / size[rows], half[rows] / size[rows], every[rows, : len(space)] / size[rows, None]
        free = nuisance[rows][:, np.abs(nuisance[rows]).max(axis=0) > 0]
        return Sensitivity(space, errors, finer, stretch[rows], first[rows], own, free, coarse[of], twin.model.opt.timestep)

    return replace(part(~torque), torque=part(torque)) if weighs else part(~torque)


def _stretches(data: Windows) -> Ints:
    """The stretch of the logs that each sample belongs to."""
    pieces = np.maximum(1, np.round(STRETCHES * np.bincount(data.log) / len(data.log)).astype(int))
    ends = np.array([float(data.clock[data.log == i].max()) for i in range(len(pieces))])
    return np.cumsum([0, *pieces])[data.log] + (data.clock / (ends[data.log] + 1e-9) * pieces[data.log]).astype(int)


def _with_factor(space: Space, values: Array, slopes: Array, needed: Array, torque: Bools) -> Array:
    """Slopes that are exact along a factor of all torques and inertias, where positions are those of servos.

    No position shows that factor, and torques grow with it. Differences of each number alone, which are not exact where torques
    saturate and joints stick, would say that positions do. Springs of the model and torques that are commanded break this: then
    slopes stay as they are.

    Args:
        space: of the slopes.
        values: over it.
        slopes: shape (residuals, parameters), scaled.
        needed: torque that the twin needs, where a residual is of one, else 0. Shape of this and the next: (residuals,).
        torque: whether it is.
    """
    weighs = np.array([any(unit in p.unit for unit in ("N", "kg")) for p in space.parameters])
    logarithm, scale = (np.array([getattr(p, name) for p in space.parameters]) for name in ("log", "scale"))
    along = np.where(weighs, np.where(logarithm, 1.0, values) / scale, 0.0)
    if not np.linalg.norm(slopes[~torque] @ along) < FLAT * np.linalg.norm(slopes[~torque] * along):
        return slopes
    return slopes + np.outer(needed - slopes @ along, along / (along @ along))


def lasting(errors: Array) -> float:
    """For how many samples an error lasts: the sum of its autocorrelation, up to where that first vanishes."""
    square = float(errors @ errors)
    total, lag = 1.0, 1
    while square > 0 and lag < len(errors) // 4:
        rho = float(errors[:-lag] @ errors[lag:]) / square
        if rho <= 0.05:
            break
        step = max(1, lag // 4)  # far lags change slowly
        total += 2 * rho * step
        lag += step
    return total
