"""Preflight: may this policy run on the robot? Named checks, boundary by boundary; the first that fails is the finding."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gapless.arrays import Array
from gapless.check import drives, network as net, sequence
from gapless.check.alternatives import Alternative, alternatives, exchanges
from gapless.check.finding import BOUNDARIES, BOUNDARY_OF, DRIVES, FAIL, NETWORK, PASS, PHYSICS, SIGNALS, SKIP, WARN, Check
from gapless.check.frames import FEW, frame_columns, predict
from gapless.check.walk import Walk, walk
from gapless.errors import BadInput
from gapless.policy import Candidate, Contract, Network
from gapless.robots import RobotModel

Golden = tuple[Array, Array]
TRACKS = 0.5
"""Share of the distance that was asked for, below which a robot does not do what it is told."""
CLOSE = 0.15
"""Difference in tracking within which alternatives are equally good; then the more common mistake is named."""
PREDICTS = 0.8
"""Share of a change of joint speeds that may be left unexplained by physics that are believed."""
CHATTERS, SATURATES, REACHED = 0.5, 0.3, 0.05
SEARCH = 3.0
"""How long each alternative walks [s]."""
BETTER = 0.25
"""By how much an alternative must track better than the contract as it stands."""
GLANCE, FRAMES, CLOSER, ODD = 10, 32, 8, 4
"""Frames by which every alternative is tried, those by which the best ones are, how many those are, and joints to exchange."""
EQUAL = 1.01
"""Errors within this are one and the same."""
SETTLED = ("period", "history order", "history layout", "last action", "gravity sign", "IMU frame", "quaternion order")
"""What successive frames themselves have shown to be right; physics are not asked again."""
BUDGET = 3.5
"""How long alternatives are tried, by physics between frames and again by walking; of the processor's time [s]."""


@dataclass(frozen=True)
class Preflight:
    """All checks in order, and the walk, where there was one."""

    checks: tuple[Check, ...]
    walk: Walk | None

    @property
    def failed(self) -> tuple[Check, ...]:
        return tuple(c for c in self.checks if c.status == FAIL)


@dataclass(frozen=True)
class Subject:
    """What is checked: any callable with a contract, a robot, and what else is known."""

    network: Network
    contract: Contract
    robot: RobotModel | None
    golden: Golden | None = None
    begins_scaled: bool | None = None
    """Whether the network shifts or scales its inputs first; None where that is not known."""
    memoryless: bool = False
    """Whether the contract knows nothing of a memory that the network takes."""

    @staticmethod
    def of(candidate: Candidate, robot: RobotModel | None) -> "Subject":
        assert candidate.policy is not None and candidate.contract is not None
        known = candidate.normalizer, candidate.memoryless
        return Subject(candidate.policy, candidate.contract, robot, candidate.golden, *known)


def default_command(contract: Contract) -> tuple[float, ...]:
    """Half a metre a second forward, or what the policy was trained with; zero for other rates, the middle for a place."""
    out = []
    for name, bounds in contract.commands.items():
        low, high = (float(np.min(b)) for b in bounds) if bounds else (-0.5, 0.5)
        forward = min(0.5, high) if name == "vx" and high > 0 else 0.0
        still = (low + high) / 2 if name in ("x", "y", "z") else min(max(0.0, low), high)
        out.append(forward if name == "vx" else still)
    return tuple(out)


