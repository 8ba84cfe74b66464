"""The loop: from a policy that fails on a robot to one that works, in stages that are done once.

result = close(Case("quadruped", standin=load_standin("robot.toml")), "out/close")
print(result)
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from gapless.arrays import Array
from gapless.check import PolicyCheck, check, losses
from gapless.close.belief import Identified, identified, log_of, logs_key, record_twin, walking
from gapless.close.case import Case
from gapless.close.field import LOG_SECONDS, TRIAL_SECONDS, TRIALS, changed_causes, contents, filmed, named, scored, tried
from gapless.close.result import Blamed, Closed, Found, Scored, Spent
from gapless.close.stages import Stages, Tell, key_of
from gapless.close.techniques import TECHNIQUES
from gapless.close.training import CURVE, on_robot, to_tune, trained
from gapless.errors import BadInput
from gapless.explain import diagnose
from gapless.files import sha256
from gapless.identify import Fit, WalkingFit
from gapless.learn import CourseResult, draw_from, run_course, task_of
from gapless.measure import admit
from gapless.plain import read_json, typed, write_json
from gapless.policy import load_policy
from gapless.report import percent
from gapless.robots import files_of
from gapless.twin import load_belief, quantities

AS_IT_WAS, BASE, TUNED, AGAIN, ORACLE = "as it was", "wide", "tuned", "tuned again", "oracle"
MEASURED = Path(__file__).with_name("oracle.json")
"""Figures of the oracle on the stand-in that comes along, as `gapless close --oracle` measured them."""
GLANCES = 2
"""Trials of the policy that is on the robot, which only show how bad it is."""
GAIN = 0.02
"""Share of the task: a policy that loses no more than this in believed worlds beyond what it loses in `wide` has nothing to
gain from them."""
WORKS = 0.5
"""Share of the task: a policy that loses more even in believed worlds does not work, so there is something to gain."""
TELLS = 0.2
"""Share of the task: what a glance can tell of two policies; single trials under other commands differ by as much."""
EXPECTED = 2
"""Robots for each command, for what is expected in simulation."""


@dataclass(frozen=True)
class Choice:
    """Which policy is to run, and why."""

    answer: str
    kept: str
    why: str


def close(
    case: Case,
    folder: str | os.PathLike[str],
    tell: Tell = lambda text, left: None,
    score: bool = True,
    oracle: bool = False,
) -> Closed:
    """Close the gap of a case: look, record, explain, fit, tune, check, try, keep the better.

    Args:
        case: the robot, its policies and its time.
        folder: where every stage keeps what it made; a loop that was stopped goes on there.
        tell: told what is being done, and how many seconds are left where that is known.
        score: whether policies are judged at length in the end, where the robot is a stand-in.
        oracle: whether a policy is tuned on the stand-in as it really is, too: what nobody can do, for scoring.
    """
    stages = Stages(Path(folder), case.budget, tell)
    case.must_begin()  # refused before anything is computed, as logs of another robot are
    _must_afford(case)
    if case.standin is None:
        logs = log_of(case, stages)
        admit(record_twin(case, logs[0]), logs)
    stages.folder.mkdir(parents=True, exist_ok=True)
    if case.standin is None:  # nothing is asked of the robot any more: what its logs tell comes before any training
        _told(case, stages)
    policies = _policies(case, stages)
    trials = _first_trials(case, stages, policies)
    causes, known = _told(case, stages)
    old = _old(case, stages, trials, policies, known.belief)
    choice, checked = _choose(case, stages, policies, trials, known, old, TUNED)
    if _worth_another(case, stages, trials, choice):
        log, now = stages.place("log") / "log.npz", stages.below("again")
        start = to_tune(case, stages) if choice.kept == AS_IT_WAS else policies[choice.kept]
        earlier = () if walking(case) else (*case.logs, str(log))  # a fit to walking is to logs of one policy
        more = replace(case, logs=earlier, base=str(start), seed=case.seed + 1)
        known = identified(more, now)
        choice, checked = _choose(more, now, policies, trials, known, choice.kept, AGAIN)
    result = _gathered(case, stages, policies, trials, known, causes, choice, checked)
    if case.standin is not None and score:
        result = _scored(case, stages, result, policies, oracle)
    result.save(stages.folder)
    return result


def _told(case: Case, stages: Stages) -> tuple[dict[str, Any] | None, Identified]:
    """What the logs tell: causes of the gap, but for a robot that walked, and what is believed."""
    return None if walking(case) else _explained(case, stages), identified(case, stages)


def _policies(case: Case, stages: Stages) -> dict[str, Path]:
    """What there is before anything is tuned: what is on the robot, and what will be tuned where that is another one."""
    base = to_tune(case, stages)
    if case.standin is None and not case.policy:
        return {BASE: base}
    first = on_robot(case, stages)
    return {AS_IT_WAS: first} if contents(first) == contents(base) else {AS_IT_WAS: first, BASE: base}


def _must_afford(case: Case) -> None:
    """Refuse less robot time than the log and the trials take."""
    one = bool(case.policy and case.base) and contents(Path(case.policy)) == contents(Path(case.base))
    needed = LOG_SECONDS + TRIAL_SECONDS * (2 * TRIALS + (0 if one else GLANCES))
    if case.standin is not None and case.budget < needed:
        raise BadInput(
            f"{case.budget:g} s of robot time are too few: a log of {LOG_SECONDS:g} s and trials of old and new policy take "
            f"{needed:g} s (--robot-time)"
        )


def _first_trials(case: Case, stages: Stages, policies: dict[str, Path]) -> dict[str, Array]:
    """How bad the policies are that there are; nothing where the robot is hardware, which only its owner can try."""
    if case.standin is None:
        return {}
    glance = {AS_IT_WAS: GLANCES} if len(policies) > 1 else {}
    return {
        name: tried(case, stages, f"trials/{name.replace(' ', '_')}", policy, glance.get(name, TRIALS))
        for name, policy in policies.items()
    }


def _old(case: Case, stages: Stages, trials: dict[str, Array], policies: dict[str, Path], belief: Path | None) -> str:
    """The better of the policies that there are, which a tuned one has to beat.

    The few trials of the policy that is on the robot decide where they tell; else the worlds that the fit leaves possible do,
    or those of `wide` where it must not be used.
    """
    if not trials or len(policies) < 2:
        return BASE if BASE in policies else AS_IT_WAS
    lost = {name: float(trials[name][:GLANCES].mean()) for name in (AS_IT_WAS, BASE)}
    if abs(lost[AS_IT_WAS] - lost[BASE]) <= TELLS:
        lost = {name: _expected(case, stages, name, policies[name], belief)[-1] for name in lost}
    return min(lost, key=lambda name: lost[name])


def _worth_another(case: Case, stages: Stages, trials: dict[str, Array], choice: Choice) -> bool:
    """Whether a second log and trial are worth their robot time: there is enough, and the policy that is kept still fails."""
    left = case.budget - stages.spent >= LOG_SECONDS + TRIALS * TRIAL_SECONDS
    return left and choice.answer in ("closed", "kept") and bool((trials[choice.kept] >= 1).any())


def _explained(case: Case, stages: Stages) -> dict[str, Any]:
    """The gap of the model as given, and its causes, as JSON has them."""
    logs = log_of(case, stages)

    def make(folder: Path) -> None:
        diagnose(record_twin(case, logs[0]), logs, stages.tell).save(folder)

    inputs = {"log": logs_key(case, stages), "stated": case.stated, "robot": sha256(*files_of(case.robot)), "hoist": case.hoist}
    return stages.run("gap", inputs, make, lambda folder: read_json(folder / "gap.json"), says="looking for causes of the gap")


def _choose(
    case: Case,
    stages: Stages,
    policies: dict[str, Path],
    trials: dict[str, Array],
    known: Identified,
    old: str,
    new: str,
) -> tuple[Choice, PolicyCheck | None]:
    """Tune where that may help, check, try on the robot, and keep the better; policies and trials gain what is new.

    old, new: what the policy to beat and the tuned one are called.
    """
    if known.belief is None:
        return Choice("not trusted", old, f"{known.said} Nothing was tuned."), None
    start = to_tune(case, stages)
    wide, believed = _expected(case, stages, BASE, start, known.belief)
    fell = bool(trials) and (trials[old] >= 1).any()
    if believed <= min(wide + GAIN, WORKS) and not fell:
        why = f"in the worlds that the fit leaves possible the policy loses {believed:.0%} of its task, in `wide` {wide:.0%}"
        why += ", and it did not fall on the robot" if trials else ""
        return Choice("nothing to gain", old, f"Nothing was tuned: {why}."), None
    tuned = policies[new] = trained(case, stages, TUNED, "informed", known.belief, start, mirror=not known.lopsided)
    checked = _checked(case, stages, tuned)
    if checked.outcome == "fail":
        return Choice("kept", old, f"The tuned policy was not tried: {checked.verdict().text}"), checked
    if case.standin is None:
        return Choice("untried", new, "Try the old and the tuned policy on the robot, and keep the better."), checked
    trials[new] = tried(case, stages, "trials/tuned", tuned)
    fair = len(trials[old])
    before, after = trials[old].mean(), trials[new][:fair].mean()
    words = f"in {fair} trials each on the robot it lost"
    both = percent(after), percent(before)
    if after < before:
        return Choice("closed", new, f"The tuned policy is kept: {words} {both[0]} of its task, {old!r} {both[1]}."), checked
    return Choice("kept", old, f"The policy {old!r} is kept: {words} {both[1]} of its task, the tuned one {both[0]}."), checked


def _expected(case: Case, stages: Stages, name: str, policy: Path, belief: Path | None) -> tuple[float, ...]:
    """What a policy loses of its task in `wide`, and in worlds that a belief leaves possible, with `wide` for the rest."""
    presets: dict[str, Path | None] = {"wide": None} | ({"informed": belief} if belief else {})

    def make(folder: Path) -> None:
        found = {}
        for preset, source in presets.items():
            twin = case.stated.twin(case.robot, belief=source)
            drawn = draw_from(preset, twin, load_belief(source) if source else None)
            rng = np.random.default_rng([case.seed, 0xE])
            found[preset] = run_course(twin, task_of(case.task, twin), load_policy(policy), drawn, rng, EXPECTED)
        write_json(folder / "expected.json", {name: float(losses(result).mean()) for name, result in found.items()})

    def load(folder: Path) -> tuple[float, ...]:
        return tuple(read_json(folder / "expected.json")[preset] for preset in presets)

    known = sha256(belief) if belief else ""
    inputs = {"policy": contents(policy), "belief": known, "task": case.task, "stated": case.stated, "seed": case.seed}
    return stages.run(f"expected/{name.replace(' ', '_')}", inputs, make, load, says=f"asking simulation what {name} loses")


def _checked(case: Case, stages: Stages, policy: Path) -> PolicyCheck:
    """Whether the tuned policy may run at all, by its files and a walk in the model."""

    def make(folder: Path) -> None:
        check(policy, case.stated.robot(case.robot)).save(folder)

    inputs = {"policy": contents(policy), "robot": case.robot, "stated": case.stated}
    return stages.run("check", inputs, make, PolicyCheck.load, says="checking the tuned policy")


def _gathered(
    case: Case,
    stages: Stages,
    policies: dict[str, Path],
    trials: dict[str, Array],
    known: Identified,
    causes: dict[str, Any] | None,
    choice: Choice,
    checked: PolicyCheck | None,
) -> Closed:
    """The result, as far as the robot's owner can see it; beside the truth where the robot is a stand-in."""
    found, truth = known.fit, named(case.secret) if case.standin else {}
    verdicts = {"gap": causes["verdict"]} if causes else {}
    verdicts |= {"fit": found.verdict().text, "belief": known.said}
    verdicts |= {"check": checked.verdict().text} if checked else {}
    blamed = causes["explanation"]["mechanisms"] if causes else []
    changed = changed_causes(case.secret) if case.standin else set()
    names = {str(cause["name"]) for cause in blamed}
    walked = isinstance(found, WalkingFit)
    tuned = policies.get(AGAIN, policies.get(TUNED))
    curve = read_json(tuned / CURVE)["curve"] if tuned else []
    return Closed(
        robot=found.robot,
        task=case.task,
        budget=case.budget,
        answer=choice.answer,
        kept=choice.kept,
        policy=str(policies[choice.kept]),
        why=choice.why,
        trials={name: each.tolist() for name, each in trials.items()},
        course={},
        causes=[Blamed(str(c["name"]), float(c["share"]), c["name"] in changed) for c in blamed],
        missed=sorted(c for c in changed - names if not _same_to_a_fit(c, names)),
        numbers=_numbers(found, truth),
        gap=found.heldout_given if isinstance(found, WalkingFit) else found.heldout.given,
        left=found.heldout if isinstance(found, WalkingFit) else found.heldout.fit,
        walked=walked,
        unknown=[f"{', '.join(u.parameters[:3])}: {u.meaning}" for u in found.undetermined],
        verdicts=verdicts,
        curve=[(int(p["iteration"]), float(p["unseen"])) for p in curve],
        spent=[Spent(name, r.robot, r.computing) for name, r in stages.records.items()],
    )


