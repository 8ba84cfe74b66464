"""The ladder: which friction and motor model does an actuator need? Climbed as long as held-out error truly falls."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gapless.arrays import Array
from gapless.identify.per_joint.inverse_dynamics import Trajectory
from gapless.identify.per_joint.kernel import PLACE, QUANTITIES, without
from gapless.identify.per_joint.problem import Problem, Team, errors_at, solve, starts
from gapless.measure import Split, outlying
from gapless.robots import is_dc_motor, is_position_servo
from gapless.twin import Mechanism, Motion, Parameter, Twin, quantities

RUNGS = tuple(
    (rung, tuple(q for q in QUANTITIES if q in names))
    for rung, names in quantities.rungs().items()
    if set(names) <= set(QUANTITIES)
)
"""Rungs that a joint alone can climb, each with the quantities that it fits; the mechanisms say which."""
DRIVE, PLAIN = RUNGS[:2]
OWN = "+ each joint its own numbers"
LEAST = 0.05  # share of the squared error that a rung must take away to be worth its parameters
NOTHING = 2.0  # tolerances: a structure that is found no larger than this is none
SOFT = (0.7, 1.4)  # times kp: where to begin with a spring in a joint, since from stiff ones a fit rarely comes back
STRUCTURE = 0.25  # the same of rungs that add structure, which unmodelled coupling can mimic

Plan = tuple[str, tuple[str, ...]]
"""A rung's name, and the quantities that it adds."""
Tick = Callable[[str], object]
Remember = Callable[[str, Callable[[], dict[str, Any]]], dict[str, Any]]
"""A name and how to compute something: computed, or what was computed under that name before."""


def quiet(_: str) -> None:
    """Say nothing."""