def preflight(subject: Subject, command: Sequence[float] | None = None, seconds: float = 10.0) -> Preflight:
    """Judge a policy, boundary by boundary.

    Args:
        subject: the policy and its robot.
        command: that it walks by; `default_command` unless given.
        seconds: how long it walks.
    """
    contract, robot = subject.contract, subject.robot
    asked = default_command(contract) if command is None else tuple(command)
    if len(asked) != len(contract.commands):
        names = ", ".join(contract.commands) or "none"
        raise BadInput(f"the policy takes {len(contract.commands)} commands ({names}), not {len(asked)}")
    if robot is not None:
        contract.columns(robot.joints)  # another robot is bad input
    checks = [*_first(subject)]
    if _fails(checks):
        return _ended(checks, NETWORK, None)
    checks += drives.unknown(contract)
    shown: list[Check] = []
    if subject.golden is not None and len(subject.golden[0]) >= FEW:
        judged = sequence.judge(contract, *subject.golden, robot)
        shown = [c for c in judged if c.name == "joint limits"]  # a symptom of order, pose or unit: physics tell which
        checks += [c for c in judged if c not in shown]
        if _fails(checks):
            return _ended(checks, SIGNALS, None)
    symptoms = [*shown, *_symptoms(contract, robot)]
    if robot is None:
        checks += [*symptoms, Check("robot", DRIVES, SKIP, "No robot was named, so nothing behind the observation was judged.")]
        return _ended(checks, DRIVES if _fails(checks) else None, None)
    if any(c.name == "contract" and c.status == SKIP for c in checks):
        return _ended([*checks, *symptoms], _where(symptoms), None)
    if (named := _by_physics(subject, symptoms)) is not None:
        checks += [*(s for s in symptoms if s.status != FAIL), named]
        return _ended(checks, named.boundary, None)
    blind = [t.name for t in contract.observation.terms if t.kind not in drives.KNOWN]
    if blind:
        checks += [*symptoms, Check("walk", PHYSICS, SKIP, f"No simulator here gives {', '.join(blind)}, so it does not walk.")]
        return _ended(checks, _where(symptoms), None)
    walked, _ = walk(subject.network, contract, robot, asked, seconds)
    steps = [*_judge(walked, symptoms)]
    if not _fails(steps) and not _fails(symptoms):
        return _ended([*checks, *symptoms, *steps], None, walked)
    if not _fails(symptoms) and all(c.name == "torque limit" for c in steps if c.status == FAIL):
        return _ended([*checks, *symptoms, *steps], DRIVES, walked)
    named = _by_walking(subject, symptoms, asked, walked)
    if named is not None:
        checks += [*(s for s in symptoms if s.status != FAIL), named]
        return _ended(checks, named.boundary, walked)
    return _ended([*checks, *symptoms, *steps], _where(symptoms) or PHYSICS, walked)


def _first(subject: Subject) -> list[Check]:
    """Observation to action."""
    contract = subject.contract
    checks = [*net.sanity(subject.network, contract, subject.begins_scaled, subject.memoryless)]
    if _fails(checks):
        return checks
    checks += net.golden_parity(subject.network, contract, subject.golden)
    columns = frame_columns(contract)
    around = _ordinary(contract, subject.golden)
    if contract.width <= 2000 and contract.recurrent is None:
        sizes = net.jacobian(subject.network, contract, around)
        checks += net.dead_terms(sizes, columns)
        shown = next((t for t in contract.observation.terms if t.kind == "q"), None)
        if subject.robot is not None and shown is not None:
            checks += net.order_from_network(sizes, columns[shown.name], contract, subject.robot)
    return checks


