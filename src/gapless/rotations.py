"""Rotations as unit quaternions, (w, x, y, z), compiled for arrays of any leading shape."""

import numba
import numpy as np
from numpy.typing import ArrayLike

from gapless.arrays import Array, Bools


@numba.guvectorize(["(float64[:], float64[:], float64[:])"], "(q),(q)->(q)", cache=True)
def multiply(a: Array, b: Array, out: Array) -> None:
    """Quaternion products, (w, x, y, z). Shape: (..., 4)."""
    out[0] = a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3]
    out[1] = a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2]
    out[2] = a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1]
    out[3] = a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0]


@numba.guvectorize(["(float64[:], float64[:], float64[:])"], "(q),(v)->(v)", cache=True)
def rotate_back(quat: Array, vector: Array, out: Array) -> None:
    """Vectors as seen from frames: R(quat)' v. Shapes: (..., 4), (..., 3)."""
    w, x, y, z = quat[0], -quat[1], -quat[2], -quat[3]
    tx = 2 * (y * vector[2] - z * vector[1])
    ty = 2 * (z * vector[0] - x * vector[2])
    tz = 2 * (x * vector[1] - y * vector[0])
    out[0] = vector[0] + w * tx + y * tz - z * ty
    out[1] = vector[1] + w * ty + z * tx - x * tz
    out[2] = vector[2] + w * tz + x * ty - y * tx


def roll_pitch(roll: Array, pitch: Array) -> Array:
    """Quaternion of a rotation about x by roll, then about the new y by pitch. Shape: (..., 4)."""
    about_x, about_y = (np.cos(roll / 2), np.sin(roll / 2)), (np.cos(pitch / 2), np.sin(pitch / 2))
    return np.stack([x * y for y in about_y for x in about_x], axis=-1)


def rotation_matrices(quat: Array) -> Array:
    """Shapes: (n, 4) to (n, 3, 3)."""
    w, x, y, z = (quat / np.linalg.norm(quat, axis=-1, keepdims=True)).T
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.array(rows).transpose(2, 0, 1)


def up_of(quat: Array) -> Array:
    """The world's upward axis as seen from frames: the third row of their rotation matrices. Shapes: (..., 4) to (..., 3)."""
    w, x, y, z = np.moveaxis(quat, -1, 0)
    return np.stack([2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)], axis=-1)


def tipped(up: Array, stood: ArrayLike = (0.0, 0.0, 1.0)) -> Bools:
    """Which robots fell: they lean by more than 60 degrees from how they stood, see `up_of`. Shapes: (..., 3) to (...)."""
    return np.asarray((up * np.asarray(stood)).sum(axis=-1) < 0.5)


def cross(a: Array, b: Array) -> Array:
    """Cross products; numpy's own takes ten times as long on short vectors."""
    ax, ay, az = a[..., 0], a[..., 1], a[..., 2]
    bx, by, bz = b[..., 0], b[..., 1], b[..., 2]
    return np.stack([ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx], axis=-1)
