"""Fit: from a model and logs to a twin that predicts, with what is not known about it.

    found = fit_admitted(Twin.load("arm.xml", add=[Friction(full=True)]), [read("motion.mcap")])
    found.twin.save("twin.xml", found.values)

Each joint alone first, up a ladder of friction and motor models; then the full model for what couples.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from threadpoolctl import threadpool_limits

from gapless.arrays import Array, Bools
from gapless.errors import BadInput
from gapless.identify import uncertainty as unknown
from gapless.identify.detection_limits import detection_limits
from gapless.identify.full_model.rungs import Full, State, together
from gapless.identify.full_model.standing import stand
from gapless.identify.last_rungs import last_rungs
from gapless.identify.per_joint.inverse_dynamics import Trajectory, trajectories_of
from gapless.identify.per_joint.kernel import gather, without
from gapless.identify.per_joint.ladder import Climb, Remember, Rung, Tick, climb, forget, quiet, structures
from gapless.identify.per_joint.problem import Problem, alike, errors_at, labels, problem, settle, shared, solve
from gapless.identify.result import Fit, estimates
from gapless.identify.score import Scorer, missed, scores
from gapless.identify.sensitivity import Sensitivity, at_half_step
from gapless.identify.trust import Unlike, doubts, hiding, unexplained, unlike
from gapless.logs import Log
from gapless.measure import Stretch, Trace, moving, outlying, split_logs
from gapless.robots import is_position_servo
from gapless.twin import Gaussian, Twin, network_drives, origin_of

# s times degrees of freedom of all logs together; of longer ones stretches are used that are evenly spread
SCORE_SECONDS = 3600.0  # that errors are judged by
FIT_SECONDS = 1200.0  # that joints alone are fitted to
LADDER_SECONDS = 600.0  # of logs on which the ladder is tried
LAW = ("gains.kp", "gains.kd", "motor.strength")  # of a drive
FAR = 1.5  # scaled units: how far off a second start is


@threadpool_limits.wrap(limits=1, user_api="blas")  # sums of several threads end in other bits, on which near ties can hang
def fit_admitted(
    twin: Twin,
    logs: Sequence[Log],
    tick: Tick = quiet,
    remember: Remember = forget,
    fixed: Mapping[str, float] | None = None,
    evolve: bool = False,
    signals: tuple[str, ...] = ("q",),
    given: Twin | None = None,
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
        given: the model as given, where that has another time step.
    """
    started = time.perf_counter()
    if not logs:
        raise BadInput("there is no log to fit to")
    known = _known(twin, fixed or {})
    if not twin.joints:
        raise BadInput(f"{twin.name} has no drives, so there is nothing to fit; state gains (kp, kd) for its joints")
    moving(logs)
    twin = twin.plus(centre=(pose := _middle(twin, logs)))
    split = split_logs(logs, twin.joints)
    judged = split.spread(split.logs, SCORE_SECONDS / twin.model.nv)
    trajectories = [] if _coupled(twin) else trajectories_of(twin, logs, split, judged)
    full = Full(logs, split, signals, Scorer(twin.joints, logs, split, judged, trajectories, given or twin), tick, remember)
    if _coupled(twin):
        state, ladder, used = stand(twin, full, known)
        traced = full.predicted(state)
    else:
        used = split.seconds(fitted := split.spread(judged, FIT_SECONDS / twin.model.nv))
        state, ladder, traced = _fixed_base(twin, trajectories, fitted, pose, known, full, evolve)
    state, traced, every = last_rungs(state, traced, full, known, ladder)
    halves = state.space.to_scaled(state.space.clip(state.halves[:, _places(state)]))
    finer = at_half_step(state.twin, state.space, state.values, logs, split, signals)
    belief, by_slopes, apart = _uncertainty(state, every, halves, finer, hiding(state, unexplained(logs, traced, every.coarse)))
    heldout = scores(traced, "heldout")
    doubt = doubts(state, logs, heldout, traced, missed(twin, traced, len(split)), by_slopes, apart, halves, every, split)
    return Fit(
        robot=twin.name,
        parameters=estimates(belief),
        fixed=dict(known),
        ladder=ladder,
        train=scores(traced, "twin"),
        heldout=heldout,
        undetermined=_undetermined(state, belief, signals),
        limits=detection_limits(every, {n for p in belief.space.parameters for n in p.members or (p.name,)}),
        against=doubt.against,
        suspicions=doubt.suspicions,
        warnings=doubt.notes,
        zeros=state.zeros,
        pose=pose,
        seconds=time.perf_counter() - started,
        seconds_used=used,
        seconds_given=full.seconds,
        origin=origin_of(twin, logs),
        twin=state.twin,
        values=state.values,
        halves=state.halves,
        belief=belief,
        traces=traced,
        finer=_at_half_step(state, finer),
    )


