"""Fit: from a model and logs to a twin that predicts, with what is not known about it.

    found = fit(Twin.load("arm.xml", add=[Friction(full=True)]), [read("motion.mcap")])
    found.twin.save("twin.xml", found.values)

Each joint alone first, up a ladder of friction and motor models; then the full model for what couples.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gapless.errors import BadInput
from gapless.identify import coupled, surroundings, unknown
from gapless.identify.along import Course, course
from gapless.identify.joint import BLOCK, gather, without
from gapless.identify.ladder import (
    FEW_LOGS,
    LEAST,
    Climb,
    Found,
    Problem,
    Remember,
    Rung,
    Tick,
    climb,
    errors_at,
    forget,
    gain_of,
    outliers,
    problem,
    quiet,
    solve,
)
from gapless.identify.score import Errors, Trace, by_block, errors, traces
from gapless.identify.trust import doubts
from gapless.logs import Log
from gapless.twin import Gaussian, Twin
from gapless.twin.mechanism import is_position_servo
from gapless.twin.space import Array

SECONDS = 20.0  # of each log that are fitted to; more of the same motion adds little
MOST_SECONDS = 200.0  # of all logs together that joints alone are fitted to
LADDER_SECONDS = 100.0  # of the logs that the ladder is climbed with
LINK = ("inertia.mass", "inertia.com_x", "inertia.com_y", "inertia.com_z")
CHEAP_STEPS = 5e5  # of the full model for one set of slopes: then it has the last word in any case
MOST_STEPS = 1e6  # of the full model for one set of slopes of a servo robot; beyond that joints alone must do
MOST_WINDOWS = 60  # of the full model's fits
DELAY = "latency.action"
CARRIES_OVER = 1.15  # the full model may be this much worse than joints alone before it is fitted itself


@dataclass(frozen=True)
class Fit:
    """What a fit found."""

    twin: Twin
    """As given, with a table where there is one."""
    values: Array
    """Over `twin.space`, from all of the logs."""
    halves: Array
    """The same from either half of the logs. Shape: (2, parameters)."""
    belief: Gaussian
    """Over the parameters that were fitted."""
    ladder: list[Rung]
    traces: list[Trace]
    train: Errors
    heldout: Errors
    """Each half of the logs predicted in the full model by the fit to the other."""
    undetermined: list[unknown.Unknown]
    warnings: list[str]
    trusted: bool
    zeros: dict[int, Array]
    """Encoder zeros of single logs, by their number [rad]."""
    poses: Array
    """Median measured position of each joint: where friction's angle is counted from [rad]."""
    seconds: float


@dataclass(frozen=True)
class _State:
    """A fit on its way."""

    twin: Twin
    values: Array
    halves: Array
    names: tuple[str, ...]
    """What was fitted."""
    parts: list[unknown.Part]
    zeros: dict[int, Array]


