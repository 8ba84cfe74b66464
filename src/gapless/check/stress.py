"""Stress: how much worse than modelled a robot may be before a policy fails, and what each known difference costs it.

result = stress(load_policy("runs/walk"), Twin.load("quadruped"), load_belief("fitted/belief.json"))
print(result)
result.save("stress")  # with losses.json for `gapless gap --task`, and worst.toml, a stand-in
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import fields, replace

import numpy as np

from gapless.arrays import Array
from gapless.check.axes import PUSHES, WEAK, Axis, axes_of
from gapless.check.exact import interval
from gapless.check.response import respond
from gapless.check.stress_result import Corner, Cost, Curve, Stress, Together
from gapless.check.trials import Trials, drawn, losses, spread, survived, trials_of
from gapless.learn import CourseResult, Task, draw_from
from gapless.policy import Policy
from gapless.twin import Belief, Box, Twin, quantities, recipe_of
from gapless.worlds import StandInSpec, dump_standin

LEVELS, EACH = 6, 16
"""Levels of each axis, and robots at each level."""
RUNS = 216
"""Robots that are drawn: as many as the quadruped's course has."""
PAIRED = 3
"""Times as many robots as at a level are the same when causes are compared."""
SURVIVES = 0.9
"""A policy fails from the level at which less than this share of runs succeeds."""
ROUNDS, CANDIDATES, ELITE = 3, 32, 6
"""Of the search for the worst corner; a quarter of the robots at a level try each candidate."""
SURE, LEAST = 2.0, 0.01
"""Standard errors, and loss, by which a cause must change the outcome to be blamed."""


