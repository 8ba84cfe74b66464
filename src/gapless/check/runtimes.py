"""What a deployment log holds, and the mistakes of runtimes that it may show, one at a time."""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from gapless.arrays import Array
from gapless.check.alternatives import alternatives, exchanged, joint_orders, other_side
from gapless.check.finding import FAIL, SIGNALS, Check
from gapless.policy import Contract
from gapless.robots import RobotModel
from gapless.rotations import multiply, rotate_back

LATE = (1, 2, 3)
STOPS = 0.1
"""Share of the answers at their largest value from which they were clipped there; of a free signal it is one."""
TURNED = {
    "upside down (about x)": (0.0, 1.0, 0.0, 0.0),
    "upside down (about y)": (0.0, 0.0, 1.0, 0.0),
    "turned by 180 degrees about z": (0.0, 0.0, 0.0, 1.0),
    "turned by 90 degrees about z": (math.sqrt(0.5), 0.0, 0.0, math.sqrt(0.5)),
    "turned by -90 degrees about z": (math.sqrt(0.5), 0.0, 0.0, -math.sqrt(0.5)),
}
"""How an IMU may sit unlike the base, as quaternions, w first."""


@dataclass(frozen=True)
class Run:
    """What a log holds, at the moments of its commands. Shape of each: (periods, columns), in the contract's order."""

    time: Array
    readings: dict[str, Array]
    sent: Array
    """Positions that were commanded."""
    action: Array
    """What the network must have given for them."""


def replace_run(run: Run, part: slice) -> Run:
    """A stretch of a run."""
    return Run(run.time[part], {k: v[part] for k, v in run.readings.items()}, run.sent[part], run.action[part])


def answered(contract: Contract, sent: Array) -> Array:
    """What the network must have given for positions that were commanded. Shape: (periods, driven joints)."""
    driven = [contract.joints.names.index(j) for j in contract.action.joints]
    assert contract.action.scale is not None and contract.action.offset is not None
    return np.asarray((sent[:, driven] - contract.action.offset) / contract.action.scale, np.float32)


def clipped_at(contract: Contract, run: Run) -> Check | None:
    """A bound at which answers stop, where the contract has none or another one."""
    high, low = run.action.max(), run.action.min()
    at = {float(v): float(np.mean(np.abs(run.action - v) < 1e-3 * max(1.0, abs(v)))) for v in (high, low)}
    bound = max(at, key=lambda v: at[v])
    if at[bound] < STOPS or (contract.action.clip is not None and np.isclose(contract.action.clip, bound, atol=2e-3).any()):
        return None
    sentence = f"{100 * at[bound]:.0f} % of the actions in the log are just {bound:.3g}: the runtime clips them there."
    return Check("action clip", SIGNALS, FAIL, sentence, at[bound], STOPS, fix="Clip as training did.")


Otherwise = tuple[str, str, Contract, Run]
"""The defect, what would be so, and the contract and log by which observations are rebuilt then."""


def mistakes(contract: Contract, run: Run, robot: RobotModel | None) -> Iterator[Otherwise]:
    """Mistakes of runtimes, the most common first."""
    yield from _imu(contract, run)
    yield from _terms(contract, run)
    if robot is not None:
        wanted = ("history order", "history layout", "gravity sign", "sign", "observation scale", "last action")
        for other in alternatives(contract, robot):
            if other.defect in wanted and "action" not in other.sentence.split()[0]:
                yield other.defect, other.sentence, other.contract, run
    yield from _orders(contract, run, robot)
    yield from _sent(contract, run)


def _imu(contract: Contract, run: Run) -> Iterator[Otherwise]:
    readings = run.readings
    if "quat" in readings:
        for by in (-1, 1):
            rolled = readings | {"quat": np.roll(readings["quat"], by, axis=1)}
            yield "quaternion order", "the quaternion is read in another order", contract, replace(run, readings=rolled)
    for what, turn in TURNED.items():
        turned = {}
        if "quat" in readings:
            turned["quat"] = multiply(readings["quat"], np.tile(turn, (len(run.time), 1)))
        if "gyro" in readings:
            turned["gyro"] = rotate_back(np.tile(turn, (len(run.time), 1)), readings["gyro"])
        yield "IMU frame", f"the IMU is taken to be {what}", contract, replace(run, readings=readings | turned)
    for axis, (factor, defect, word) in itertools.product(
        range(3), ((-1.0, "sign", "negated"), (math.degrees(1.0), "degrees", "in degrees"))
    ):
        if "gyro" in readings:
            gyro = readings["gyro"] * np.where(np.arange(3) == axis, factor, 1.0)
            yield defect, f"the gyro's {'xyz'[axis]} is {word}", contract, replace(run, readings=readings | {"gyro": gyro})


