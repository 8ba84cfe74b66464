"""Joints: names the model does not have, ranges, signs, zeros, swapped channels, and angles that are not radians."""

from collections.abc import Iterator, Mapping
from math import inf, pi

import numpy as np

from gapless.errors import unknown
from gapless.logs.inspection.finding import ERROR, INFO, WARNING, Finding, Ranges
from gapless.logs.log import Log
from gapless.logs.sensor import STILL, travel
from gapless.report import few

DEGREES = 180 / pi
THIRD, TELLS = 1 / 3, 0.9
"""Share of its command that a joint goes at least, and of the command's spread that may be left, if it is read in degrees."""
MOVED = 0.03
"""rad; less motion says nothing about signs and scales."""
OUTSIDE = 0.05
"""rad that a measured joint may be beyond the model's range: encoders and stops are not perfect."""
ZERO = 0.12
"""rad between command and measurement that sag no longer explains."""
WHOLE = 8 * pi
"""rad; position-controlled joints do not turn further."""
BETTER = 0.4
"""Another reading of a channel must leave less than this share of the error."""
STRIDE, BEFORE, VISIT = 0.05, 0.3, 0.5
"""s over which a joint is seen to stand still, before which it still moved, and after which it stands there anew."""
FASTEST = 1e5
"""Hz; no log of joints has more samples."""
TOLD = 0.015
"""rad that a command must go on during a stride."""
VISITS, ALIKE = 3, 0.06
"""How often a joint must stop at the same place, and what is the same [rad]."""
DOUBLED = 0.01
"""Share of a torque's spread up to which it is the one that the gains give."""


def joint_findings(log: Log, model: Ranges | None) -> Iterator[Finding]:
    """What is wrong with joints: beside their commands, their velocities and the ranges of a model."""
    if "q" not in log:
        text = "there are no measured positions (signal q), so this log cannot be replayed"
        yield Finding("no_position", WARNING, text)
    elif not any(c in log for c in ("q_cmd", "tau_cmd", "dq_cmd")):
        text = "there are no commands (q_cmd, dq_cmd or tau_cmd), so this log cannot be replayed"
        yield Finding("no_command", WARNING, text)
    if "q" in log and not any(travel(column) > STILL for column in log["q"].values.T if np.isfinite(column).any()):
        text = (
            f"no joint moves by more than {STILL:g} rad, so the log says nothing about drives; `gapless excite` plans a motion"
        )
        yield Finding("still", WARNING, text, "q")
    if model is not None:
        yield from _names(log, list(model))
    explained = [*_against_command(log), *_against_speed(log)]
    yield from explained
    yield from _ranges(log, model or {}, {f.joint for f in explained})
    yield from _torques(log)
    yield from _doubled(log)
    yield from _stops(log, model or {})


def _names(log: Log, joints: list[str]) -> Iterator[Finding]:
    if len(log.joints) > 2 and not set(log.joints) & set(joints):
        text = f"none of its joints ({few(log.joints)}) is one of the model ({few(joints)}): is it a log of another robot?"
        yield Finding("unknown_joint", ERROR, text, joint=log.joints[0] if log.joints else "")
        return
    for joint in log.joints:
        if joint not in joints:
            yield Finding("unknown_joint", ERROR, f"not a joint of the model: {unknown('joint', joint, joints)}", joint=joint)
    absent = [j for j in joints if j not in log.joints]
    if absent and len(absent) < len(joints):
        yield Finding("absent_joint", INFO, f"the log has nothing about {', '.join(absent)} of the model")


def _against_command(log: Log) -> Iterator[Finding]:
    """Measured against commanded position: the reading of the channel that leaves the least error."""
    if "q" not in log or "q_cmd" not in log or not log["q_cmd"].ordered:
        return
    time, names = log["q"].time, log.shared("q", "q_cmd")
    known = "enabled" in log and log["enabled"].ordered
    on = (
        np.all(log.at("enabled", time) > 0, axis=1) if known else np.ones(len(time), bool)
    )  # a drive that is off follows nothing
    if on.sum() < 50:
        return
    wanted = log.at("q_cmd", time)[on]
    q = {j: log["q"].column(j)[on] for j in names}
    u = {j: wanted[:, log["q_cmd"].columns.index(j)] for j in names}
    names = [j for j in names if np.isfinite(q[j]).all() and np.isfinite(u[j]).all()]
    for joint in names:
        measured, command = q[joint], u[joint]
        error, moves = _rms(measured - command), np.ptp(measured) > MOVED
        if error < 0.02 or np.ptp(command) < MOVED:
            if error > ZERO and not moves:
                yield _zero(joint, measured, command)
            continue
        readings = {
            "degrees": _rms(measured / DEGREES - command) if _in_degrees(measured, command) else np.inf,
            "command_degrees": _rms(measured - command / DEGREES) if np.ptp(command) > 3 else np.inf,
            "sign": _rms(measured + command) if moves else np.inf,
            "zero": float(np.std(measured - command)) if _shifted(measured, command) else np.inf,
        }
        for other in names:
            if other != joint and moves and _rms(q[other] - command) < 0.7 * _rms(q[other] - u[other]):
                readings[f"swapped {other}"] = _rms(measured - u[other])
        best = min(readings, key=lambda r: readings[r])
        if readings[best] > BETTER * error:
            continue
        kind, _, other = best.partition(" ")
        if kind == "degrees":
            yield _degrees("q", joint, "measured in degrees, commanded in radians")
        elif kind == "command_degrees":
            yield _degrees("q_cmd", joint, "commanded in degrees, measured in radians")
        elif kind == "zero":
            yield _zero(joint, measured, command)
        else:
            mirrors = f"q of {joint} mirrors its command: one of them has the wrong sign"
            text = mirrors if kind == "sign" else f"q of {joint} follows the command of {other}: their channels are swapped"
            yield Finding(kind, ERROR, text, "q", joint, value=readings[best] / error, unit="1")


