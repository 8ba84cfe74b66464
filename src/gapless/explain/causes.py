"""Explain: which causes make the gap between a twin and a robot, how much each, what is left, and what to do next.

explanation = explain(Twin.load("quadruped", in_air=True), [read("motion.mcap")])
explanation.mechanisms[0].name, explanation.mechanisms[0].share
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from gapless.arrays import Array
from gapless.explain import advice
from gapless.explain.calibrate import contest_of
from gapless.explain.compete import absorbed, compete, refined, relinearised, settled, tolerances
from gapless.explain.contest import AFFORDED, Contest, Effort, Hypothesis
from gapless.explain.physics import errors_of, noise_of, observed
from gapless.explain.remainder import Remainder, located
from gapless.explain.shares import Shares, shares
from gapless.explain.unseen import unseen
from gapless.identify import DetectionLimit
from gapless.logs import Log
from gapless.measure import Windows, traces
from gapless.twin import Motion, Twin

MOST_CAUSES = 3
NOTHING = 1.5  # times the largest that twins within their tolerances leave: below, there is no gap
WORTH = 0.15  # share of what is left that another cause must take away
RARELY_WORTH = 0.5  # the same where only few samples are far off
GOOD = 0.8  # floors (mean square) that fits of true causes leave
LOOSE = 20.0  # times farther out: what an outlier is where a cause that rarely shows is looked for
RARELY = 3.0  # times what is left without them that few large errors must make to be looked at
UNEXPLAINED = 3.0  # times the floor (mean square): above, what is left is a structure that no mechanism has
ONE_UNEXPLAINED = 10.0  # the same for the worst joint alone
NEGLIGIBLE = 0.01  # share of the gap: what is left below it is no news, however sharp the sensors
TOO_LITTLE = 0.02  # share of the gap
MUCH = 0.15  # share of the gap still there, from which on other pairs of causes are tried
WEAK = 0.5  # of what was left that the first cause leaves: then less is enough to try them
CLOSE = 1.5  # times what the best leaves: a runner-up that gets slopes of its own where the best is not good
AGAIN = 4.0  # times what is left to spend that may have been spent when another cause is still looked for
WHOLE = 4.0  # times what the first slopes take: a whole search, usually
OTHERS = 3  # causes that came first or next, from which pairs are begun
ALIKE = 0.08  # relative: causes whose fits leave as much cannot be told apart


@dataclass(frozen=True)
class Number:
    """What a parameter was found to be."""

    value: float
    nominal: float
    unit: str


@dataclass(frozen=True)
class Cause:
    """One mechanism that is wrong about the robot."""

    name: str
    """`mechanism.quantity`."""
    joints: tuple[str, ...]
    """Joints or links that have it, where only some do; empty where all do or it has no place."""
    share: float
    """Of the squared error above the sensors' noise."""
    low: float
    high: float
    group: tuple[str, ...]
    """Causes that this log cannot tell it from."""
    parameters: dict[str, Number]
    """Those that are beyond their tolerances, by name."""
    advice: str


@dataclass(frozen=True)
class Explanation:
    """The gap, shared out."""

    verdict: str
    """"none" (no gap above noise and tolerances), "explained", or "non-parametric" (much is left that no mechanism has)."""
    mechanisms: list[Cause]
    """Largest share first."""
    tolerances: float
    """Share of numbers within their tolerances."""
    remainder: Remainder
    next: list[str]
    """What to do, most useful first."""
    task: dict[str, float]
    """What each mechanism costs the task, worst first, where that was measured."""
    error: float
    """Root mean square error of the model as given, mean over joints [rad]."""
    floor: float
    """The same for twins within their tolerances, after these were fitted."""
    rivals: list[tuple[str, float]]
    """Causes alone, and the mean square that each leaves in units of the floor; best first."""
    limits: list[DetectionLimit]
    """What these logs cannot show: of each cause the smallest mismatch that would have been called a gap."""
    seconds: float
    """Computing time."""
    seconds_used: float
    """Of the logs that were replayed [s]."""
    seconds_given: float
    """That the logs last [s]."""


