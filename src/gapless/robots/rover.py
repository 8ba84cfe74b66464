"""Differential drive: the lengths of a robot that steers by the speeds of two wheels."""

from dataclasses import dataclass

import mujoco
import numpy as np


@dataclass(frozen=True)
class DifferentialDrive:
    """Forward speed v and turn rate w need wheel speeds of (v -+ w track / 2) / radius, left and right [rad/s]."""

    radius: float
    """Wheel radius [m]."""
    track: float
    """Distance between the wheels' contact points [m]."""


def differential_drive(model: mujoco.MjModel, left: str = "left_wheel", right: str = "right_wheel") -> DifferentialDrive:
    """The drive of a model, from the geoms and bodies of its two wheels."""
    track = np.linalg.norm(model.body(left).pos - model.body(right).pos)
    return DifferentialDrive(radius=float(model.geom(left).size[0]), track=float(track))