def _terms(contract: Contract, run: Run) -> Iterator[Otherwise]:
    layout = contract.observation

    def changed(kinds: tuple[str, ...], **changes: object) -> Contract:
        terms = tuple(replace(t, **changes) if t.kind in kinds else t for t in layout.terms)  # type: ignore[arg-type]
        return replace(contract, observation=replace(layout, terms=terms))

    for term in layout.terms:
        for lag in LATE:
            yield "lagged observation", f"{term.name} is {lag} periods late", changed((term.kind,), lag=lag), run
        if term.kind in ("gyro", "q", "dq") and term.kind in run.readings:
            for factor, word in ((math.degrees(1.0), "degrees"), (math.radians(1.0), "rad for degrees")):
                readings = run.readings | {term.kind: run.readings[term.kind] * factor}
                yield "degrees", f"{term.name} is in {word}", contract, replace(run, readings=readings)
        if term.kind == "q":
            word = "from the default pose" if term.absolute else "from zero"
            yield "default pose", f"{term.name} is counted {word}", changed(("q",), absolute=not term.absolute), run
    measured = tuple(t.kind for t in layout.terms if t.kind in run.readings or t.kind == "gravity")
    for lag in LATE:
        yield "lagged observation", f"all that is measured is {lag} periods late", changed(measured, lag=lag), run


def _orders(contract: Contract, run: Run, robot: RobotModel | None) -> Iterator[Otherwise]:
    """Joints taken by number: in another order of all, or two of them exchanged, on the way in or on the way out."""
    names = contract.joints.names
    orders = joint_orders(names, robot) if robot is not None else {}
    pairs = [*itertools.pairwise(names), *((n, o) for n in names if (o := other_side(n)) in names and n < o)]
    orders = {**{f"in {what}": order for what, order in orders.items()}, **{p: exchanged(names, *p) for p in pairs}}
    for what, order in orders.items():
        words = what if isinstance(what, str) else f"with {what[0]} and {what[1]} exchanged"
        index = [names.index(n) for n in order]
        for kinds in (("q", "dq"), ("q",), ("dq",)):
            readings = run.readings | {s: run.readings[s][:, index] for s in kinds}
            yield "joint order", f"{' and '.join(kinds)} are read {words}", contract, replace(run, readings=readings)
            if not isinstance(what, str):
                yield "joint order", f"{' and '.join(kinds)} are shown {words}", _shown(contract, kinds, *what), run
        sent = run.sent[:, index]
        yield "joint order", f"targets are sent {words}", contract, replace(run, sent=sent, action=answered(contract, sent))


def _shown(contract: Contract, kinds: tuple[str, ...], a: str, b: str) -> Contract:
    """Terms that show two joints in each other's place, each from its own default position."""
    terms = tuple(
        replace(t, joints=exchanged(t.joints or contract.joints.names, a, b)) if t.kind in kinds else t
        for t in contract.observation.terms
    )
    return replace(contract, observation=replace(contract.observation, terms=terms))


def _sent(contract: Contract, run: Run) -> Iterator[Otherwise]:
    """Targets that were made otherwise of the same actions."""
    action = contract.action
    scale, offset = np.asarray(action.scale, float), np.asarray(action.offset, float)
    changes = {f"actions are scaled {f:g} times as much": ("action scale", f * scale, offset) for f in (0.5, 2.0, 0.25, 4.0)}
    changes["the offset is not added"] = "default pose", scale, 0 * offset
    changes["the offset is added twice"] = "default pose", scale, 2 * offset
    for what, (defect, by, added) in changes.items():
        wide = {"scale": by, "offset": added}
        made = replace(action, **{k: tuple(np.broadcast_to(v, len(action.joints)).tolist()) for k, v in wide.items()})
        other = replace(contract, action=made)
        yield defect, what, other, replace(run, action=answered(other, run.sent))
    for share in (0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9):
        sent = run.sent.copy()
        sent[1:] = (run.sent[1:] - (1 - share) * run.sent[:-1]) / share
        what = f"targets are smoothed, and {share:g} of each new one is taken"
        yield "action filter", what, contract, replace(run, sent=sent, action=answered(contract, sent))
