"""One joint simulated alone, with dry friction that sticks exactly: about 25 ns a step, compiled, many vectors at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numba
import numpy as np
from numpy.typing import NDArray

from gapless.identify.along import Course
from gapless.twin.space import Array

QUANTITIES = {
    "kp": "gains.kp",
    "kd": "gains.kd",
    "armature": "armature.inertia",
    "viscous": "friction.viscous",
    "coulomb": "friction.coulomb",
    "stribeck": "friction.stribeck",
    "stribeck_speed": "friction.stribeck_speed",
    "load": "friction.load",
    "load2": "friction.load2",
    "angle": "friction.angle",
    "angle2": "friction.angle2",
    "delay": "latency.action",
    "offset": "offset.encoder",
    "limit": "motor.limit",
    "strength": "motor.strength",
}
"""What the simulation knows, in the order of its vectors, and the twin's name of each."""
PLACE = {name: i for i, name in enumerate(QUANTITIES)}

BLOCK = 2.0  # s: errors within a stretch this long are not independent


@dataclass(frozen=True)
class Data:
    """All samples of one joint, log after log."""

    starts: NDArray[np.int64]
    """Where each log begins, and the end. Shape: (logs + 1,)."""
    q: Array
    dq: Array
    command: Array
    inertia: Array
    load: Array
    gain: Array
    valid: NDArray[np.bool_]
    block: NDArray[np.int64]
    """Number of the stretch of `BLOCK` seconds that a sample belongs to, log after log."""
    period: float
    substeps: int
    """Steps of the simulation in a period: as long as the twin's own, so that what is found holds there."""
    home: float
    servo: bool


def gather(courses: Sequence[Course], joint: int, home: float, servo: bool, timestep: float) -> Data:
    """One joint's samples of several logs; all logs must have about the same rate."""
    period = float(np.mean([c.period for c in courses]))
    starts = np.cumsum([0] + [len(c.q) for c in courses]).astype(np.int64)
    columns = {
        name: np.ascontiguousarray(np.concatenate([getattr(c, name)[:, joint] for c in courses]))
        for name in ("q", "dq", "command", "inertia", "load", "gain")
    }
    blocks, count = [], 0
    for c in courses:
        number = (np.arange(len(c.q)) * c.period / BLOCK).astype(np.int64)
        blocks.append(number + count)
        count += int(number[-1]) + 1
    return Data(
        starts=starts,
        **columns,
        valid=np.concatenate([c.valid for c in courses]),
        block=np.concatenate(blocks),
        period=period,
        substeps=max(1, round(period / timestep)),
        home=home,
        servo=servo,
    )


def residuals(data: Data, values: Array) -> Array:
    """Simulated minus measured position, free-running through each log. values: (k, quantities); shape: (k, samples)."""
    out = np.zeros((len(values), len(data.q)))
    step = data.period / data.substeps
    _run_all(
        np.ascontiguousarray(values), data.starts, data.q, data.dq, data.command, data.inertia, data.load, data.gain,
        data.substeps, step, data.home, data.servo, out,
    )  # fmt: skip
    out[:, ~data.valid] = 0.0
    return np.clip(np.nan_to_num(out, nan=1e3, posinf=1e3, neginf=-1e3), -1e3, 1e3)


@numba.njit(parallel=True, cache=True)
def _run_all(values, starts, q, dq, command, inertia, load, gain, substeps, dt, home, servo, out):  # type: ignore[no-untyped-def]
    logs = len(starts) - 1
    for job in numba.prange(values.shape[0] * logs):
        row, log = job // logs, job % logs
        _run(
            values[row], starts[log], starts[log + 1], q, dq, command, inertia, load, gain, substeps, dt, home, servo, out[row]
        )


@numba.njit(cache=True)
def _run(p, first, last, q, dq, command, inertia, load, gain, substeps, dt, home, servo, out):  # type: ignore[no-untyped-def]
    """Steps as MuJoCo's implicitfast takes them: damping and dry friction at the end of the step, the servo's spring before."""
    (
        kp,
        kd,
        armature,
        viscous,
        coulomb,
        stribeck,
        speed,
        by_load,
        by_load2,
        by_angle,
        by_angle2,
        delay,
        offset,
        limit,
        strength,
    ) = p
    late = delay / dt
    whole = int(np.floor(late))
    part = late - whole
    x, v = q[first] - offset, dq[first]
    out[first] = 0.0
    step = 0
    for k in range(first, last - 1):
        stiff = kp * gain[k] if servo else 0.0
        damp = viscous + (kd if servo and gain[k] > 0.0 else 0.0)
        for i in range(substeps):
            newer = first + max(step - whole, 0) // substeps
            older = first + max(step - whole - 1, 0) // substeps
            told = (1.0 - part) * command[newer] + part * command[older]
            share = (i + 0.5) / substeps
            mass = inertia[k] + share * (inertia[k + 1] - inertia[k]) + armature
            pull = load[k] + share * (load[k + 1] - load[k])
            if servo:
                drive = stiff * (told - offset - x)
                den = mass + dt * damp
                free = (mass * v + dt * (drive - pull)) / den
                torque = drive - (damp - viscous) * v
                if torque > limit or torque < -limit:
                    torque = limit if torque > limit else -limit
                    den = mass + dt * viscous
                    free = (mass * v + dt * (torque - pull)) / den
            else:
                torque = strength * gain[k] * told
                den = mass + dt * viscous
                free = (mass * v + dt * (torque - pull)) / den
            grip = coulomb + by_load * abs(torque) + by_load2 * torque * torque
            if stribeck > 0.0:
                grip += stribeck * np.exp(-((v / speed) ** 2))
            away = x - home
            grip += by_angle * away + by_angle2 * away * away
            slow = dt * max(grip, 0.0) / den
            v = free - slow if free > slow else free + slow if free < -slow else 0.0
            x += dt * v
            step += 1
        out[k + 1] = x + offset - q[k + 1]
