"""Differential drive: wheel speeds from a body's motion, and back."""

from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import ArrayLike


@dataclass(frozen=True)
class Drive:
    """The two lengths of a differential drive."""

    radius: float
    """Wheel radius [m]."""
    track: float
    """Distance between the wheels' contact points [m]."""


def drive(model: mujoco.MjModel, left: str = "left_wheel", right: str = "right_wheel") -> Drive:
    """The drive of a model, from the geoms and bodies of its two wheels."""
    track = np.linalg.norm(model.body(left).pos - model.body(right).pos)
    return Drive(radius=float(model.geom(left).size[0]), track=float(track))


def wheel_speeds(v: ArrayLike, w: ArrayLike, radius: float, track: float) -> tuple[np.ndarray, np.ndarray]:
    """Left and right wheel speed [rad/s] for forward speed v [m/s] and turn rate w [rad/s, left positive]."""
    forward, turn = np.asarray(v, float), np.asarray(w, float) * track / 2
    return (forward - turn) / radius, (forward + turn) / radius


def body_twist(left: ArrayLike, right: ArrayLike, radius: float, track: float) -> tuple[np.ndarray, np.ndarray]:
    """Forward speed v [m/s] and turn rate w [rad/s, left positive] for wheel speeds [rad/s] that do not slip."""
    slow, fast = np.asarray(left, float) * radius, np.asarray(right, float) * radius
    return (slow + fast) / 2, (fast - slow) / track
