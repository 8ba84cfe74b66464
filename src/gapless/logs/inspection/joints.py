"""Joints: names the model does not have, ranges, signs, zeros, swapped channels, and angles that are not radians."""

import difflib
from collections.abc import Iterator
from math import inf, pi

import numpy as np

from gapless.logs.inspection.finding import ERROR, INFO, WARNING, Finding, Ranges
from gapless.logs.log import Log

DEGREES = 180 / pi
MOVED = 0.03
"""rad; less motion says nothing about signs and scales."""
OUTSIDE = 0.05
"""rad that a measured joint may be beyond the model's range: encoders and stops are not perfect."""
ZERO = 0.12
"""rad between command and measurement that is no longer sag."""
WHOLE = 8 * pi
"""rad; position-controlled joints do not turn further."""
BETTER = 0.4
"""Another reading of a channel must leave less than this share of the error."""


def joint_findings(log: Log, model: Ranges | None) -> Iterator[Finding]:
    if "q" not in log or not any(c in log for c in ("q_cmd", "tau_cmd", "dq_cmd")):
        missing = "measured positions (q)" if "q" not in log else "commands (q_cmd, dq_cmd or tau_cmd)"
        yield Finding(
            "no_command" if "q" in log else "no_position", WARNING, f"there are no {missing}: this log cannot be replayed"
        )
    if model is not None:
        yield from _names(log, list(model))
    told = set()
    for finding in (*_against_command(log), *_against_speed(log)):
        told.add((finding.signal, finding.joint))
        yield finding
    yield from _ranges(log, model or {}, {j for _, j in told})
    yield from _torques(log)


def _names(log: Log, joints: list[str]) -> Iterator[Finding]:
    for joint in log.joints:
        if joint not in joints:
            near = difflib.get_close_matches(joint, joints, n=2, cutoff=0.4)
            hint = " or ".join(near) if near else ", ".join(joints[:12])
            yield Finding("unknown_joint", ERROR, f"the model has no joint {joint}; nearest: {hint}", joint=joint)
    absent = [j for j in joints if j not in log.joints]
    if absent and len(absent) < len(joints):
        yield Finding("absent_joint", INFO, f"the log says nothing about {', '.join(absent)} of the model")


def _against_command(log: Log) -> Iterator[Finding]:
    """Measured against commanded position: the reading of the channel that leaves the least error."""
    if "q" not in log or "q_cmd" not in log or np.any(np.diff(log["q_cmd"].time) < 0) or len(log["q"].time) < 50:
        return
    names = [j for j in log["q"].columns if j in log["q_cmd"].columns]
    q = {j: log["q"].column(j) for j in names}
    wanted = log.at("q_cmd", log["q"].time)
    if "enabled" in log and np.all(np.diff(log["enabled"].time) >= 0):  # a drive that is off follows nothing
        on = (log.at("enabled", log["q"].time) > 0).all(axis=1)
        if on.sum() < 50:
            return
        q, wanted = {j: v[on] for j, v in q.items()}, wanted[on]
    u = {j: wanted[:, log["q_cmd"].columns.index(j)] for j in names}
    names = [j for j in names if np.isfinite(q[j]).all() and np.isfinite(u[j]).all()]

    def error(x: np.ndarray, y: np.ndarray) -> float:
        return float(np.sqrt(np.mean((x - y) ** 2)))

    for joint in names:
        own = error(q[joint], u[joint])
        if own < 0.02 or np.ptp(u[joint]) < MOVED:
            if own > ZERO and np.ptp(q[joint]) < MOVED:
                yield _zero(joint, float(np.mean(q[joint] - u[joint])))
            continue
        readings = {
            "degrees": error(q[joint] / DEGREES, u[joint]),
            "command_degrees": error(q[joint], u[joint] / DEGREES) if np.ptp(u[joint]) > 3 else np.inf,
            "sign": error(-q[joint], u[joint]) if np.ptp(q[joint]) > MOVED else np.inf,
            "zero": float(np.std(q[joint] - u[joint])) if _shifted(q[joint], u[joint]) else np.inf,
        }
        for other in names:
            if other != joint and np.ptp(q[joint]) > MOVED and error(q[other], u[joint]) < 0.7 * error(q[other], u[other]):
                readings[f"swapped {other}"] = error(q[joint], u[other])
        best = min(readings, key=lambda r: readings[r])
        if readings[best] > BETTER * own:
            continue
        kind, _, other = best.partition(" ")
        if kind == "degrees":
            yield _degrees("q", joint, "measured in degrees, commanded in radians")
        elif kind == "command_degrees":
            yield _degrees("q_cmd", joint, "commanded in degrees, measured in radians")
        elif kind == "sign":
            text = f"q of {joint} mirrors its command: the sign of one of them is wrong"
            yield Finding("sign", ERROR, text, "q", joint, value=readings[best] / own, unit="1")
        elif kind == "zero":
            yield _zero(joint, float(np.mean(q[joint] - u[joint])))
        else:
            text = f"q of {joint} follows the command of {other}: swapped channels"
            yield Finding("swapped", ERROR, text, "q", joint, value=readings[best] / own, unit="1")


