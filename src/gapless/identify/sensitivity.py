"""Everything that may be wrong takes part: how each parameter of a twin, fitted or not, moves its predictions of logs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from gapless.arrays import Array, Bools, Ints
from gapless.identify.full_model.window_objective import ROBUST, Objective, typical
from gapless.identify.least_squares import slopes
from gapless.logs import Log
from gapless.measure import Split, holds, runs, soft, soft_slope, windows
from gapless.twin import Space, Twin, quantities

STEPS, SECONDS = 3e6, (10.0, 40.0)  # of twelve joints that slopes may take, and s of the logs that they are taken on
WIDTH = 0.03  # scaled units over which slopes are taken: few, since a torque that saturates bends them
SENSOR = 0.03  # share that torque sensors may be off by, as motors of one type are in strength
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
    weighs = (
        twin.all_servos
        and "tau" not in signals
        and all("tau" in log and {*twin.joints} <= {*log["tau"].columns} for log in logs)
    )
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
    columns = len(objective.size)
    torque, measured = np.arange(columns) >= columns - len(twin.joints) * weighs, np.zeros((len(data.log), columns))
    if weighs:
        measured[:, torque] = np.nan_to_num(data.measured("tau")) / objective.size[torque]
    if twin.all_servos and all(p.quantity != "motor.kt" for p in twin.space.parameters):
        along = _heavier(space, values[[twin.space.names.index(name) for name in space.names]])
        moved = gain * np.where(torque, plain.reshape(-1, columns) + measured, 0.0).ravel()
        every[:, : len(space)] += np.outer(moved - every[:, : len(space)] @ along, along / max(along @ along, 1e-12))
    unit = np.array([np.sqrt(max(float(np.mean(r**2)), 1e-18) * lasting(r)) for r in residual.reshape(-1, columns).T])
    size = np.tile(unit, len(data.log))
    pieces = np.maximum(1, np.round(STRETCHES * np.bincount(data.log) / len(data.log)).astype(int))
    ends = np.array([float(data.clock[data.log == i].max()) for i in range(len(pieces))])
    stretch = np.cumsum([0, *pieces])[data.log] + (data.clock / (ends[data.log] + 1e-9) * pieces[data.log]).astype(int)
    every /= size[:, None]
    coarse = objective.size * np.sqrt(np.mean(half.reshape(-1, columns) ** 2, axis=0))
    numbers, first = np.repeat(stretch, columns), np.repeat(split.first[data.block], columns)
    nuisance = every[:, len(space) :] * objective.prior[len(space) :]

    def of(own: Bools, more: Array) -> Sensitivity:
        """What there is about some of the columns, with one nuisance more, (residuals,)."""
        rows = np.tile(own, len(data.log))
        also = np.column_stack([nuisance, more])[rows]
        parts = (a[rows] for a in (residual / size, half / size, numbers, first, every[:, : len(space)]))
        return Sensitivity(space, *parts, also[:, np.abs(also).max(axis=0) > 0], coarse[own], twin.model.opt.timestep)

    positions = of(~torque, np.zeros_like(size))
    return replace(positions, torque=of(torque, SENSOR * gain * (measured / unit).ravel())) if weighs else positions


def _heavier(space: Space, values: Array) -> Array:
    """The direction in which every torque and inertia grows by a factor of e, scaled: no position of servos shows it.

    Differences along it are known, then: none of positions, and torques themselves; those of each number alone are not exact
    where torques saturate and joints stick.
    """
    weighs = np.array([any(unit in p.unit for unit in ("N", "kg")) for p in space.parameters])
    logarithm, scale = (np.array([getattr(p, name) for p in space.parameters]) for name in ("log", "scale"))
    return np.where(weighs, np.where(logarithm, 1.0, values) / scale, 0.0)


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
