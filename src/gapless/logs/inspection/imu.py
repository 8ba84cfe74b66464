"""The IMU: gravity that points the wrong way, quaternions in another order, units that are not SI."""

from collections.abc import Iterator

import numpy as np

from gapless.logs.inspection.finding import ERROR, WARNING, Finding
from gapless.logs.log import Log
from gapless.rotations import up_of

G = 9.81
"""m/s^2"""
ALIKE = 0.35
"""Mean distance of two unit vectors (about 20 deg) within which they count as the same direction."""


def imu_findings(log: Log) -> Iterator[Finding]:
    """What is wrong with attitude, gyro and accelerometer, each beside the others."""
    if "quat" in log and len(log["quat"].time) > 10:
        yield from _unit_length(log)
    if "acc" in log and len(log["acc"].time) > 10:
        yield from _gravity(log)
    if "quat" in log and "gyro" in log and len(log["quat"].time) > 50 and np.all(np.diff(log["quat"].time) > 0):
        yield from _turning(log)


def _unit_length(log: Log) -> Iterator[Finding]:
    away = np.abs(np.linalg.norm(log["quat"].values, axis=1) - 1)
    worst = float(np.nanmax(away))
    if worst > 0.02:
        time = float(log["quat"].time[int(np.nanargmax(away))])
        text = f"quat is not of length 1: off by {worst:.3f} at {time:.3f} s"
        yield Finding("quat_norm", ERROR, text, "quat", start=time, value=worst)


def _gravity(log: Log) -> Iterator[Finding]:
    """At rest an accelerometer shows 9.81 m/s^2 upwards, as the attitude says."""
    acc, time = log["acc"].values, log["acc"].time
    length = np.linalg.norm(acc, axis=1)
    size = float(np.nanmedian(length))
    if 0.85 < size < 1.15:
        text = f"acc has a length of {size:.2f}: it is in g, not in m/s^2"
        yield Finding("acc_unit", ERROR, text, "acc", value=size, unit="g")
    elif not 0.8 * G < size < 1.25 * G:
        text = f"acc has a length of {size:.3g} m/s^2 instead of {G}"
        yield Finding("acc_unit", WARNING, text, "acc", value=size, unit="m/s^2")
    good = np.isfinite(acc).all(axis=1) & (length > 0)
    if good.sum() < 10:
        return
    measured = acc[good] / length[good, None]
    if "quat" not in log:
        up = float(np.median(measured[:, 2]))
        if up < -0.7:
            text = "acc points down: at rest and upright it should point up (+z)"
            yield Finding("gravity", WARNING, text, "acc", value=up, unit="1")
        return
    if not log["quat"].ordered or not np.isfinite(log["quat"].values).all():
        return
    quat = log.at("quat", time[good])
    fits = {
        "as it is": _distance(measured, up_of(quat)),
        "gravity": _distance(-measured, up_of(quat)),
        "quat_order": _distance(measured, up_of(quat[:, [3, 0, 1, 2]])),
        "quat_inverse": _distance(measured, up_of(quat * np.array([1, -1, -1, -1]))),
    }
    best = min(fits, key=lambda f: fits[f])
    if fits["as it is"] < ALIKE or fits[best] > 0.5 * fits["as it is"]:
        return
    texts = {
        "gravity": "acc has the wrong sign: at rest it should point up, against gravity",
        "quat_order": "quat is in the order x, y, z, w: only then does it agree with gravity in acc",
        "quat_inverse": "quat turns the world into the body: only its inverse agrees with gravity in acc",
    }
    yield Finding(best, ERROR, texts[best], "acc" if best == "gravity" else "quat", value=fits["as it is"], unit="1")


def _turning(log: Log) -> Iterator[Finding]:
    """The gyro against the rate at which the attitude turns."""
    quat, time = log["quat"].values, log["quat"].time
    if not np.isfinite(quat).all():
        return
    step = np.clip(np.abs(np.sum(quat[1:] * quat[:-1], axis=1)), 0, 1)
    turned = 2 * np.arccos(step) / np.diff(time)
    gyro = np.linalg.norm(log.at("gyro", 0.5 * (time[1:] + time[:-1]), hold=False), axis=1)
    rate, shown = float(np.sqrt(np.mean(turned**2))), float(np.sqrt(np.mean(gyro**2)))
    if rate <= 0.05 or not np.isfinite(shown):
        return
    factor = shown / rate
    if 30 < factor < 110:
        text = f"gyro is in deg/s: it is {factor:.0f} times the rate at which quat turns"
        yield Finding("degrees", ERROR, text, "gyro", value=factor, unit="deg/rad")
    elif not 0.5 < factor < 2:
        text = f"gyro is {factor:.2g} times the rate at which quat turns"
        yield Finding("scale", WARNING, text, "gyro", value=factor, unit="1")


def _distance(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.median(np.linalg.norm(a - b, axis=1)))
