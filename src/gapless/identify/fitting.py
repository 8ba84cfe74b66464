"""Fit: from a model and logs to a twin that predicts, with what is not known about it.

    found = fit_admitted(Twin.load("arm.xml", add=[Friction(full=True)]), [read("motion.mcap")])
    found.twin.save("twin.xml", found.values)

Each joint alone first, up a ladder of friction and motor models; then the full model for what couples.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gapless.arrays import Array
from gapless.errors import BadInput
from gapless.identify import uncertainty as unknown
from gapless.identify.full_model.rungs import Full, State, together
from gapless.identify.full_model.standing import stand
from gapless.identify.per_joint.inverse_dynamics import Course, course
from gapless.identify.per_joint.kernel import BLOCK, gather, without
from gapless.identify.per_joint.ladder import FEW_LOGS, Climb, Remember, Tick, climb, forget, outliers, quiet, structures
from gapless.identify.per_joint.problem import Problem, alike, errors_at, problem, settle, shared, solve
from gapless.identify.result import Fit, estimates
from gapless.identify.score import Trace, by_block, errors, traces
from gapless.identify.trust import doubts
from gapless.logs import Log
from gapless.robots import is_position_servo
from gapless.twin import Twin, origin_of

SECONDS = 20.0  # of each log that are fitted to; more of the same motion adds little
MOST_SECONDS = 200.0  # of all logs together that joints alone are fitted to
LADDER_SECONDS = 100.0  # of the logs that the ladder is climbed with
FAR = 1.5  # scaled units: how far off a second start is


def fit_admitted(
    twin: Twin,
    logs: Sequence[Log],
    tick: Tick = quiet,
    remember: Remember = forget,
    fixed: Mapping[str, float] | None = None,
    evolve: bool = False,
    signals: tuple[str, ...] = ("q",),
) -> Fit:
    """Fit a twin to logs that `admit` has let in. `Friction(full=True)` in the twin has all of the rungs.

    Args:
        twin: the model; all of its parameters are nominal at the start.
        logs: what was commanded and measured.
        tick: told what is being done, with the held-out error so far.
        remember: gives back what was computed before, to go on after a crash.
        fixed: parameters that are known, by name or pattern, and their values.
        evolve: go on with CMA-ES in the full model, for what least squares cannot do.
        signals: what the full model is fitted to; a floating base's own signals are always among it.
    """
    started = time.perf_counter()
    if not logs:
        raise BadInput("there is no log to fit to")
    known = twin.space.fix(fixed or {}).fixed
    if not twin.joints:
        raise BadInput(f"{twin.name} has no drives, so there is nothing to fit; state gains (kp, kd) for its joints")
    courses = [course(twin, log, SECONDS) for log in logs]
    moved = np.max([np.ptp(c.q[c.valid], axis=0) for c in courses], axis=0)
    if (moved < 1e-3).all():
        raise BadInput("no joint moves in the logs, so there is nothing to identify")
    # friction that grows with the angle is told from constant friction best about the middle of the motion
    poses = np.median(np.concatenate([c.q for c in courses]), axis=0)
    twin = twin.plus(centre=dict(zip(twin.joints, poses.tolist(), strict=True)))
    counts = [_blocks(c) for c in courses]
    firsts = np.cumsum([0, *counts[:-1]]).tolist()
    kept = _halved(courses, counts)

    def predicted(s: State) -> list[Trace]:
        return traces(s.twin, logs, courses, s.values, s.halves, kept, firsts, SECONDS, s.zeros)

    full = Full(logs, kept, firsts, SECONDS, signals, predicted, tick, remember)
    if twin.floating:
        stood = stand(twin, full, known)
        state, ladder = stood.state, stood.ladder
        traced, left_out = predicted(state), {}
    else:
        state, top = _joints_alone(twin, courses, poses, known, full)
        ladder = list(top.rungs)
        tick("checking in the full model")
        traced = predicted(state)
        left_out = _left_out(twin, traced, len(kept))
        try:
            if not top.stopped:
                state, traced, more = together(state, traced, top, left_out, full, evolve)
                ladder += more
                left_out = _left_out(twin, traced, len(kept))
        except KeyboardInterrupt:
            tick("stopped: what was found so far is kept")
    space = state.space
    at = [state.twin.space.names.index((p.members or (p.name,))[0]) for p in space.parameters]
    held = errors(traced, "heldout")
    centre, *apart = space.to_scaled(space.clip(np.stack([state.values, *state.halves])[:, at]))
    belief = unknown.belief(space, centre, np.array(apart), state.parts, np.random.default_rng(0))
    electric = any(n.startswith("motor.kt/") for n in space.names)
    position_only = twin.all_servos and not electric and "tau" not in signals
    undetermined = unknown.free(space, belief.covariance, electric, position_only)
    undetermined += unknown.elsewhere(belief, state.rivals)
    warnings, trusted = doubts(logs, held, traced, left_out, belief, state.zeros, courses, BLOCK)
    return Fit(
        robot=twin.name,
        parameters=estimates(belief),
        fixed=dict(known),
        ladder=ladder,
        train=errors(traced, "fitted"),
        heldout=held,
        undetermined=undetermined,
        warnings=warnings,
        trusted=trusted,
        zeros=state.zeros,
        pose=dict(zip(twin.joints, poses.tolist(), strict=True)),
        seconds=time.perf_counter() - started,
        origin=origin_of(twin, logs),
        twin=state.twin,
        values=state.values,
        halves=state.halves,
        belief=belief,
        traces=traced,
    )


def _left_out(twin: Twin, traced: Sequence[Trace], blocks: int) -> dict[str, list[int]]:
    """Joint to the blocks that the fit misses by far."""
    bad = [outliers(e) for e in by_block(traced, "fitted", blocks).T]
    return {j: np.flatnonzero(b).tolist() for j, b in zip(twin.joints, bad, strict=True) if b.any()}


def _some(courses: Sequence[Course], seconds: float) -> tuple[list[int], list[Course]]:
    """At most 16 logs, evenly spread, each cut so that they last about so long together; their numbers and they themselves."""
    picked = sorted(set(np.linspace(0, len(courses) - 1, min(len(courses), 16)).round().astype(int).tolist()))
    each = max(3.0, np.floor(seconds / len(picked) / BLOCK)) * BLOCK
    return picked, [courses[i].cut(each) for i in picked]


def _blocks(c: Course) -> int:
    return int((len(c.q) - 1) * c.period / BLOCK) + 1


def _halved(courses: Sequence[Course], counts: Sequence[int]) -> NDArray[np.bool_]:
    """Blocks of the first half: pairs of logs in turn, or every other measured block of a few logs."""
    if len(courses) >= FEW_LOGS:
        return np.concatenate([np.full(n, (i // 2) % 2 == 0) for i, n in enumerate(counts)])
    measured = [np.bincount((np.arange(len(c.q)) * c.period / BLOCK).astype(int), weights=c.valid) > 10 for c in courses]
    return np.asarray(np.cumsum(np.concatenate(measured)) % 2 == 1)


def _joints_alone(
    twin: Twin, courses: Sequence[Course], poses: Array, known: Mapping[str, float], full: Full
) -> tuple[State, Climb]:
    """Up the ladder with every joint alone; then its rungs once more with more of the logs, and with either half."""
    servos = [is_position_servo(twin.model, d.actuator) for d in twin.drives]
    more = structures(twin, courses)
    wide = [p for _, added in more for p in added]

    def problems(some: Sequence[Course]) -> list[Problem]:
        gathered = [gather(some, j, float(poses[j]), servos[j], twin.model.opt.timestep) for j in range(len(servos))]
        return [problem(twin, d.name, data, known, wide) for d, data in zip(twin.drives, gathered, strict=True)]

    top = climb(problems(_some(courses, LADDER_SECONDS)[1]), alike(twin, known), full.tick, full.remember)
    which, some = _some(courses, MOST_SECONDS)
    mine = np.concatenate([full.firsts[i] + np.arange(_blocks(c)) for i, c in zip(which, some, strict=True)])
    full.tick("fitting all joints alone")
    twin = twin.plus(*(m for m, added in more if {p.quantity for p in added} & set(top.chosen)))
    return _alone(twin, problems(some), top, full.kept[mine], known), top


def _alone(twin: Twin, problems: Sequence[Problem], top: Climb, kept: NDArray[np.bool_], known: Mapping[str, float]) -> State:
    """Every joint by itself, on everything and on either half, less the blocks that no fit meets."""
    every, rng = np.ones_like(kept), np.random.default_rng(0)
    teams = [[problems[i] for i in t] for t in top.teams]
    begin = []
    for team, at in zip(teams, top.where, strict=True):
        far = at[0] + rng.uniform(-FAR, FAR, len(at[0]))  # from elsewhere: does it come back?
        begin.append(solve(team, top.chosen, every, [*at, far], iterations=12))
    bad = {p.joint: outliers(errors_at(p, f.x, top.chosen)) for team, f in zip(teams, begin, strict=True) for p in team}
    teams = [[replace(p, data=without(p.data, ~bad[p.joint])) for p in team] for team in teams]
    starts = [[f.x] for f in begin]
    values, parts = settle(twin, teams, top.chosen, every, starts)
    vectors = np.stack([values, *(settle(twin, teams, top.chosen, keep, starts)[0] for keep in (kept, ~kept))])
    for name, value in known.items():
        vectors[:, twin.space.names.index(name)] = value
    rivals = [(p.names, f.x[f.free], r) for p, f in zip(parts, begin, strict=True) for r in f.rivals]
    return State(twin, vectors[0], vectors[1:], shared(twin, teams, top.chosen), parts, {}, rivals)