def _same_to_a_fit(cause: str, names: set[str]) -> bool:
    """Whether one of some causes stands for another in a fit, or the other for it."""
    return any(cause in quantities.stood_for(name) or name in quantities.stood_for(cause) for name in names)


def _numbers(found: Fit | WalkingFit, truth: dict[str, float]) -> list[Found]:
    """What was fitted and is known or was changed, one of those that share a value, beside the truth."""
    out = []
    for name, p in found.parameters.items():
        members = p.shared_by or (name,)
        real = [truth[m] for m in members if m in truth]
        if real or p.identified:
            out.append(Found(name, p.nominal, p.value, p.low, p.high, p.unit, float(np.mean(real)) if real else np.nan))
    return out


def _scored(case: Case, stages: Stages, result: Closed, policies: dict[str, Path], oracle: bool) -> Closed:
    """The result with every policy judged at length on the stand-in, and a film of the first and the one that is kept."""
    judged, shown = dict(policies), {AS_IT_WAS: policies[AS_IT_WAS]} | {result.kept: policies[result.kept]}
    apart = Stages(stages.folder, case.budget, stages.tell)  # no part of what the loop takes
    if oracle:
        judged[ORACLE] = next(t for t in TECHNIQUES if t.name == ORACLE).remedy(case, apart)
    course = {name: _course(case, apart, name, policy) for name, policy in judged.items()}
    measured = read_json(MEASURED) if MEASURED.is_file() else {}
    if not oracle and measured.get("key") == oracle_key(case):
        course[ORACLE] = typed(Scored, measured)
    return replace(result, course=course, film=filmed(case, shown))


def _course(case: Case, stages: Stages, name: str, policy: Path) -> Scored:
    def make(folder: Path) -> None:
        scored(case, policy).save(folder)

    inputs = {"policy": contents(policy), "standin": case.secret, "task": case.task}
    says = f"scoring the policy {name} at length, which no stage sees"
    judged = stages.run(f"score/{name.replace(' ', '_')}", inputs, make, CourseResult.load, says=says)
    figures = judged.summary()
    velocity, yaw = (figures.get(error, np.nan) for error in ("velocity_error", "yaw_error"))
    return Scored(figures["falls"], figures["success"], velocity, yaw, len(judged.fell))


def oracle_key(case: Case) -> str:
    """What an oracle's figures depend on."""
    base = contents(Path(case.base)) if case.base else ""
    return key_of({"standin": case.secret, "task": case.task, "base": base, "tuning": (case.iterations, case.seed)})