def forget(_: str, compute: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Compute everything anew."""
    return compute()


@dataclass(frozen=True)
class Rung:
    """A step of the ladder."""

    name: str
    heldout: float
    """Root mean square error on what was held out, mean over joints [rad]."""
    gain: float
    """By how much it lowers the held-out squared error, as a share."""
    error: float
    """Standard error of that gain."""
    added: bool


@dataclass(frozen=True)
class Climb:
    """Where the ladder stands."""

    problems: list[Problem]
    """Less the blocks that no model fits."""
    teams: list[list[int]]
    """Numbers of the joints that share their values."""
    where: list[list[Array]]
    """Scaled vectors to go on from, by team, over its problems' space."""
    errors: list[Array]
    """Held-out squared error by joint and block."""
    split: Split
    tick: Tick
    remember: Remember
    rungs: list[Rung]
    chosen: tuple[str, ...] = ()
    """The quantities that are needed."""
    stopped: bool = False
    """By Ctrl-C, before all rungs were tried."""

    def tried(
        self, teams: Sequence[Sequence[int]], names: tuple[str, ...], begin: Sequence[list[Array]], key: str
    ) -> tuple[list[list[Array]], list[Array]]:
        """Fits of quantities to everything, by team; squared errors by joint and block from a fit to the half that lacks it.

        key: under which they are remembered, with the quantities and joints.
        """
        where, errors, split, blocks = [], list(self.errors), self.split, np.arange(len(self.split))
        for team, start in zip(teams, begin, strict=True):
            members = [self.problems[i] for i in team]

            def fitted(members: Team = members, start: list[Array] = start) -> dict[str, Any]:
                full = solve(members, names, np.ones_like(split.first), start).x
                halves = [solve(members, names, half, [full]).x for half in (split.first, ~split.first)]
                out = [split.held_out(blocks, *(errors_at(p, x, names) for x in halves)).tolist() for p in members]
                return {"x": full.tolist(), "errors": out}

            done = self.remember(f"{key} {','.join(names)} of {','.join(p.joint for p in members)}", fitted)
            where.append([np.array(done["x"], float)])
            for i, e in zip(team, done["errors"], strict=True):
                errors[i] = np.array(e, float)
        return where, errors

    def judged(self, name: str, errors: list[Array], added: bool) -> Rung:
        """A rung that leaves some errors."""
        return Rung(name, _rms(errors), *gain_of(self.errors, errors), added)


def climb(
    problems: Sequence[Problem], teams: Sequence[list[int]], split: Split, tick: Tick = quiet, remember: Remember = forget
) -> Climb:
    """Drive and plain friction first, of each actuator type; then each joint's own where that helps; then the best rung first.

    A rung is added if it lowers held-out error truly: by more than its standard error, and by 5 %. Two halves of the logs are
    each predicted by a fit to the other. Ctrl-C keeps what was found so far.
    """
    problems, teams = list(problems), list(teams)
    before = [p.errors(p.base) for p in problems]
    begin = [starts([problems[i] for i in t]) for t in teams]
    now = Climb(problems, teams, begin, before, split, tick, remember, [Rung("as given", _rms(before), 0.0, 0.0, True)])
    waiting = [r for r in RUNGS if any(p.free(r[1]) for p in problems)]
    try:
        for first in (DRIVE, PLAIN, None, PLAIN):  # None: each joint its own, after which friction may show that it is needed
            if first is None:
                now = _apart(now)
            elif first in waiting:
                now, _ = _best_of(now, [first])
                waiting = [w for w in waiting if not set(w[1]) <= set(now.chosen)]
        waiting = [w for w in waiting if w != PLAIN]
        now = _without_outliers(now)
        plain = now.chosen
        chances = len(waiting)  # rungs that are given up on the way have had theirs
        while waiting:
            now, waiting = _best_of(now, waiting, chances)
        if now.chosen != plain:
            now = _apart(now)
        now = _damping_as_stated(now)
    except KeyboardInterrupt:
        if not now.chosen:
            raise
        return replace(now, stopped=True)
    return now


def _best_of(now: Climb, waiting: Sequence[Plan], chances: int = 1) -> tuple[Climb, list[Plan]]:
    """Try rungs, add the best if it truly helps; what is still worth trying then, which is nothing if none helped.

    chances: how many rungs were tried in all, of which the best may be good by luck.
    """
    trials = []
    for name, extra in waiting:
        begin = [
            where + (_pushed(now.problems[team[0]], where[0], extra) if now.chosen else [])
            for team, where in zip(now.teams, now.where, strict=True)
        ]
        where, errors = now.tried(now.teams, now.chosen + extra, begin, "rung")
        trials.append((now.judged(name, errors, False), extra, where, errors))
        now.tick(f"{name}: held-out {np.degrees(trials[-1][0].heldout):.3f} deg")
    trials.sort(key=lambda trial: -trial[0].gain)
    luck = max(1.0, _luck(chances))
    good = [t for t in trials if t[0].gain > max(luck * t[0].error, least_gain(t[1])) and _noticeable(now, t[2], t[1])]
    if now.chosen and not good:
        return replace(now, rungs=now.rungs + [t[0] for t in trials]), []
    # without the drive's own numbers no other rung can show what it is worth
    best, extra, where, errors = (good or trials)[0]
    chosen, hopeless = now.chosen + extra, {t[1] for t in trials if t[0].gain + t[0].error < 0}
    left = [w for w in waiting if not set(w[1]) <= set(chosen) and w[1] not in hopeless]
    return replace(now, chosen=chosen, rungs=[*now.rungs, replace(best, added=True)], where=where, errors=errors), left


def _luck(chances: int) -> float:
    """The largest of some errors, in standard errors."""
    return float(np.sqrt(2 * np.log(max(chances, 1))))


def _apart(now: Climb) -> Climb:
    """Joints of one type fitted each by itself; they stay apart where held-out error says so."""
    if all(len(t) == 1 for t in now.teams):
        return now
    teams: list[list[int]] = []
    where: list[list[Array]] = []
    errors, tested = list(now.errors), list(now.errors)
    by_luck = max(1.0, _luck(sum(len(t) > 1 for t in now.teams)))
    for team, start in zip(now.teams, now.where, strict=True):
        single, ends, after = [[i] for i in team], [start], now.errors
        if len(team) > 1:
            begin = [[*start, *starts([now.problems[i]])[1:]] for i in team]
            ends, after = now.tried(single, now.chosen, begin, "apart")
        gain, error = gain_of([now.errors[i] for i in team], [after[i] for i in team])
        luck = _luck(max(len(team), 2))
        each = [gain_of([now.errors[i]], [after[i]]) for i in team]
        # all of them gain a little, or one of them much
        apart = len(team) > 1 and (gain > max(by_luck * error, LEAST) or any(g > max(luck * e, 4 * LEAST) for g, e in each))
        teams += single if apart else [team]
        where += ends if apart else [start]
        for i in team:
            tested[i] = after[i]
            errors[i] = after[i] if apart else errors[i]
    freed = len(teams) > len(now.teams)
    now.tick(f"each joint its own numbers: held-out {np.degrees(_rms(tested)):.3f} deg")
    rung = now.judged(OWN, errors if freed else tested, freed)
    return replace(now, teams=teams, where=where, errors=errors, rungs=[*now.rungs, rung])


def _without_outliers(now: Climb) -> Climb:
    """Leave out the blocks that stay far off after plain friction: blocked, slipped or broken."""
    bad = [outlying(e) for e in now.errors]
    if not any(b.any() for b in bad):
        return now
    now = replace(now, problems=[replace(p, data=without(p.data, ~b)) for p, b in zip(now.problems, bad, strict=True)])
    where, errors = now.tried(now.teams, now.chosen, now.where, "without outliers")
    rung = Rung("  less what no model fits", _rms(errors), 0.0, 0.0, True)
    return replace(now, where=where, errors=errors, rungs=[*now.rungs, rung])


def _damping_as_stated(now: Climb) -> Climb:
    """Keep the damping gain that the model states if viscous friction does as well: mostly only their sum is seen."""
    servos = all(p.data.servo and p.free(("gains.kd",)) for p in now.problems)
    if not {"gains.kd", "friction.viscous"} <= set(now.chosen) or not servos:
        return now
    less = tuple(q for q in now.chosen if q != "gains.kd")
    where, errors = now.tried(now.teams, less, now.where, "damping as stated")
    rung = now.judged("  damping gain as stated", errors, False)
    if rung.gain <= -max(rung.error, LEAST / 2):
        return replace(now, rungs=[*now.rungs, rung])
    return replace(now, chosen=less, where=where, errors=errors, rungs=[*now.rungs, replace(rung, added=True)])


def _pushed(p: Problem, full: Array, extra: tuple[str, ...]) -> list[Array]:
    """Starts away from where the new quantities have no effect, since friction that is not there has no slope to follow."""
    if "flex.stiffness" in extra:
        kp = p.at_scaled(full, ("gains.kp",))[PLACE["gains.kp"]]
        return [p.put(full, {"flex.stiffness": share * kp}) for share in SOFT]
    stated = [p.put(full, {q: value}) for q in extra for value in quantities.of(q).starts]
    if stated:
        return stated
    out = full.copy()
    out[p.free(extra)] += 0.5
    return [out]


def _noticeable(now: Climb, where: Sequence[list[Array]], extra: tuple[str, ...]) -> bool:
    """Whether what was found is more than nothing, as a play within its tolerance is."""
    sizes: dict[str, float] = {}
    for team, x in zip(now.teams, where, strict=True):
        space = now.problems[team[0]].space
        for p, value in zip(space.parameters, space.from_scaled(x[0]), strict=True):
            if p.quantity in extra and quantities.of(p.name).structure and p.nominal == 0:
                sizes[p.quantity] = max(sizes.get(p.quantity, 0.0), abs(float(value)) / p.tolerance)
    return all(size > NOTHING for size in sizes.values())


def least_gain(names: Sequence[str]) -> float:
    """Share of the squared error that a rung with these quantities must take away."""
    return STRUCTURE if any(quantities.of(q).structure for q in names) else LEAST


def structures(twin: Twin, trajectories: Sequence[Trajectory]) -> list[tuple[Mechanism, tuple[Parameter, ...]]]:
    """Mechanisms that a twin of servos may turn out to need and that joints alone can show, with the parameters they add."""
    if not all(is_position_servo(twin.model, d.actuator) and not is_dc_motor(twin.model, d.actuator) for d in twin.drives):
        return []
    motion = Motion(np.concatenate([c.q for c in trajectories]), np.concatenate([c.dq for c in trajectories]))
    return [(m, added) for m, added in twin.suspects(motion) if {p.quantity for p in added} <= set(QUANTITIES)]


def _rms(errors: Sequence[Array]) -> float:
    return float(np.mean([np.sqrt(np.nanmean(e)) for e in errors]))


def gain_of(before: Sequence[Array], after: Sequence[Array]) -> tuple[float, float]:
    """Relative fall of the held-out squared error, and its standard error over blocks; mean over joints."""
    falls = np.stack([(b - a) / np.nanmean(b) for b, a in zip(before, after, strict=True)])
    fall = np.nanmean(falls[:, np.isfinite(falls).any(axis=0)], axis=0)
    return float(fall.mean()), float(fall.std() / np.sqrt(max(len(fall), 1)))
