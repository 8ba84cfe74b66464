"""Everything that may be wrong takes part: how each parameter of a twin, fitted or not, moves its predictions of logs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from gapless.arrays import Array, Bools, Ints
from gapless.identify.full_model.window_objective import Objective, typical
from gapless.identify.least_squares import slopes
from gapless.logs import Log
from gapless.measure import Split, Windows, holds, runs, windows
from gapless.twin import Space, Twin, quantities

STEPS, SECONDS = 3e6, (10.0, 40.0)  # of twelve joints that slopes may take, and s of the logs that they are taken on
WIDTH = 0.03  # scaled units over which slopes are taken: few, since a torque that saturates bends them
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
    servos: bool
    """Whether positions of servos are all that is compared, which leaves all torques and inertias a common factor."""
    torque: float | None
    """Torque that the twin needs over what was measured; None where it was not, or was fitted to."""

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
    if holds(twin):
        data = runs(twin, logs, split, stretches, signals)
    else:
        data = windows(twin, logs, split, split.blocks(stretches) & split.measured, signals=signals)
    begins = twin.floating and not {"base_pos", "base_vel"} <= set(signals)
    objective = Objective(data, space, values, typical(data, values), bool(zeros), begins)
    x = objective.with_zeros(objective.start, zeros)
    residual = objective(x[None])[0]
    every = slopes(objective, x, *objective.bounds, objective.coloured, difference=WIDTH)
    half = replace(objective, data=data.halved())(x[None])[0] - residual
    size, columns = np.empty(len(residual)), len(objective.size)
    for column in range(columns):
        rows = slice(column, None, columns)
        size[rows] = np.sqrt(max(float(np.mean(residual[rows] ** 2)), 1e-18) * lasting(residual[rows]))
    pieces = np.maximum(1, np.round(STRETCHES * np.bincount(data.log) / len(data.log)).astype(int))
    ends = np.array([float(data.clock[data.log == i].max()) for i in range(len(pieces))])
    stretch = np.cumsum([0, *pieces])[data.log] + (data.clock / (ends[data.log] + 1e-9) * pieces[data.log]).astype(int)
    every /= size[:, None]
    nuisance = every[:, len(space) :] * objective.prior[len(space) :]
    servos = twin.all_servos and "tau" not in signals and all(p.quantity != "motor.kt" for p in twin.space.parameters)
    torque = _torque(data, values) if servos else None
    coarse = objective.size * np.sqrt(np.mean(half.reshape(-1, columns) ** 2, axis=0))
    numbers, first, own = np.repeat(stretch, columns), np.repeat(split.first[data.block], columns), every[:, : len(space)]
    return Sensitivity(space, residual / size, half / size, numbers, first, own, nuisance, coarse, servos, torque)


def _torque(data: Windows, values: Array) -> float | None:
    """Torque that servos need in the twin over what was measured; None where some log has none."""
    if not all("tau" in r.columns for r in data.replayers):
        return None
    measured = data.measured("tau")
    needed = replace(data, signals=("tau",)).predicted(values[None])["tau"][0]
    both = np.isfinite(measured) & np.isfinite(needed)
    ratio = float(needed[both] @ measured[both]) / max(float(measured[both] @ measured[both]), 1e-12)
    return ratio if ratio > 0 else None


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
