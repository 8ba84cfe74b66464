"""The floor: what is left of twins within their tolerances, so that a gap is called one only where there is one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gapless.arrays import Array
from gapless.explain.compete import OUTLIER, linearised, step
from gapless.explain.contest import Contest, Fit, variables
from gapless.explain.physics import Physics

TWINS = (4, 8)  # for robots of many joints, and of one
SMALLEST = 2e-4  # rad: no encoder of a robot sees less


def noise(physics: Physics) -> Array:
    """Sensor noise of each column, from third differences where the robot moves least [rad]. Shape: (columns,)."""
    q = physics.measured("q")
    assert q is not None
    rough = np.diff(q, 3, axis=0) / np.sqrt(20)
    parts = np.array_split(rough, max(1, len(rough) // 25))
    out = np.percentile([np.sqrt((p**2).mean(axis=0)) for p in parts], 20, axis=0)
    return np.maximum(np.concatenate([out, np.full(len(physics.columns) - len(out), 2e-3)]), SMALLEST)


def contest_of(physics: Physics, rng: np.random.Generator, arenas: dict[str, Physics]) -> tuple[Contest, Array]:
    """Slopes at the nominal model and the floor; also the statistic `Fit.left` of twins within their tolerances."""
    free = list(variables(physics.twin))
    known = {v.name for v in free}
    free += [p for a in arenas.values() for p in variables(a.twin) if p.name not in known]
    columns, floor = len(physics.columns), noise(physics)
    contest = Contest({"": physics, **arenas}, tuple(free), floor, np.zeros((0, len(free))))
    nominal = Fit((), np.zeros(len(free)), contest.errors([("", np.zeros(len(free)))])[0])
    everything = np.ones((len(free), columns), dtype=bool) if physics.floating else contest.coupled
    contest, nominal = linearised(contest, nominal, everything)
    low, high = contest.box
    drawn = rng.uniform(low, high, (TWINS[columns == 1], len(free)))
    half = physics.halved()
    made = half.errors(contest.values(drawn, half.twin))
    made += floor * rng.standard_normal(made.shape)
    left = np.array([_left(contest, twin) for twin in made])
    higher = np.sqrt(left.mean(axis=0))
    return replace(
        contest, floor=floor * higher, slopes=contest.slopes / np.tile(higher, len(nominal.residual) // columns)[:, None]
    ), (left / higher**2).mean(axis=1)


def _left(contest: Contest, twin: Array) -> Array:
    """Mean square by column after a fit of the tolerances to a twin instead of the robot. Shape: (columns,).

    twin: its motion minus the robot's (samples, columns) [rad].
    """
    physics = contest.arenas[""]

    def against(x: Array) -> Fit:
        errors = physics.errors(contest.values(x[None], physics.twin)) - twin
        return Fit((), x, contest.drawn_in(errors)[0])

    fit = against(np.zeros(len(contest.variables)))
    for _ in range(2):
        trial = against(fit.x + step(contest, fit, None, 0.0))
        if trial.left >= fit.left:
            break
        fit = trial
    robust = replace(contest, outlier=OUTLIER).drawn_in((fit.residual.reshape(-1, len(contest.floor)) * contest.floor)[None])
    return np.asarray((robust.reshape(-1, len(contest.floor)) ** 2).mean(axis=0))
