"""What the numbers of a log say about units, signs and names, once its columns are known."""

from collections.abc import Container, Mapping as Table, Sequence
from math import pi

import numpy as np

from gapless.logs.inspection.finding import Ranges
from gapless.logs.log import Log
from gapless.logs.sensor import travel
from gapless.report import few

TURN = 2 * pi
RATES = (5.0, 20_000.0)
"""Hz that joints are logged at."""
TIME_UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
SPEEDS = {"rad/s": 1.0, "deg/s": 180 / pi, "rpm": 60 / TURN, "rev/s": 1 / TURN}
MOVED = 0.05
APART = 3.0
"""Within this factor joints are alike, where degrees and radians are told apart."""
NEAR = 0.3
"""rad that a joint may be away from its command, whole turns aside."""


def unit_of_time(times: np.ndarray) -> tuple[str, float] | None:
    """The unit in which a clock ticks as loggers do, and its samples a second; None where none does. times: (n,)."""
    steps = np.diff(times)
    steps = steps[np.isfinite(steps) & (steps > 0)]
    if len(steps) == 0:
        return None
    period = float(np.median(steps))
    return next(((unit, 1 / (period * f)) for unit, f in TIME_UNITS.items() if RATES[0] <= 1 / (period * f) <= RATES[1]), None)


def unit_of_angles(log: Log, signal: str, ranges: Ranges) -> tuple[str, str]:
    """rad or deg, and why."""
    values = log[signal].values
    if not np.isfinite(values).any():
        return "rad", "there are no numbers to tell by"
    reach = {
        j: np.nanmax(np.abs(log[signal].column(j))) for j in log[signal].columns if np.isfinite(log[signal].column(j)).any()
    }
    joint = max(reach, key=lambda j: reach[j])
    limits = {j: max(map(abs, ranges[j])) for j in reach if j in ranges and np.isfinite(ranges[j]).all()}
    beyond = [j for j, limit in limits.items() if reach[j] > 3 * limit and np.radians(reach[j]) <= 1.2 * limit]
    beyond = [j for j in beyond if j not in turned(log, "rad")]
    if beyond:
        j = beyond[0]
        doubtful = [j for j, limit in limits.items() if reach[j] <= limit]
        return "deg", f"{j} reaches {reach[j]:.3g}, and the model allows {limits[j]:.3g} rad{_check(doubtful)}"
    if reach[joint] > 2 * TURN and not limits:
        doubtful = [j for j in reach if MOVED < travel(log[signal].column(j)) < pi / 2 and reach[j] < pi]
        return "deg", f"{joint} reaches {reach[joint]:.3g}, which would be {reach[joint] / TURN:.0f} turns{_check(doubtful)}"
    return "rad", f"no joint reaches more than {reach[joint]:.3g}"


def _check(joints: Sequence[str]) -> str:
    return f" (but {few(joints)} may be in rad: check)" if joints else ""


def in_degrees(log: Log) -> dict[str, list[str]]:
    """By signal (q, q_cmd) the joints that are in degrees where others of it are in radians; none where all are alike.

    Velocities tell it of q, else commands do; both are taken to be in one unit. Commands are judged by q.
    """
    speeds = {j: 1 / ratio for j, ratio in _speeds(log).items()}
    spreads = _spreads(log)
    q = _larger(speeds if len(speeds) > 1 else spreads)
    commands = _larger({j: 1 / spread * (180 / pi if j in q else 1.0) for j, spread in spreads.items()})
    return {signal: joints for signal, joints in (("q", q), ("q_cmd", commands)) if joints}


def _larger(factors: Table[str, float]) -> list[str]:
    """Those that are 180 / pi times as large as others."""
    top = max(factors.values(), default=0.0)
    below = [j for j, f in factors.items() if 1 / APART < 180 / pi * f / top < APART]
    return [j for j, f in factors.items() if f > top / APART] if below else []


def _spreads(log: Log) -> dict[str, float]:
    """How far joints moved, over how far they were told to."""
    both = log.shared("q", "q_cmd") if {"q", "q_cmd"} <= {*log.signals} else []
    moved = {j: (float(np.nanstd(log["q"].column(j))), float(np.nanstd(log["q_cmd"].column(j)))) for j in both}
    return {j: q / told for j, (q, told) in moved.items() if min(q, told) > 0}