def _ordinary(contract: Contract, golden: Golden | None) -> Array:
    """A few observations like those of training: golden ones, else of a robot that stands upright. Shape: (k, width)."""
    if golden is not None and golden[0].ndim == 2 and golden[0].shape[1] == contract.width and len(golden[0]):
        return golden[0][:: max(1, len(golden[0]) // 4)][:4]
    rng = np.random.default_rng(0)
    rows = rng.normal(0.0, 0.05, (4, contract.width))
    for age in range(max(t.history for t in contract.observation.terms)):
        columns = frame_columns(contract, age)
        for term in contract.observation.terms:
            if term.kind == "gravity" and term.name in columns:
                rows[:, columns[term.name]] += np.asarray(contract.conventions.gravity) * np.asarray(term.scale)
    return rows


def _symptoms(contract: Contract, robot: RobotModel | None) -> list[Check]:
    """What the contract itself shows."""
    checks = [*drives.terms(contract), *drives.timing(contract)]
    if robot is not None:
        for judge in (drives.imu, drives.gains, drives.action, drives.pose, drives.limits):
            checks += judge(contract, robot)
    return checks


def _judge(walked: Walk, symptoms: Sequence[Check]) -> list[Check]:
    """What a walk says; a torque limit far below the model's is a defect once it is reached."""
    share = walked.distance / walked.asked if walked.asked > 0 else 1.0
    went = f"went {walked.distance:.2f} m of {walked.asked:.2f} m in" if walked.asked > 0 or walked.distance else "moved for"
    words = f"It {went} {walked.seconds:.1f} s in MuJoCo"
    checks = []
    if walked.broke:
        checks.append(Check("walk", PHYSICS, FAIL, f"The simulation broke: {walked.broke}.", walked.seconds, unit="s"))
    elif walked.fell:
        checks.append(Check("walk", PHYSICS, FAIL, f"{words} and fell.", share, TRACKS, fix="See the causes that were tried."))
    elif share < TRACKS:
        checks.append(Check("walk", PHYSICS, FAIL, f"{words}.", share, TRACKS, fix="See the causes that were tried."))
    else:
        checks.append(Check("walk", PHYSICS, PASS, f"{words}.", share, TRACKS))
    worst = max(walked.saturation, key=lambda j: walked.saturation[j])
    status = WARN if walked.saturation[worst] > SATURATES else PASS
    if walked.saturation[worst] > REACHED and any(s.name == "torque limit" and s.status == WARN for s in symptoms):
        sentence = f"{worst} is at the contract's torque limit {100 * walked.saturation[worst]:.0f} % of the time."
        fix = "The contract allows less than half of the model's torque: compare with the drive's data sheet."
        checks.append(Check("torque limit", DRIVES, FAIL, sentence, walked.saturation[worst], REACHED, fix=fix))
    sentence = f"{worst} is at its torque limit {100 * walked.saturation[worst]:.0f} % of the time."
    checks.append(Check("saturation", PHYSICS, status, sentence, walked.saturation[worst], SATURATES))
    first = max(walked.first_torque, key=lambda j: walked.first_torque[j])
    status = WARN if walked.first_torque[first] >= 1.0 else PASS
    sentence = f"In the first period {first} takes {100 * walked.first_torque[first]:.0f} % of its torque."
    checks.append(Check("first step", PHYSICS, status, sentence, walked.first_torque[first], 1.0))
    status = WARN if walked.chatter > CHATTERS else PASS
    sentence = f"{100 * walked.chatter:.0f} % of the change of actions is faster than a quarter of the control rate."
    fix = "It shakes: train with a cost on the action's rate." if status == WARN else ""
    checks.append(Check("action rate", PHYSICS, status, sentence, walked.chatter, CHATTERS, fix=fix))
    return checks


def _by_physics(subject: Subject, symptoms: list[Check]) -> Check | None:
    """The alternative under which physics lead from each golden frame to the next, where they do not as the contract stands."""
    contract, robot, golden = subject.contract, subject.robot, subject.golden
    if robot is None or golden is None or len(golden[0]) < FEW or contract.action.reference is not None:
        return None
    if (
        contract.timing.control_dt
        and contract.timing.delay_range
        and contract.timing.delay_range[0] >= contract.timing.control_dt
    ):
        return None  # in training no action acted before the next frame
    try:
        as_is = predict(contract, robot, *golden)
    except BadInput:
        return None
    stated, odd = as_is.error, sorted(as_is.by_joint, key=lambda j: -as_is.by_joint[j])[:ODD]
    names = {s.name for s in symptoms if s.status in (FAIL, WARN)}
    first = names or {"gains", "action scale", "action clip", "default pose", "torque limit"}

    def error(other: Alternative, most: int) -> float:
        sink = None if other.defect == "default pose" else as_is.sink
        try:
            return predict(other.contract, robot, *golden, most, sink).error
        except BadInput:
            return math.inf

    every = [*exchanges(contract, odd), *alternatives(contract, robot, first)]
    tried, end = [], time.process_time() + BUDGET
    for other in every:
        if time.process_time() > end:
            break
        if other.defect not in SETTLED:
            tried.append((error(other, GLANCE), other))
    tried = sorted(((error(other, FRAMES), other) for _, other in sorted(tried, key=_first_of)[:CLOSER]), key=_first_of)
    if not tried or (least := tried[0][0]) > PREDICTS or least > 0.85 * stated:
        return None
    best = [other for error, other in tried if error <= 1.03 * least]
    equal = sorted((o for e, o in tried if e <= EQUAL * least), key=every.index)  # the most common mistake of those
    chosen = next((o for o in equal if o.defect in names), next((o for o in best if o.defect in names), equal[0]))
    evidence = f"physics lead from one golden frame to the next then (error {least:.2f} instead of {stated:.2f})"
    return _named(chosen, evidence, stated, least, [o for o in best if o is not chosen])


def _first_of(pair: tuple[float, Alternative]) -> float:
    return pair[0]


def _by_walking(subject: Subject, symptoms: list[Check], asked: tuple[float, ...], stated: Walk) -> Check | None:
    """The alternative by which the robot walks, and which leaves no symptom, where it does not as the contract stands."""
    robot, end = subject.robot, time.process_time() + BUDGET
    assert robot is not None
    bad = {s.name for s in symptoms if s.status == FAIL}
    hints = bad | {s.name for s in symptoms if s.status == WARN}
    tried: list[tuple[float, Alternative]] = []
    # long enough for the contract as it stands to have fallen
    seconds = min(10.0, max(SEARCH, 1.5 * stated.seconds)) if stated.fell else SEARCH
    least = max(TRACKS, 0.0 if stated.fell else _quality(stated) + BETTER)
    for other in alternatives(subject.contract, robot, hints):
        if time.process_time() > end:
            break
        if bad and _fails(_symptoms(other.contract, robot)):
            continue
        try:
            walked, _ = walk(subject.network, other.contract, robot, asked, seconds)
        except BadInput:
            continue
        if not walked.fell and _quality(walked) >= least:
            tried.append((_quality(walked) - walked.chatter / 2, other))
    if not tried:
        return None
    top = max(quality for quality, _ in tried)
    best = [other for quality, other in tried if quality >= top - CLOSE]
    chosen = next((o for o in best if o.defect in hints), best[0])
    return _named(chosen, "it walks then", top, TRACKS, [o for o in best if o is not chosen])


def _quality(walked: Walk) -> float:
    """1 for just the distance that was asked for."""
    return 1.0 - abs(walked.distance / walked.asked - 1.0) if walked.asked > 0 else 1.0


def _named(chosen: Alternative, evidence: str, figure: float, threshold: float, others: list[Alternative]) -> Check:
    also = f" As good: {'; '.join(o.sentence for o in others[:2])}." if others else ""
    sentence = f"The contract is wrong unless {chosen.sentence}: {evidence}.{also}"
    fix = f"Compare with training: {chosen.sentence}."
    return Check(chosen.defect, BOUNDARY_OF.get(chosen.defect, PHYSICS), FAIL, sentence, figure, threshold, fix=fix)


def _fails(checks: Sequence[Check]) -> bool:
    return any(c.status == FAIL for c in checks)


def _where(checks: Sequence[Check]) -> str | None:
    """The first boundary with a failure."""
    return next((b for b in BOUNDARIES if any(c.status == FAIL and c.boundary == b for c in checks)), None)


def _ended(checks: Sequence[Check], boundary: str | None, walked: Walk | None) -> Preflight:
    """Checks by boundary; behind the one that failed nothing is judged."""
    ordered = sorted(checks, key=lambda c: BOUNDARIES.index(c.boundary))
    if boundary is not None:
        last = BOUNDARIES.index(boundary)
        ordered = [
            c
            if BOUNDARIES.index(c.boundary) <= last
            else replace(c, status=SKIP, sentence=f"Not judged: {boundary} fails.", fix="")
            for c in ordered
        ]
    return Preflight(tuple(ordered), walked)