def _coupled(twin: Twin) -> bool:
    """Whether no joint can be fitted alone: feet push back, or a drive follows a network that a joint alone does not have."""
    return twin.floating or bool(network_drives(twin.model))


def _known(twin: Twin, fixed: Mapping[str, float]) -> dict[str, float]:
    """What is not fitted: what a user fixed, and what scales networks that drives follow, which were learned as they are."""
    laws = {f"{quantity}/{joint}" for quantity in LAW for joint in network_drives(twin.model)}
    known = {p.name: p.nominal for p in twin.space.parameters if p.name in laws} | dict(twin.space.fix(fixed).fixed)
    for p in twin.space.parameters:
        if p.tolerance == 0 and p.name not in known:
            way = f"give it one, or fix it (--fix {p.name}={p.nominal:g})"
            raise BadInput(f"{p.name} has a tolerance of zero, so no log can move it: {way}")
    return known


def _middle(twin: Twin, logs: Sequence[Log]) -> dict[str, float]:
    """Median position of each joint: friction that grows with the angle is told from constant friction best about it [rad]."""
    positions = np.concatenate([np.column_stack([log["q"].column(j) for j in twin.joints]) for log in logs])
    return dict(zip(twin.joints, np.nanmedian(positions, axis=0).tolist(), strict=True))


def _fixed_base(
    twin: Twin,
    trajectories: Sequence[Trajectory],
    fitted: Sequence[Stretch],
    pose: Mapping[str, float],
    known: Mapping[str, float],
    full: Full,
    evolve: bool,
) -> tuple[State, list[Rung], list[Trace]]:
    """A robot with a fixed base: each joint alone, then what couples in the full model. Ctrl-C keeps what was found."""
    state, top = _joints_alone(twin, trajectories, fitted, pose, known, full)
    full.tick("checking in the full model")
    traced, more = full.predicted(state), list[Rung]()
    shown = scores(traced, "heldout")
    if not shown.fit < shown.given:  # what joints alone found does not hold together: the full model begins as given
        nominal = state.twin.space.values(known)
        state = replace(state, values=nominal, halves=np.stack([nominal, nominal]))
        traced = full.predicted(state)
    try:
        if not top.stopped:
            state, traced, more = together(state, traced, top, missed(twin, traced, len(full.split)), full, evolve)
    except KeyboardInterrupt:
        full.tick("stopped: what was found so far is kept")
    return state, top.rungs + more, traced


def _uncertainty(
    state: State, every: Sensitivity, halves: Array, finer: Array, hides: Sequence[str]
) -> tuple[Gaussian, Gaussian, list[Unlike]]:
    """The belief over what was fitted; that by slopes alone, from which halves may differ; joints that it makes unlike."""
    space = state.space
    centre = space.to_scaled(space.clip(state.values[_places(state)]))
    by_slopes = unknown.belief(space, centre, every, finer=finer, instead=state.instead, hiding=hides)
    apart = unlike(state.twin, by_slopes)
    numbers = list({tuple(places) for each in apart for places in each.numbers})
    return unknown.belief(space, centre, every, numbers, halves, finer, state.instead, hides), by_slopes, apart