def fit(
    twin: Twin,
    logs: Sequence[Log],
    tick: Tick = quiet,
    remember: Remember = forget,
    fixed: Mapping[str, float] | None = None,
    evolve: bool = False,
) -> Fit:
    """Fit a twin to logs. `Friction(full=True)` in the twin has all of the rungs.

    Args:
        twin: the model; all of its parameters are nominal at the start.
        logs: what was commanded and measured.
        tick: told what is being done, with the held-out error so far.
        remember: gives back what was computed before, to go on after a crash.
        fixed: parameters that are known, by name or pattern, and their values.
        evolve: go on with CMA-ES in the full model, for what least squares cannot do.
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
    servos = [is_position_servo(twin.model, d.actuator) for d in twin.drives]

    def problems(some: Sequence[Course]) -> list[Problem]:
        gathered = [gather(some, j, float(poses[j]), servos[j], twin.model.opt.timestep) for j, d in enumerate(twin.drives)]
        return [problem(twin, d.name, data, known) for d, data in zip(twin.drives, gathered, strict=True)]

    counts = [_blocks(c) for c in courses]
    firsts = np.cumsum([0, *counts[:-1]]).tolist()
    top = climb(problems(_some(courses, LADDER_SECONDS)[1]), tick, remember)
    kept = _halved(courses, counts)
    which, some = _some(courses, MOST_SECONDS)
    mine = np.concatenate([firsts[i] + np.arange(_blocks(c)) for i, c in zip(which, some, strict=True)])
    tick("fitting all joints alone")
    state = _alone(twin, problems(some), top, kept[mine], known)
    ladder = list(top.rungs)
    tick("checking in the full model")

    def predicted(s: _State) -> list[Trace]:
        return traces(s.twin, logs, courses, s.values, s.halves, kept, firsts, SECONDS, s.zeros)

    traced = predicted(state)
    bad = [outliers(e) for e in by_block(traced, "fitted", len(kept)).T]
    left_out = {j: np.flatnonzero(b).tolist() for j, b in zip(twin.joints, bad, strict=True) if b.any()}
    try:
        if not top.stopped:
            full = _Full(logs, kept, firsts, predicted, tick, remember)
            state, traced, more = _together(state, traced, top, left_out, full, evolve)
            ladder += more
    except KeyboardInterrupt:
        tick("stopped: what was found so far is kept")
    space = state.twin.space.select(*state.names)
    at = [state.twin.space.names.index(n) for n in space.names]
    held = errors(traced, "heldout")
    belief = unknown.belief(space, space.to_scaled(state.values[at]), state.parts, np.random.default_rng(0))
    electric = any(n.startswith("motor.kt/") for n in space.names)
    undetermined = unknown.free(space, belief.covariance, electric, all(servos) and not electric)
    warnings, trusted = doubts(logs, held, traced, left_out, belief, state.zeros, courses, BLOCK)
    return Fit(
        twin=state.twin,
        values=state.values,
        halves=state.halves,
        belief=belief,
        ladder=ladder,
        traces=traced,
        train=errors(traced, "fitted"),
        heldout=held,
        undetermined=undetermined,
        warnings=warnings,
        trusted=trusted,
        zeros=state.zeros,
        seconds=time.perf_counter() - started,
        poses=poses,
    )


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


@dataclass(frozen=True)
class _Full:
    """What the rungs that need the full model need."""

    logs: Sequence[Log]
    kept: NDArray[np.bool_]
    firsts: Sequence[int]
    predicted: Callable[[_State], list[Trace]]
    tick: Tick
    remember: Remember

    def windows(self, twin: Twin, blocks: NDArray[np.bool_], most: int = MOST_WINDOWS) -> coupled.Windows:
        """The windows of the logs that lie in some blocks."""
        return coupled.windows(twin, self.logs, np.split(blocks, np.asarray(self.firsts[1:], dtype=int)), SECONDS, most)

    def parts(self, blocks: NDArray[np.bool_]) -> list[tuple[str, NDArray[np.bool_]]]:
        """Everything, and either half of it."""
        return [("all", blocks), ("first half", blocks & self.kept), ("second half", blocks & ~self.kept)]


def _together(
    state: _State, traced: list[Trace], top: Climb, left_out: dict[str, list[int]], full: _Full, evolve: bool
) -> tuple[_State, list[Trace], list[Rung]]:
    """The rungs that need the full model: what couples, encoder zeros, link inertia, contact with the surroundings."""
    twin, kept = state.twin, full.kept
    sound = np.ones((len(kept), len(twin.joints)), dtype=bool)
    for joint, blocks in left_out.items():
        sound[blocks, twin.joints.index(joint)] = False
    before = by_block(traced, "heldout", len(kept))
    here = float(np.sqrt(np.nanmean(np.where(sound, before, np.nan), axis=0)).mean())
    alone = float(np.mean([np.sqrt(np.nanmean(e)) for e in top.errors]))
    inertia = tuple(p.name for p in twin.space.parameters if p.quantity in LINK)
    plan: list[tuple[str, Callable[[_State], _State]]] = []
    if not all(is_position_servo(twin.model, d.actuator) for d in twin.drives):
        plan = [
            ("full model, each log's own encoder zero", lambda s: _coupled(s, full, s.names, True, "zeros")),
            ("+ link masses and centres", lambda s: _coupled(s, full, (*s.names, *inertia), bool(s.zeros), "links")),
        ]
    elif _affordable(state, MOST_STEPS if here > CARRIES_OVER * alone else CHEAP_STEPS):
        plan = [("full model", lambda s: _coupled(s, full, s.names, False, "full model"))]
    if evolve:
        plan.append(("full model, evolved", lambda s: _coupled(s, full, s.names, bool(s.zeros), "evolved", coupled.evolve)))
    table = surroundings.suspected(twin, traced, left_out)
    if table is not None:
        plan.append(("+ contact with a table", lambda s: _touching(s, table, full)))
    rungs: list[Rung] = []
    for name, extended in plan:
        full.tick(f"{name}: fitting, held-out {np.degrees(np.sqrt(np.nanmean(before, axis=0)).mean()):.3f} deg so far")
        trial = extended(state)
        shown = full.predicted(trial)
        after = by_block(shown, "heldout", len(kept))
        gain, error = gain_of(list(before.T), list(after.T))
        better = gain > (-0.02 if name == "full model" else max(error, LEAST))  # what it finds holds there; alone, nearly
        rungs.append(Rung(name, float(np.sqrt(np.nanmean(after, axis=0)).mean()), gain, error, better))
        full.tick(f"{name}: held-out {np.degrees(rungs[-1].heldout):.3f} deg")
        if better:
            state, traced, before = trial, shown, after
    return state, traced, rungs


def _affordable(state: _State, most: float) -> bool:
    """Whether slopes in the full model take no more than so many steps; kinematic trees share simulations."""
    trees = len({int(state.twin.model.dof_treeid[d.dof]) for d in state.twin.drives})
    steps = coupled.SERVO_WINDOW / state.twin.model.opt.timestep
    return len(state.names) / trees * MOST_WINDOWS * steps < most


def _coupled(
    state: _State,
    full: _Full,
    names: tuple[str, ...],
    zeros: bool,
    key: str,
    solver: Callable[[coupled.Objective], Array] = coupled.solve,
) -> _State:
    """Fit names in the full model, to everything and to either half."""
    space = state.twin.space.select(*names)
    found: list[tuple[coupled.Objective, Array]] = []
    start = state.values
    for label, part in full.parts(np.ones_like(full.kept)):
        data = full.windows(state.twin, part, MOST_WINDOWS if label == "all" else MOST_WINDOWS // 2)
        objective = coupled.Objective(data, space, start, coupled.typical(data, start), zeros)

        def fitted(objective: coupled.Objective = objective) -> dict[str, Any]:
            return {"x": solver(objective).tolist()}

        x = np.array(full.remember(f"{key}, {label}", fitted)["x"])
        found.append((objective, x))
        start = found[0][0].values(found[0][1][None])[0]
    (whole, x), *rest = found
    halves = np.stack([o.values(h[None])[0] for o, h in rest])
    return _State(state.twin, start, halves, space.names, [whole.part(x)], whole.own_zeros(x) if zeros else {})


def _touching(state: _State, table: surroundings.Suspect, full: _Full) -> _State:
    """Add a table, and fit where and how stiff it is to the windows in which the robot seems to touch it."""
    twin = state.twin.plus(table.mechanism)
    places = [twin.space.names.index(n) for n in state.twin.space.names]
    ours = [twin.space.names.index(n) for n in twin.space.match("table.*")]

    def over(values: Array) -> Array:
        out = twin.space.values({"table.height": table.height})
        out[places] = values
        return out

    found = []
    for label, where in full.parts(table.blocks):
        start = over(state.values)
        if where.any():
            data = full.windows(twin, where)

            def fitted(data: coupled.Windows = data, start: Array = start) -> dict[str, Any]:
                for names in (("table.height", "table.stiffness"), ("table.*",)):
                    objective = coupled.Objective(data, twin.space.select(*names), start, coupled.typical(data, start))
                    start = objective.values(coupled.solve(objective, iterations=8)[None])[0]
                return {"x": start.tolist()}

            start = np.array(full.remember(f"table, {label}", fitted)["x"])
        found.append(start[ours])
    vectors = [over(v) for v in (state.values, *state.halves)]
    for vector, own in zip(vectors, found, strict=True):
        vector[ours] = own
    data, space = full.windows(twin, table.blocks), twin.space.select("table.*")
    there = coupled.Objective(data, space, vectors[0], coupled.typical(data, vectors[0]))
    parts = [*state.parts, there.part(there.start)]
    return _State(twin, vectors[0], np.stack(vectors[1:]), (*state.names, *space.names), parts, state.zeros)


def _alone(twin: Twin, problems: Sequence[Problem], top: Climb, kept: NDArray[np.bool_], known: Mapping[str, float]) -> _State:
    """Every joint by itself, on everything and on either half, less the blocks that no fit meets."""
    every = np.ones_like(kept)
    begin = [[solve(p, top.chosen, every, at, iterations=8).x] for p, at in zip(problems, top.where, strict=True)]
    bad = [outliers(errors_at(p, at[0])) for p, at in zip(problems, begin, strict=True)]
    problems = [replace(p, data=without(p.data, ~b)) if b.any() else p for p, b in zip(problems, bad, strict=True)]
    values, parts = settle(twin, problems, top.chosen, every, begin)
    halves = [settle(twin, problems, top.chosen, keep, begin)[0] for keep in (kept, ~kept)]
    names: list[str] = []
    for p in parts:
        names += [n for n in p.names if n not in names]
    vectors = np.stack([values, *halves])
    for name, value in known.items():
        vectors[:, twin.space.names.index(name)] = value
    return _State(twin, vectors[0], vectors[1:], tuple(names), parts, {})


def settle(
    twin: Twin, problems: Sequence[Problem], chosen: tuple[str, ...], keep: NDArray[np.bool_], begin: Sequence[list[Array]]
) -> tuple[Array, list[unknown.Part]]:
    """Values over the twin's space, and how the residuals lie there, from the blocks in `keep`."""
    own = [solve(p, chosen, keep, at, iterations=8) for p, at in zip(problems, begin, strict=True)]
    parts = [
        unknown.Part(tuple(p.space.names[i] for i in f.free), f.residual, f.slopes(), p.data.block, 1)
        for p, f in zip(problems, own, strict=True)
    ]
    values = _joined(twin, problems, own, parts)
    if "delay" in chosen and DELAY in twin.space.names:
        # joints share one delay: with that settled, the rest of each is fitted again from where it was
        delay = values[twin.space.names.index(DELAY)]
        problems = [p.at("delay", float(delay)) for p in problems]
        rest = tuple(q for q in chosen if q != "delay")
        again = [solve(p, rest, keep, [f.x], iterations=5) for p, f in zip(problems, own, strict=True)]
        values = _joined(twin, problems, again, parts)
        values[twin.space.names.index(DELAY)] = delay
    return values, parts


def _joined(twin: Twin, problems: Sequence[Problem], found: Sequence[Found], parts: Sequence[unknown.Part]) -> Array:
    """All joints' values as one vector; a delay that they share is their mean, weighted by how sharply each sees it."""
    values = twin.space.nominal.copy()
    seen: dict[str, list[tuple[float, float]]] = {}
    for p, f, part in zip(problems, found, parts, strict=True):
        fitted = p.space.clip(p.space.from_scaled(f.x))
        noise = max(float(part.residual @ part.residual), 1e-12)
        for i in f.free:
            slope = part.jacobian[:, part.names.index(p.space.names[i])]
            seen.setdefault(p.space.names[i], []).append((float(fitted[i]), float(slope @ slope) / noise + 1e-300))
    for name, pairs in seen.items():
        weights = np.array([w for _, w in pairs])
        values[twin.space.names.index(name)] = float(np.array([v for v, _ in pairs]) @ weights / weights.sum())
    return values