def stress(
    policy: Policy,
    twin: Twin,
    belief: Belief | None = None,
    task: Task | str | None = None,
    seed: int = 0,
    threads: int = 0,
    each: int = EACH,
    seconds: float = 6.0,
    runs: int = RUNS,
    tick: Callable[[str], None] = lambda what: None,
) -> Stress:
    """Make everything worse, one thing after the other and together, and see what the policy stands.

    Args:
        policy: with its contract.
        twin: the robot.
        belief: what was identified; margins and costs are against it. Without one, robots are drawn from the preset `wide`.
        task: that of the policy, by name or as it is; told from the policy's commands unless given.
        seed: of robots, commands and kicks.
        threads: of physics, 0 for one per core.
        each: robots at each level; the other parts grow with it.
        seconds: of each run.
        runs: on robots drawn from the belief.
        tick: is told what is being done.
    """
    trials = trials_of(policy, twin, task, seed=seed, threads=threads, seconds=seconds)
    axes = axes_of(twin)
    tick("making one thing worse at a time")
    wide = draw_from("wide", twin)
    assert wide is not None
    edges = _edges(twin, axes, belief, wide)
    base, curves = _curves(trials, axes, each, belief, edges)
    tick("drawing robots")
    met = drawn(trials, belief, runs)
    tick("searching the worst corner")
    start = twin.space.nominal if belief is None else twin.expand(belief.mean(), belief.space)[0]
    corner = _corner(trials, start, edges, max(each // 4, 1))
    tick("asking what each cause costs")
    costs = () if belief is None else _costs(trials, belief, PAIRED * each)
    tick("mapping commands to responses")
    responses, rest, heat = respond(trials)
    return Stress(
        robot=twin.name,
        policy=policy.sha256,
        seed=seed,
        runs=int(len(base.fell) + sum(len(c.levels) for c in curves) * each),
        success=float(survived(base).mean()),
        loss=float(losses(base).mean()),
        curves=curves,
        together=_together(met, "the preset wide" if belief is None else "the belief"),
        corner=corner,
        costs=costs,
        responses=responses,
        rest=rest,
        heat=heat,
        torque_margin=float(base.torque_margin.min()),
        speed_margin=float(base.speed_margin.min()),
        drawn=met,
    )


def _curves(
    trials: Trials, axes: Sequence[Axis], each: int, belief: Belief | None, edges: dict[Axis, float]
) -> tuple[CourseResult, tuple[Curve, ...]]:
    """All levels of all axes in one batch; the first robots are as modelled."""
    twin, nominal = trials.twin, trials.twin.space.nominal
    levels = [(axis, level) for axis in axes for level in axis.levels(LEVELS)]
    values, push = spread([nominal] * (len(levels) + 1), each), np.zeros((len(levels) + 1) * each)
    for k, (axis, level) in enumerate(levels, start=1):
        rows = range(k * each, (k + 1) * each)
        if axis.name == PUSHES:
            push[rows] = level
        for i, row in enumerate(rows):
            axis.write(twin, values[row], level, i % len(twin.joints) if axis.name == WEAK else None)
    commands = np.tile(trials.commands(each), (len(levels) + 1, 1))
    result = trials.run(values, commands, push)
    success, loss = survived(result).reshape(-1, each), losses(result).reshape(-1, each)
    known = _known(twin, belief)
    curves = []
    for number, axis in enumerate(axes):
        mine = slice(1 + number * LEVELS, 1 + (number + 1) * LEVELS)
        shown = np.array([axis.start, *axis.levels(LEVELS)])
        share = np.array([success[0].mean(), *success[mine].mean(axis=1)])
        ends = [interval(int(row.sum()), each) for row in (success[0], *success[mine])]
        lost = [loss[0].mean(), *loss[mine].mean(axis=1)]
        identified = None if known is None else _level(twin, axis, known)
        curves.append(_curve(axis, shown, share, ends, np.array(lost), identified, edges.get(axis, math.nan)))
    kept = {f.name: getattr(result, f.name)[:each] for f in fields(result) if isinstance(getattr(result, f.name), np.ndarray)}
    return replace(result, **kept), tuple(curves)


def _curve(
    axis: Axis,
    levels: Array,
    share: Array,
    ends: Sequence[tuple[float, float]],
    loss: Array,
    identified: tuple[float, float] | None,
    plausible: float = math.nan,
) -> Curve:
    """A curve with where it fails, and how far that is from what was identified, or else from what robots may have."""
    fails = math.nan
    limit = SURVIVES * share[0]  # what falls without any stress is no matter of this axis
    below = np.flatnonzero(share < limit)
    if len(below) and share[0] > 0:
        k = int(below[0])
        part = (share[k - 1] - limit) / (share[k - 1] - share[k])
        fails = float(levels[k - 1] + part * (levels[k] - levels[k - 1]))
    mean, deviation = identified or (math.nan, math.nan)
    away = (mean - axis.start) * np.sign(axis.end - axis.start)  # how far the robot is in the bad direction
    room = abs((fails if math.isfinite(fails) else axis.end) - axis.start)
    margin = room / away if away > 1e-9 * abs(axis.end - axis.start) else math.inf if identified else math.nan
    if identified is None:
        margin = room / abs(plausible - axis.start)
    plausible = plausible if identified is None else math.nan
    low, high = np.array(ends).T
    return Curve(
        axis.name, axis.unit, tuple(levels.tolist()), tuple(share.tolist()), tuple(low.tolist()), tuple(high.tolist()),
        tuple(loss.tolist()), fails, mean, deviation, float(margin), plausible,
    )  # fmt: skip


def _known(twin: Twin, belief: Belief | None) -> Array | None:
    """Robots that a belief holds possible, over the twin's parameters."""
    return None if belief is None else twin.expand(belief.sample(500, np.random.default_rng(0)), belief.space)


def _level(twin: Twin, axis: Axis, robots: Array) -> tuple[float, float] | None:
    """What a belief says about an axis: mean and standard deviation; None where it says nothing."""
    if not axis.patterns:
        return None
    levels = axis.read(twin, robots)
    nominal = axis.read(twin, twin.space.nominal[None])[0]
    if levels.std() == 0 and abs(levels[0] - nominal) < 1e-12:
        return None
    return float(levels.mean()), float(levels.std())


def _together(result: CourseResult, source: str) -> Together:
    """How robots did that were drawn from all that is known and not known."""
    good = survived(result)
    low, high = interval(int(good.sum()), len(good))
    return Together(source, len(good), float(good.mean()), low, high, float(losses(result).mean()))


def _edges(twin: Twin, axes: Sequence[Axis], belief: Belief | None, wide: Belief) -> dict[Axis, float]:
    """How bad each axis may plausibly be: two standard deviations of the belief beyond its mean, else the end of `wide`."""
    edges = {}
    assert isinstance(wide, Box)
    ends = twin.expand(np.stack([wide.low, wide.high]), wide.space)
    robots = _known(twin, belief)
    for axis in axes:
        if axis.name in (PUSHES, WEAK):
            continue
        known = None if robots is None else _level(twin, axis, robots)
        bad = np.sign(axis.end - axis.start)
        candidates = axis.read(twin, ends).tolist() if known is None else [known[0] + 2 * bad * known[1]]
        edge = max(candidates, key=lambda level: (level - axis.start) * bad)
        if (edge - axis.start) * bad > 0:
            edges[axis] = float(edge if (axis.end - edge) * bad > 0 else axis.end)
    return edges


def _corner(trials: Trials, start: Array, edges: dict[Axis, float], each: int) -> Corner:
    """The worst robot among those that may exist, by the cross-entropy method over how far each axis goes to its edge.

    start: the robot as identified, or as modelled; what no axis turns stays so. Shape: (parameters,).
    """
    rng = np.random.default_rng([trials.seed, 0xC2])
    axes, twin = list(edges), trials.twin
    centre, width = np.full(len(axes), 0.5), np.full(len(axes), 0.5)
    commands = np.tile(trials.commands(each), (CANDIDATES, 1))
    worst, at, share_of_worst, robot = -1.0, np.zeros(len(axes)), 1.0, start
    for number in range(ROUNDS):
        share = np.clip(centre + width * rng.standard_normal((CANDIDATES, len(axes))), 0.0, 1.0)
        if number == 0:
            share[0] = 1.0  # everything as bad as it may be is not always the worst, but likely
        else:
            share[0] = at
        values = np.tile(start, (CANDIDATES, 1))
        for row, shares in zip(values, share, strict=True):
            for axis, s in zip(axes, shares, strict=True):
                axis.write(twin, row, axis.start + s * (edges[axis] - axis.start))
        result = trials.run(spread(list(values), each), commands, trials.usual_push)
        lost = losses(result).reshape(CANDIDATES, -1).mean(axis=1)
        best = np.argsort(-lost)[:ELITE]
        centre, width = share[best].mean(axis=0), share[best].std(axis=0) + 0.05
        if lost[best[0]] > worst:
            worst, at, robot = float(lost[best[0]]), share[best[0]], values[best[0]]
            share_of_worst = float(survived(result).reshape(CANDIDATES, -1)[best[0]].mean())
    levels = {axis.name: float(axis.start + s * (edges[axis] - axis.start)) for axis, s in zip(axes, at, strict=True)}
    return Corner(levels, share_of_worst, worst, ROUNDS * CANDIDATES * each, _standin(twin, robot, trials.seed))


def _standin(twin: Twin, values: Array, seed: int) -> str:
    """A robot as the file of a stand-in: what it has otherwise than its model, and mechanisms that a usual twin lacks."""
    rows = zip(twin.space.names, values, twin.space.nominal, strict=True)
    change = {name: float(f"{value:.6g}") for name, value, nominal in rows if value != nominal}
    special = recipe_of(twin)["mechanisms"]
    add = {m["kind"].lower(): {k: v for k, v in m.items() if k != "kind" and v is not None} for m in special}
    return dump_standin(StandInSpec(twin.source, seed, tolerance=0.0, change=change, add=add, control_dt=twin.control_dt))


def _costs(trials: Trials, belief: Belief, runs: int) -> tuple[Cost, ...]:
    """What each identified cause costs: alone, and left out of all; the same robots, commands and kicks each time."""
    twin = trials.twin
    full = twin.expand(belief.mean(), belief.space)[0]
    nominal = twin.space.nominal
    groups: dict[str, list[int]] = {}
    for i, p in enumerate(twin.space.parameters):
        if full[i] != nominal[i]:
            groups.setdefault(quantities.cause(p.name) or p.quantity, []).append(i)
    commands = trials.commands(runs)

    def loss(values: Array) -> Array:
        return losses(trials.run(spread([values], runs), commands, trials.usual_push))

    as_modelled, as_identified = loss(nominal), loss(full)
    out = []
    for cause, columns in groups.items():
        alone, without = nominal.copy(), full.copy()
        alone[columns], without[columns] = full[columns], nominal[columns]
        added, saved = loss(alone) - as_modelled, as_identified - loss(without)
        errors = [float(d.std(ddof=1)) / math.sqrt(runs) for d in (added, saved)]
        matters = any(float(d.mean()) > max(SURE * e, LEAST) for d, e in zip((added, saved), errors, strict=True))
        out.append(Cost(cause, float(added.mean()), errors[0], float(saved.mean()), errors[1], matters))
    return tuple(sorted(out, key=lambda c: -c.alone))