def _at_half_step(state: State, finer: Array) -> Array:
    """All numbers, and those of either half, moved as what was fitted is at half the time step. Shape: (3, parameters).

    finer: what was fitted, there; scaled.
    """
    whole, vectors = state.twin.space, np.stack([state.values, *state.halves])
    scaled, names = whole.to_scaled(vectors), whole.names
    moved = finer - state.space.to_scaled(state.space.clip(state.values[_places(state)]))
    for p, shift in zip(state.space.parameters, moved, strict=True):
        scaled[:, [names.index(n) for n in p.members or (p.name,)]] += shift
    changed = np.isin(names, [n for p in state.space.parameters for n in p.members or (p.name,)])
    return np.where(changed, whole.clip(whole.from_scaled(scaled)), vectors)


def _undetermined(state: State, belief: Gaussian, signals: tuple[str, ...]) -> list[unknown.Unknown]:
    """What the logs leave open."""
    space, twin = state.space, state.twin
    electric = any(n.startswith("motor.kt/") for n in space.names)
    position_only = twin.all_servos and not electric and "tau" not in signals
    return unknown.free(space, belief.covariance, electric, position_only) + unknown.elsewhere(belief, state.rivals)


def _places(state: State) -> list[int]:
    """Where in the twin's space each fitted parameter is; of tied ones the first."""
    return [state.twin.space.names.index((p.members or (p.name,))[0]) for p in state.space.parameters]


def _joints_alone(
    twin: Twin,
    trajectories: Sequence[Trajectory],
    fitted: Sequence[Stretch],
    pose: Mapping[str, float],
    known: Mapping[str, float],
    full: Full,
) -> tuple[State, Climb]:
    """Up the ladder with every joint alone; then its rungs once more with more of the logs, and with either half."""
    servos = [is_position_servo(twin.model, d.actuator) for d in twin.drives]
    more = structures(twin, trajectories)
    wide = [p for _, added in more for p in added]
    split, step = full.split, twin.model.opt.timestep

    def problems(stretches: Sequence[Stretch]) -> list[Problem]:
        parts = [part for s in stretches for c in trajectories if (part := c.within(s)) is not None]
        gathered = [gather(parts, j, pose[d.name], servos[j], step, len(split)) for j, d in enumerate(twin.drives)]
        return [problem(twin, d.name, data, known, wide) for d, data in zip(twin.drives, gathered, strict=True)]

    few = split.spread(fitted, LADDER_SECONDS / twin.model.nv)
    top = climb(problems(few), alike(twin, known), split, full.tick, full.remember)
    full.tick("fitting all joints alone")
    twin = twin.plus(*(m for m, added in more if {p.quantity for p in added} & set(top.chosen)))
    return _alone(twin, problems(fitted), top, split.first, known), top


def _alone(twin: Twin, problems: Sequence[Problem], top: Climb, kept: Bools, known: Mapping[str, float]) -> State:
    """Every joint by itself, on everything and on either half, less the blocks that no fit meets."""
    every, rng = np.ones_like(kept), np.random.default_rng(0)
    teams = [[problems[i] for i in t] for t in top.teams]
    begin = []
    for team, at in zip(teams, top.where, strict=True):
        far = at[0] + rng.uniform(-FAR, FAR, len(at[0]))  # from elsewhere: does it come back?
        begin.append(solve(team, top.chosen, every, [*at, far], iterations=12))
    bad = {p.joint: outlying(errors_at(p, f.x, top.chosen)) for team, f in zip(teams, begin, strict=True) for p in team}
    teams = [[replace(p, data=without(p.data, ~bad[p.joint])) for p in team] for team in teams]
    starts = [[f.x] for f in begin]
    vectors = np.stack([settle(twin, teams, top.chosen, keep, starts) for keep in (every, kept, ~kept)])
    for name, value in known.items():
        vectors[:, twin.space.names.index(name)] = value
    rivals = [(labels(team, f.free, twin), f.x[f.free], r) for team, f in zip(teams, begin, strict=True) for r in f.rivals]
    return State(twin, vectors[0], vectors[1:], shared(twin, teams, top.chosen), {}, rivals)