def _rms(error: np.ndarray) -> float:
    return float(np.sqrt(np.mean(error**2)))


def _in_degrees(q: np.ndarray, u: np.ndarray) -> bool:
    """Whether q read in degrees does what u says; beside a command that hardly moves, any motion is nearer to it if divided."""
    return bool(np.ptp(q) > THIRD * DEGREES * np.ptp(u) and np.std(q / DEGREES - u) < TELLS * np.std(u))


def _shifted(q: np.ndarray, u: np.ndarray) -> bool:
    """Whether q does what u says, somewhere else. A weak drive that sags does not do all of it."""
    return bool(abs(np.mean(q - u)) >= ZERO and 0.75 < np.polyfit(u, q, 1)[0] < 1.25)


def _zero(joint: str, q: np.ndarray, u: np.ndarray) -> Finding:
    offset = float(np.mean(q - u))
    text = f"q of {joint} is {offset:+.3f} rad ({np.degrees(offset):+.1f} deg) from its command throughout: check its zero"
    return Finding("zero", WARNING, text, "q", joint, value=offset, unit="rad")


def _degrees(signal: str, joint: str, why: str) -> Finding:
    return Finding("degrees", ERROR, f"{signal} of {joint} is in degrees: {why}", signal, joint, value=DEGREES, unit="deg/rad")


def _against_speed(log: Log) -> Iterator[Finding]:
    """The velocity channel against the slope of the position channel."""
    if "q" not in log or "dq" not in log or any(np.any(np.diff(log[s].time) <= 0) for s in ("q", "dq")):
        return
    time = log["q"].time
    if len(time) < 50:
        return
    speeds = log.at("dq", time, hold=False)
    for joint in log.shared("dq", "q"):
        q, dq = log["q"].column(joint), _smoothed(speeds[:, log["dq"].columns.index(joint)])
        if not (np.isfinite(q).all() and np.isfinite(dq).all()):
            continue
        if max(np.ptp(q), np.ptp(np.cumsum(dq)) / log.rate("q")) < 3 * MOVED:  # by either, since either may be in degrees
            continue
        slope = _smoothed(np.gradient(q, time))
        if not np.std(slope) > 0 or not np.std(dq) > 0:
            continue
        alike, factor = float(np.corrcoef(slope, dq)[0, 1]), float(np.std(dq) / np.std(slope))
        if abs(alike) < 0.8:
            continue
        if alike < 0:
            text = f"dq of {joint} has the opposite sign of the slope of q"
            yield Finding("sign", ERROR, text, "dq", joint, value=alike, unit="1")
        elif 30 < factor < 110:
            yield _degrees("dq", joint, f"it is {factor:.0f} times the slope of q")
        elif 1 / 110 < factor < 1 / 30:
            yield _degrees("q", joint, f"it moves {1 / factor:.0f} times as fast as dq says")
        elif not 0.6 < factor < 1.6:
            text = f"q of {joint} moves {1 / factor:.2f} times as far as dq says: is it in another unit (0..1 of its range)?"
            yield Finding("scale", WARNING, text, "q", joint, value=1 / factor, unit="1")


def _smoothed(values: np.ndarray) -> np.ndarray:
    kernel = np.hanning(11)[1:-1]
    return np.convolve(values, kernel / kernel.sum(), mode="valid")


def _ranges(log: Log, model: Ranges, explained: set[str]) -> Iterator[Finding]:
    for name in (s for s in ("q", "q_cmd") if s in log):
        for joint, values in zip(log[name].columns, log[name].values.T, strict=True):
            values = values[np.isfinite(values)]
            if len(values) == 0 or joint in explained:
                continue
            (low, high), limits = (float(values.min()), float(values.max())), model.get(joint, (-inf, inf))
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
            text = f"{name} of {joint} reaches {spans}: check its zero, sign and unit"
            severity = WARNING if name == "q" else INFO
            yield Finding("out_of_range", severity, text, name, joint, value=beyond, unit="rad")