def explain(
    twin: Twin,
    logs: Sequence[Log],
    tick: Callable[[str, float | None], object] = lambda text, left: None,
    task: Mapping[str, float] | None = None,
) -> Explanation:
    """Name the causes of the gap between a twin and the robot that gave the logs.

    Args:
        twin: the model as given, with its mechanisms.
        logs: of one robot; 20 s of rich motion are enough.
        tick: told what is being done, and how many seconds are left where that is known.
        task: what each mechanism costs the task, where that was measured.
    """
    started = time.perf_counter()
    rng = np.random.default_rng(0)
    effort = Effort(tick)
    effort.begin("replaying the model as given")
    given = observed(twin, logs)
    noise = noise_of(given)
    effort.begin("measuring what its tolerances alone would do")
    contest, spread = contest_of(given, noise, rng, _arenas(given), effort)
    effort.expected = min(AFFORDED, WHOLE * effort.spent)
    enough = NOTHING * max(float(spread.max()), 1.0)
    effort.begin("finding out what these logs cannot show")
    hidden = unseen(contest, enough)
    effort.begin("moving all numbers within their tolerances")
    contest, begun = absorbed(contest, contest.nominal, enough)
    contest, fit, groups, singles = _climbed(contest, begun, enough)
    much = NEGLIGIBLE if singles and singles[0].left > WEAK * begun.left else MUCH
    if len(fit.causes) > 1 and contest.usual(fit).mean() > UNEXPLAINED and _still(contest, fit) > much:
        # a single cause may have imitated two: begin again from the ones that came next
        effort.begin("trying other pairs of causes")
        for first in singles[1:OTHERS] if contest.effort.left > 0 else ():
            again = _climbed(*settled(contest, first), enough, 2)
            if again[0].evidence(again[1]) < again[0].evidence(again[0].again(fit)):
                contest, fit, groups = again[:3]
            if contest.usual(fit).mean() <= UNEXPLAINED:
                break
    rivals = [(f.causes[-1], f.left) for f in singles]
    effort.begin("sharing the error out")
    shared = shares(contest, fit, noise, rng)
    usual = contest.usual(fit)
    odd = (usual.mean() > UNEXPLAINED or usual.max() > ONE_UNEXPLAINED) and shared.left > NEGLIGIBLE
    verdict = "non-parametric" if odd or (not fit.causes and usual.mean() > enough) else "explained"
    return _explanation(contest, fit, shared, groups, verdict, rivals, hidden, task or {}, started)


def _errors(contest: Contest, fit: Hypothesis) -> Array:
    """Errors of the model as given, and with the values of a fit [rad]. Shape: (2, samples, columns)."""
    arena = contest.arena(fit.causes)
    return errors_of(contest.arenas[arena], contest.values(np.stack([np.zeros_like(fit.x), fit.x]), arena))


def _still(contest: Contest, fit: Hypothesis) -> float:
    """Share of the squared error that is still there, noise and all."""
    before, after = (_errors(contest, fit) ** 2).sum(axis=(1, 2))
    return float(after / before)


def _climbed(
    contest: Contest, fit: Hypothesis, enough: float, most: int = MOST_CAUSES
) -> tuple[Contest, Hypothesis, dict[str, tuple[str, ...]], list[Hypothesis]]:
    """Causes added one by one as long as one is worth it; also what each cannot be told from, and the rivals of the first."""
    groups: dict[str, tuple[str, ...]] = {}
    rivals: list[Hypothesis] = []
    while len(fit.causes) < most and contest.effort.left > contest.effort.spent / AGAIN:
        besides = f" besides {', '.join(fit.causes)}" if fit.causes else ""
        contest.effort.begin(f"looking for a cause{besides} ({fit.left:.1f} times the floor is left)")
        contest, ranked = _another(contest, fit, enough)
        if not ranked:
            break
        rivals = rivals or ranked
        fit = ranked[0]
        groups[fit.causes[-1]] = tuple(f.causes[-1] for f in ranked[1:] if f.left < (1 + ALIKE) * fit.left)
        contest, fit = settled(contest, fit) if contest.loose == 1.0 else relinearised(replace(contest, loose=1.0), fit)
    return contest, fit, groups, rivals


def _another(contest: Contest, fit: Hypothesis, enough: float) -> tuple[Contest, list[Hypothesis]]:
    """Hypotheses with one more cause, best first, where the best is worth it; none otherwise; and slopes about there.

    Few large errors are taken for lost commands at first. If nothing else is left they are looked at: a cause that rarely
    shows, as a torque limit does, must explain most of them.
    """
    loose = replace(contest, loose=LOOSE, outlier=LOOSE * contest.outlier)
    before = loose.again(fit)
    rare = before.left >= RARELY * max(fit.left, enough)
    if fit.left > enough:
        near, ranked = refined(contest, compete(contest, fit, [c for c in contest.causes if c not in contest.arenas]))
        least = WORTH if contest.usual(fit).mean() > enough else RARELY_WORTH
        # what the model has does not explain it: something new in it may; where replays are dear, once and after all else
        if ranked[0].left > enough and not (contest.dear and (rare or _worth(near, fit, ranked[0], least))):
            structures = compete(near, tolerances(near, near.again(fit)), list(contest.arenas)[1:])
            if structures and near.evidence(structures[0]) < near.evidence(ranked[0]):
                near, ranked = refined(near, [*structures, *ranked])
            else:
                ranked = sorted([*ranked, *structures], key=near.evidence)
        close = len(ranked) > 1 and ranked[1].left < CLOSE * ranked[0].left
        if not fit.causes and ranked[0].left > enough and close and not contest.dear:
            near, ranked = refined(near, [ranked[1], ranked[0], *ranked[2:]])  # the runner-up had slopes that suited the first
        if _worth(near, fit, ranked[0], least):
            return near, ranked
    if not rare:
        return contest, []
    loose, before = relinearised(loose, before)
    before = tolerances(loose, before)
    near, ranked = refined(loose, compete(loose, before, list(contest.causes)))
    return (near, ranked) if _excess(ranked[0]) < (1 - RARELY_WORTH) * _excess(near.again(before)) else (contest, [])