def _shifted(q: np.ndarray, u: np.ndarray) -> bool:
    """Whether q does what u says, somewhere else. A weak drive that sags does not do all of it."""
    if abs(np.mean(q - u)) < ZERO:
        return False
    slope = float(np.polyfit(u, q, 1)[0])
    return 0.75 < slope < 1.25


def _zero(joint: str, offset: float) -> Finding:
    off = f"{offset:+.3f} rad ({np.degrees(offset):+.1f} deg)"
    text = f"q of {joint} is {off} from its command all the time: its zero does not fit"
    return Finding("zero", WARNING, text, "q", joint, value=offset, unit="rad")


def _degrees(signal: str, joint: str, why: str) -> Finding:
    return Finding("degrees", ERROR, f"{signal} of {joint} is in degrees: {why}", signal, joint, value=DEGREES, unit="deg/rad")


def _against_speed(log: Log) -> Iterator[Finding]:
    """The velocity channel against the slope of the position channel."""
    if "q" not in log or "dq" not in log or np.any(np.diff(log["q"].time) <= 0) or np.any(np.diff(log["dq"].time) <= 0):
        return
    time = log["q"].time
    if len(time) < 50:
        return
    speeds = log.at("dq", time, hold=False)
    for i, joint in enumerate(log["dq"].columns):
        if joint not in log["q"].columns:
            continue
        q, dq = log["q"].column(joint), _smoothed(speeds[:, i])
        if not (np.isfinite(q).all() and np.isfinite(dq).all()) or np.ptp(q) < 3 * MOVED:
            continue
        slope = _smoothed(np.gradient(q, time))
        if not np.std(slope) > 0 or not np.std(dq) > 0:
            continue
        alike = float(np.corrcoef(slope, dq)[0, 1])
        factor = float(np.std(dq) / np.std(slope))
        if abs(alike) < 0.8:
            continue
        if alike < 0:
            yield Finding(
                "sign", ERROR, f"dq of {joint} has the opposite sign of what q does", "dq", joint, value=alike, unit="1"
            )
        elif 30 < factor < 110:
            yield _degrees("dq", joint, f"it is {factor:.0f} times the slope of q")
        elif 1 / 110 < factor < 1 / 30:
            yield _degrees("q", joint, f"it moves {1 / factor:.0f} times as fast as dq says")
        elif not 0.6 < factor < 1.6:
            text = f"q of {joint} moves {1 / factor:.2f} times as far as dq says: another unit (0..1 of its range?)"
            yield Finding("scale", WARNING, text, "q", joint, value=1 / factor, unit="1")


def _smoothed(values: np.ndarray) -> np.ndarray:
    kernel = np.hanning(11)[1:-1]
    return np.convolve(values, kernel / kernel.sum(), mode="valid")


def _ranges(log: Log, model: Ranges, told: set[str]) -> Iterator[Finding]:
    for name in ("q", "q_cmd"):
        if name not in log:
            continue
        for joint, values in zip(log[name].columns, log[name].values.T, strict=True):
            values = values[np.isfinite(values)]
            if len(values) == 0 or joint in told:
                continue
            low, high = float(values.min()), float(values.max())
            limits = model.get(joint, (-inf, inf))
            furthest = max(abs(low), abs(high))
            if limits == (-inf, inf):
                commanded = "q_cmd" in log and joint in log["q_cmd"].columns
                if furthest > WHOLE and commanded and np.nanmax(np.abs(log["q_cmd"].column(joint))) > WHOLE:
                    yield _degrees(name, joint, f"it reaches {furthest:.0f}, which would be {furthest / 2 / pi:.0f} turns")
                continue
            beyond = max(limits[0] - low, high - limits[1])
            if beyond <= OUTSIDE:
                continue
            spans = f"{low:.3f} to {high:.3f}, the model {limits[0]:.3f} to {limits[1]:.3f} rad"
            fits = limits[0] - OUTSIDE <= low / DEGREES and high / DEGREES <= limits[1] + OUTSIDE
            if fits and furthest > max(pi, 2 * abs(limits[0]), 2 * abs(limits[1])):
                yield _degrees(name, joint, f"it reaches {spans}")
                continue
            text = f"{name} of {joint} reaches {spans}: its zero, sign or unit does not fit"
            severity = WARNING if name == "q" else INFO
            yield Finding("out_of_range", severity, text, name, joint, value=beyond, unit="rad")


def _torques(log: Log) -> Iterator[Finding]:
    """Measured against commanded torque."""
    if "tau" not in log or "tau_cmd" not in log or np.any(np.diff(log["tau_cmd"].time) < 0):
        return
    wanted = log.at("tau_cmd", log["tau"].time)
    for joint, values in zip(log["tau"].columns, log["tau"].values.T, strict=True):
        if joint not in log["tau_cmd"].columns:
            continue
        told = wanted[:, log["tau_cmd"].columns.index(joint)]
        if not np.isfinite(values).all() or np.std(values) < 0.02 or np.std(told) < 0.02:
            continue
        alike = float(np.corrcoef(values, told)[0, 1])
        if alike < -0.6:
            text = f"tau of {joint} mirrors its command (correlation {alike:.2f}): the sign of one of them is wrong"
            yield Finding("sign", ERROR, text, "tau", joint, value=alike, unit="1")