def _torques(log: Log) -> Iterator[Finding]:
    """Measured against commanded torque."""
    if "tau" not in log or "tau_cmd" not in log or not log["tau_cmd"].ordered:
        return
    wanted = log.at("tau_cmd", log["tau"].time)
    for joint in log.shared("tau", "tau_cmd"):
        measured, command = log["tau"].column(joint), wanted[:, log["tau_cmd"].columns.index(joint)]
        if not np.isfinite(measured).all() or np.std(measured) < 0.02 or np.std(command) < 0.02:
            continue
        alike = float(np.corrcoef(measured, command)[0, 1])
        if alike < -0.6:
            text = f"tau of {joint} mirrors its command (correlation {alike:.2f}): one of them has the wrong sign"
            yield Finding("sign", ERROR, text, "tau", joint, value=alike, unit="1")


def _doubled(log: Log) -> Iterator[Finding]:
    """A torque that is said to be fed forward and is what the drive's own position loop gives."""
    if not _readable(log, "q", "dq", "q_cmd", "tau_ff"):
        return
    time = log["tau_ff"].time
    q, dq, wanted = (log.at(name, time) for name in ("q", "dq", "q_cmd"))
    for joint in log.shared("tau_ff", "q_cmd"):
        if joint not in log["q"].columns or joint not in log["dq"].columns:
            continue
        gains = [log.meta.get(name) for name in ("kp", "kd")]
        kp, kd = (gain.get(joint) if isinstance(gain, Mapping) else gain for gain in gains)
        if not isinstance(kp, int | float) or not isinstance(kd, int | float):
            continue
        fed = log["tau_ff"].column(joint)
        off = wanted[:, log["q_cmd"].columns.index(joint)] - q[:, log["q"].columns.index(joint)]
        loop = kp * off - kd * dq[:, log["dq"].columns.index(joint)]
        size = float(np.nanstd(fed))
        if size > 0 and float(np.nanmedian(np.abs(fed - loop))) < DOUBLED * size:
            text = f"tau_ff of {joint} is what its gains give, kp (q_cmd - q) - kd dq: it would act twice, so map it as tau_cmd"
            yield Finding("doubled", ERROR, text, "tau_ff", joint)


def _stops(log: Log, model: Ranges) -> Iterator[Finding]:
    """Joints that end at the same place again and again, while their commands go on."""
    if not _readable(log, "q", "q_cmd") or not 0 < (rate := log.rate("q")) < FASTEST:
        return
    stride, wanted = max(1, round(STRIDE * rate)), log.at("q_cmd", log["q"].time)
    for joint in log.shared("q", "q_cmd"):
        q, command = log["q"].column(joint), wanted[:, log["q_cmd"].columns.index(joint)]
        if len(q) <= stride or np.isnan(q).all():
            continue
        for side in (1.0, -1.0):
            places = _stopped(side * q, side * command, stride, rate)
            place = side * float(np.median(places)) if places else 0.0
            alike = sum(abs(side * p - place) < ALIKE for p in places)
            end, travel = side * float(np.nanmax(side * q)), float(np.nanmax(q) - np.nanmin(q))
            if alike < max(VISITS, 0.6 * len(places)) or abs(place - end) > 0.1 * travel:
                continue
            limit = model.get(joint, (-inf, inf))[int(side > 0)]
            allowed = f"; the model's range ends at {limit:.3f} rad" if np.isfinite(limit) else ""
            text = f"q of {joint} stops at about {place:.3f} rad, {alike} times, while its command goes on{allowed}: "
            text += "put the stop or the contact into the model, or check whether its drive is too weak"
            yield Finding("stop", WARNING, text, "q", joint, value=place, unit="rad")


def _readable(log: Log, *names: str) -> bool:
    """Whether signals are there and their values at any time can be told."""
    return all(name in log and len(log[name].time) > 0 and log[name].ordered for name in names)


def _stopped(q: np.ndarray, command: np.ndarray, stride: int, rate: float) -> list[float]:
    """Where a joint that was moving upwards stands, while its command rises and is further ahead than when it moved [rad]."""
    moved, told, ahead = q[stride:] - q[:-stride], command[stride:] - command[:-stride], command - q
    follows, stands = (told > TOLD) & (moved > 0.5 * told), (told > TOLD) & (moved < 0.1 * told)
    moving = np.flatnonzero(follows)
    places, last = list[float](), -inf
    for i in np.flatnonzero(stands).tolist():
        before = int(np.searchsorted(moving, i)) - 1
        if before < 0 or i - moving[before] > BEFORE * rate:
            continue
        if ahead[i + stride] > 1.1 * max(ahead[moving[before]], 0.0) + 0.005:
            places += [float(q[i + stride])] if i - last > VISIT * rate else []
            last = i
    return places
