"""The floor: what is left of twins within their tolerances, so that a gap is called one only where there is one."""

from dataclasses import replace

import numpy as np

from gapless.arrays import Array
from gapless.explain.compete import OUTLIER, linearised, step
from gapless.explain.contest import Contest, Effort, Hypothesis
from gapless.explain.physics import errors_of
from gapless.measure import Windows
from gapless.twin import Parameter, Space, quantities, within_tolerance

TWINS = (4, 8)  # for robots of many joints, and of one


def contest_of(
    data: Windows, noise: Array, rng: np.random.Generator, arenas: dict[str, Windows], effort: Effort | None = None
) -> tuple[Contest, Array]:
    """Slopes at the nominal model and the floor; also the statistic `Hypothesis.left` of twins within their tolerances."""
    free: dict[str, Parameter] = {}
    for p in (p for windows in (data, *arenas.values()) for p in windows.twin.space.parameters):
        if quantities.of(p.name).predicted:
            free.setdefault(p.name, p)
    columns = len(noise)
    none = np.zeros((0, len(free)))
    contest = Contest({"": data, **arenas}, Space(tuple(free.values())), noise, none, effort=effort or Effort())
    everything = np.ones((len(free), columns), dtype=bool) if data.twin.floating else contest.affects(local=False)
    contest = linearised(contest, contest.nominal, everything)
    drawn = contest.space.to_scaled(within_tolerance(contest.space).sample(TWINS[columns == 1], rng))
    made = errors_of(data.halved(), contest.values(drawn))
    made += noise * rng.standard_normal(made.shape)
    left = np.array([_left(contest, twin) for twin in made])
    higher = np.sqrt(left.mean(axis=0))
    slopes = (contest.slopes.reshape(-1, columns, len(free)) / higher[:, None]).reshape(-1, len(free))
    return replace(contest, floor=noise * higher, slopes=slopes), (left / higher**2).mean(axis=1)


def _left(contest: Contest, twin: Array) -> Array:
    """Mean square by column after a fit of the tolerances to a twin instead of the robot. Shape: (columns,).

    twin: its motion minus the robot's (samples, columns) [rad].
    """
    data = contest.arenas[""]

    def against(x: Array) -> Hypothesis:
        errors = errors_of(data, contest.values(x[None])) - twin
        return Hypothesis((), x, contest.drawn_in(errors)[0])

    fit = against(np.zeros(len(contest.space)))
    for _ in range(2):
        trial = against(fit.x + step(contest, fit, None, 0.0))
        if trial.left >= fit.left:
            break
        fit = trial
    robust = replace(contest, outlier=OUTLIER).drawn_in((fit.residual.reshape(-1, len(contest.floor)) * contest.floor)[None])
    return np.asarray((robust.reshape(-1, len(contest.floor)) ** 2).mean(axis=0))
