"""The command and sensor path, compiled: delay, jitter and loss of commands; delay, skew and frames of readings.

Times are in physics steps. A command that takes effect in the middle of a step acts for its share of that step, which for a
constant delay is the linear interpolation of MuJoCo's own actuator delay, and goes on below one step, where that does not.
"""

import numba
import numpy as np

from gapless.twin.space import Array

SNAP = 1e-9  # steps: a delay this close to a whole step is a whole step


@numba.njit(cache=True)
def deliver(sent: Array, late: Array, held: Array, newest: int, substeps: int, out: Array) -> None:
    """What each actuator receives during the next control period.

    Args:
        sent: commands by age in a ring, shape (n, ring, controls).
        late: how late each takes effect [steps], infinite if lost; shape (n, ring, controls).
        held: what was in force before the oldest of them, shape (n, controls).
        newest: place of the command sent now.
        substeps: steps in a control period.
        out: shape (n, substeps, controls), written.
    """
    n, ring, controls = sent.shape
    for i in range(n):
        for c in range(controls):
            for s in range(substeps):
                until = 1.0  # of this step, not yet accounted for
                total = 0.0
                for age in range(ring):
                    k = (newest - age) % ring
                    since = late[i, k, c] - (age * substeps + s)
                    since = 0.0 if since < 0.0 else since
                    if since < until:
                        if since == 0.0 and until == 1.0:
                            total = sent[i, k, c]
                        else:
                            total += (until - since) * sent[i, k, c]
                        until = since
                    if until <= 0.0:
                        break
                if until > 0.0:  # nothing in the ring has arrived yet
                    total = held[i, c] if until == 1.0 else total + until * held[i, c]
                out[i, s, c] = total


@numba.njit(cache=True)
def read(ring: Array, newest: int, columns: np.ndarray, late: Array, out: Array) -> None:
    """Past values of recorded fields, interpolated between steps.

    Args:
        ring: shape (periods, n, substeps, fields); the last step of period `newest` is now.
        columns: which fields, shape (k,).
        late: age of each reading [steps], shape (n, k).
        out: shape (n, k), written.
    """
    periods, n, substeps, _ = ring.shape
    last = periods * substeps - 1
    for i in range(n):
        for j in range(len(columns)):
            age = min(max(late[i, j], 0.0), float(last))
            whole = int(age)
            part = age - whole
            c = columns[j]
            a = ring[(newest - whole // substeps) % periods, i, substeps - 1 - whole % substeps, c]
            if part > 0.0:
                older = whole + 1
                b = ring[(newest - older // substeps) % periods, i, substeps - 1 - older % substeps, c]
                a += part * (b - a)
            out[i, j] = a


def in_steps(seconds: Array, timestep: float) -> Array:
    """Seconds as steps; what is a whole number of steps but for rounding becomes one."""
    steps = seconds / timestep
    whole = np.rint(steps)
    return np.where(np.abs(steps - whole) < SNAP, whole, steps)


def multiply(a: Array, b: Array) -> Array:
    """Quaternion products, (w, x, y, z). Shape: (..., 4)."""
    aw, ax, ay, az = np.moveaxis(a, -1, 0)
    bw, bx, by, bz = np.moveaxis(b, -1, 0)
    return np.stack(
        [
            aw * bw - ax * bx - ay * by - az * bz,
            aw * bx + ax * bw + ay * bz - az * by,
            aw * by - ax * bz + ay * bw + az * bx,
            aw * bz + ax * by - ay * bx + az * bw,
        ],
        axis=-1,
    )


def rotate_back(quat: Array, vector: Array) -> Array:
    """Vectors as seen from frames: R(quat)' v. Shapes: (..., 4), (..., 3)."""
    w, u = quat[..., :1], -quat[..., 1:]
    t = 2 * np.cross(u, vector)
    return vector + w * t + np.cross(u, t)


def roll_pitch(roll: Array, pitch: Array) -> Array:
    """Quaternion of a rotation about x by roll, then about the new y by pitch. Shape: (..., 4)."""
    zero = np.zeros_like(roll)
    about_x = np.stack([np.cos(roll / 2), np.sin(roll / 2), zero, zero], axis=-1)
    about_y = np.stack([np.cos(pitch / 2), zero, np.sin(pitch / 2), zero], axis=-1)
    return multiply(about_x, about_y)