def unit_of_commands(log: Log, unit: str) -> tuple[str, str] | None:
    """The unit of commanded angles where it is another than that of measured ones, and why."""
    ratio = float(np.median([*_spreads(log).values()] or [1.0]))
    other, expected = ("rad", 180 / pi) if unit == "deg" else ("deg", pi / 180)
    if abs(np.log(ratio / expected)) > abs(np.log(ratio)):
        return None
    return other, f"measured positions move {ratio:.3g} times as far"


def turned(log: Log, unit: str) -> dict[str, float]:
    """Joints that were measured whole turns away from where they were commanded to be, and how far [rad]."""
    if "q" not in log or "q_cmd" not in log or not log["q_cmd"].ordered or not len(log["q_cmd"].time):
        return {}
    factor, wanted, out = pi / 180 if unit == "deg" else 1.0, log.at("q_cmd", log["q"].time), {}
    for joint in log.shared("q", "q_cmd"):
        apart = factor * (log["q"].column(joint) - wanted[:, log["q_cmd"].columns.index(joint)])
        apart = apart[np.isfinite(apart)]
        turns = round(float(np.median(apart)) / TURN) if len(apart) else 0
        if turns and abs(float(np.median(apart)) - turns * TURN) < NEAR and np.ptp(apart) < pi:
            out[joint] = turns * TURN
    return out


def _speeds(log: Log) -> dict[str, float]:
    """How many times the slope of q, as the file has both, the velocities of joints are."""
    out: dict[str, float] = {}
    if not {"q", "dq"} <= {*log.signals} or np.any(np.diff(log["q"].time) <= 0) or not log["dq"].ordered:
        return out
    time = log["q"].time
    speeds = log.at("dq", time, hold=False)
    for joint in log.shared("dq", "q"):
        q, dq = log["q"].column(joint), speeds[:, log["dq"].columns.index(joint)]
        seen = np.isfinite(q) & np.isfinite(dq)
        q, dq = q[seen], dq[seen]
        if len(q) < 50 or np.ptp(q) < MOVED:
            continue
        slope = np.gradient(q, time[seen])
        if np.std(slope) > 0 and np.std(dq) > 0 and abs(np.corrcoef(slope, dq)[0, 1]) > 0.6:
            out[joint] = float(np.std(dq) / np.std(slope))
    return out


def unit_of_speeds(log: Log, degrees: Container[str]) -> tuple[str, str]:
    """The unit of velocities by the slope of positions, and why. degrees: joints whose positions are in degrees."""
    if np.any(np.diff(log["q"].time) <= 0):
        return "", "times do not rise"
    factors = [ratio * (180 / pi if joint in degrees else 1.0) for joint, ratio in _speeds(log).items()]
    if not factors:
        return "", "it does not follow the slope of q"
    factor = float(np.median(factors))
    unit = min(SPEEDS, key=lambda u: abs(np.log(factor / SPEEDS[u])))
    return unit, f"it is {factor:.3g} times the slope of q in rad/s"


def mirrored(log: Log, joints: Sequence[str]) -> list[str]:
    """Joints whose position goes the other way than their command."""
    from gapless.logs.draft.match import explained

    if "q" not in log or "q_cmd" not in log or not log["q_cmd"].ordered or len(log["q"].time) < 50:
        return []
    wanted, out = log.at("q_cmd", log["q"].time), []
    for joint in joints:
        q, u = log["q"].column(joint), wanted[:, log["q_cmd"].columns.index(joint)]
        seen = np.isfinite(q) & np.isfinite(u)
        if seen.sum() < 50 or min(np.std(q[seen]), np.std(u[seen])) < 1e-6:
            continue
        alike = float(np.corrcoef(q[seen], u[seen])[0, 1])
        if alike < -0.5 and float(explained(u[seen, None], q[seen, None], log.rate("q"))[0, 0]) < 1.3 * abs(alike):
            out.append(joint)
    return out