def _worth(contest: Contest, fit: Hypothesis, more: Hypothesis, least: float) -> bool:
    """Whether a hypothesis with one more cause is worth it. least: share of what is left that it must take away."""
    before = contest.again(fit)
    return contest.evidence(more) < contest.evidence(before) - 10 and _excess(more) < (1 - least) * _excess(before)


def _excess(fit: Hypothesis) -> float:
    """What is left above what a good fit leaves, in floors."""
    return max(fit.left - GOOD, 0.0)


def _arenas(given: Windows) -> dict[str, Windows]:
    """Models with a mechanism that the twin lacks and that competes (play, a spring), by the cause that needs it."""
    twin = given.twin
    if not twin.all_servos:
        return {}
    q = given.measured("q")
    error = errors_of(given, twin.space.nominal[None])[0, :, : len(twin.joints)]
    speed = given.measured("dq") if given.has("dq") else np.gradient(q, axis=0)
    motion = Motion(q, speed, error, given.split.first[given.block])
    return {cause: given.like(rival) for cause, rival in twin.rivals(motion).items()}


def _explanation(
    contest: Contest,
    fit: Hypothesis,
    shared: Shares,
    groups: Mapping[str, tuple[str, ...]],
    verdict: str,
    rivals: list[tuple[str, float]],
    hidden: list[DetectionLimit],
    task: Mapping[str, float],
    started: float,
) -> Explanation:
    """In words and numbers."""
    data = contest.arenas[contest.arena(fit.causes)]
    measured, count = data.measured("q"), len(data.twin.joints)
    given, final = measured + _errors(contest, fit)[:, :, :count]
    every = [_cause(contest, fit, k, shared, groups) for k in range(len(fit.causes))]
    # a cause that later ones have brought back within its tolerance, or that takes no error off what was held out, is none
    idle = [c for c in every if not c.parameters or c.share < TOO_LITTLE]
    causes = sorted((c for c in every if c not in idle), key=lambda c: -c.share)
    verdict = verdict if causes or verdict == "non-parametric" else "none"
    remainder = located(traces(data, given, final), shared.left, fit.left)
    todo = [c.advice for c in causes] + [s for c in causes for s in advice.separating(c.name, c.group)]
    if verdict == "none":
        todo = ["nothing in the model: what differs is within its tolerances and the sensors' noise"]
    if verdict == "non-parametric":
        todo.append(f"learn a residual, or look at the robot: {remainder.where[0]}")
    return Explanation(
        verdict=verdict,
        mechanisms=causes,
        tolerances=float(shared.share[-1]) + sum(c.share for c in idle),
        remainder=remainder,
        next=todo,
        task=dict(sorted(task.items(), key=lambda item: -item[1])),
        error=float(np.sqrt(((given - measured) ** 2).mean(axis=0)).mean()),
        floor=float(contest.floor[:count].mean()),
        rivals=rivals,
        limits=hidden,
        seconds=time.perf_counter() - started,
        seconds_used=float(data.split.length[data.blocks].sum()),
        seconds_given=data.split.seconds(data.split.logs),
    )


def _cause(contest: Contest, fit: Hypothesis, k: int, shared: Shares, groups: Mapping[str, tuple[str, ...]]) -> Cause:
    """The k-th cause of a fit, in words and numbers."""
    name, (low, high), space = fit.causes[k], contest.box, contest.space
    values = space.clip(space.from_scaled(fit.x))
    beyond = [i for i in contest.causes[name] if not 1.5 * low[i] - 1e-9 <= fit.x[i] <= 1.5 * high[i] + 1e-9]
    every, wrong = (dict.fromkeys(contest.owners[i] for i in numbers) for numbers in (contest.causes[name], beyond))
    joints = tuple(wrong) if len(wrong) <= 0.7 * len(every) else ()
    parameters = {(p := space.parameters[i]).name: Number(float(values[i]), p.nominal, p.unit) for i in beyond}
    share, least, most = (float(each[k]) for each in (shared.share, shared.low, shared.high))
    words = advice.sentence(name, joints, {n: (p.value, p.nominal, p.unit) for n, p in parameters.items()})
    return Cause(name, joints, share, least, most, groups.get(name, ()), parameters, words)
