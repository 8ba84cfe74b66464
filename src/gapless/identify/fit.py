"""Fit: from a model and logs to a twin that predicts, with the error on held-out parts beside the baselines."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gapless.identify.along import course
from gapless.identify.joint import gather
from gapless.identify.ladder import Problem, Rung, climb, fold, problem, solve, starts
from gapless.identify.score import Errors, score
from gapless.identify.solve import Solution
from gapless.logs import Log
from gapless.twin import Gaussian, Twin
from gapless.twin.mechanism import is_position_servo
from gapless.twin.space import Array
from gapless.worlds import home

SECONDS = 20.0  # of each log that are fitted to; more of the same motion adds little
DELAY = "latency.action"


@dataclass(frozen=True)
class Fit:
    """What a fit found."""

    twin: Twin
    values: Array
    """Over `twin.space`, from all of the logs."""
    half: Array
    """The same from the half that was kept: what `heldout` is judged with."""
    belief: Gaussian
    """Over the parameters that were fitted."""
    ladder: list[Rung]
    quantities: tuple[str, ...]
    """What the ladder says is needed, by the names of `identify.joint`."""
    train: Errors
    heldout: Errors
    """In the full model, on the parts that its parameters were not fitted to (they are fitted to the other half)."""
    seconds: float


def fit(twin: Twin, logs: Sequence[Log], tick: Callable[[str], object] = lambda _: None) -> Fit:
    """Fit every joint of a twin to logs, climbing the ladder first. `Friction(full=True)` in the twin has all of the rungs."""
    started = time.perf_counter()
    courses = [course(twin, log, SECONDS) for log in logs]
    qpos, _ = home(twin)
    problems = []
    for j, d in enumerate(twin.drives):
        servo = is_position_servo(twin.model, d.actuator)
        problems.append(problem(twin, d.name, gather(courses, j, float(qpos[d.qpos]), servo, twin.model.opt.timestep)))
    chosen, ladder = climb(problems, tick)
    kept = fold(problems[0].data)
    values, belief = settle(twin, problems, chosen, np.ones(len(kept), dtype=bool))
    half, _ = settle(twin, problems, chosen, kept)
    tick("checking in the full model")
    data = problems[0].data
    firsts = data.block[data.starts[:-1]].tolist()
    train, heldout = score(twin, logs, np.stack([values, half]), kept, firsts, SECONDS)
    return Fit(twin, values, half, belief, ladder, chosen, train, heldout, time.perf_counter() - started)


Found = tuple[Array, Solution, list[int]]


def settle(twin: Twin, problems: Sequence[Problem], chosen: tuple[str, ...], keep: NDArray[np.bool_]) -> tuple[Array, Gaussian]:
    """Values over the twin's space and a belief over what was fitted, from the blocks in `keep`."""
    own = [solve(p, chosen, keep, starts(p)) for p in problems]
    values = _together(twin, problems, own)
    belief = _belief(twin, problems, own, values)
    if "delay" in chosen and DELAY in twin.space.names:
        # joints share one delay: with that settled, the rest of each is fitted again from where it was
        delay = values[twin.space.names.index(DELAY)]
        problems = [p.at("delay", float(delay)) for p in problems]
        rest = tuple(q for q in chosen if q != "delay")
        again = [solve(p, rest, keep, [full]) for p, (full, _, _) in zip(problems, own, strict=True)]
        values = _together(twin, problems, again)
        values[twin.space.names.index(DELAY)] = delay
        belief = replace(belief, centre=belief.space.to_scaled(values[[twin.space.names.index(n) for n in belief.space.names]]))
    return values, belief


def _together(twin: Twin, problems: Sequence[Problem], found: Sequence[Found]) -> Array:
    """All joints' values as one vector; a delay that they share is their mean, weighted by how sharply each sees it."""
    values = twin.space.nominal.copy()
    seen: dict[str, list[tuple[float, float]]] = {}
    for p, (full, solution, free) in zip(problems, found, strict=True):
        fitted = p.space.clip(p.space.from_scaled(full))
        sharp = np.diag(solution.jacobian.T @ solution.jacobian) / max(float(solution.residual @ solution.residual), 1e-12)
        for k, i in enumerate(free):
            seen.setdefault(p.space.names[i], []).append((float(fitted[i]), float(sharp[k]) + 1e-300))
    for name, pairs in seen.items():
        weights = np.array([w for _, w in pairs])
        values[twin.space.names.index(name)] = float(np.array([v for v, _ in pairs]) @ weights / weights.sum())
    return values


def _belief(twin: Twin, problems: Sequence[Problem], found: Sequence[Found], values: Array) -> Gaussian:
    """A Gaussian over what was fitted: the information of each joint, with errors that are independent only between blocks."""
    names: list[str] = []
    for p, (_, _, free) in zip(problems, found, strict=True):
        names += [p.space.names[i] for i in free if p.space.names[i] not in names]
    space = twin.space.select(*names)
    order = {n: i for i, n in enumerate(space.names)}
    information, scores = np.zeros((len(space), len(space))), np.zeros((len(space), len(space)))
    for p, (_, solution, free) in zip(problems, found, strict=True):
        at = [order[p.space.names[i]] for i in free]
        noise = max(float(solution.residual @ solution.residual) / max(int(p.data.valid.sum()), 1), 1e-18)
        information[np.ix_(at, at)] += solution.jacobian.T @ solution.jacobian / noise
        each = solution.jacobian * solution.residual[:, None]
        blocks = np.stack([np.bincount(p.data.block, weights=column) for column in each.T], axis=1) / noise
        scores[np.ix_(at, at)] += blocks.T @ blocks
    prior = np.eye(len(space)) / 5.0**2  # as weak as the fit's own
    inverse = np.linalg.inv(information + prior)
    covariance = inverse @ (scores + prior) @ inverse
    centre = space.to_scaled(values[[twin.space.names.index(n) for n in space.names]])
    return Gaussian(space, centre, (covariance + covariance.T) / 2)
