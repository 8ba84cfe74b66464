"""The IMU of a floating base: where it sits and whose axes its readings are in."""

from dataclasses import dataclass

import mujoco
import numpy as np

from gapless.arrays import Array
from gapless.robots.drives import base_joint


@dataclass(frozen=True)
class IMU:
    """Where the IMU sits: the free joint's addresses and the sensor's orientation in the base."""

    qpos: int
    dof: int
    quat: Array
    frame: str
    """The site or body whose axes its readings are in."""


def imu_of(model: mujoco.MjModel) -> IMU | None:
    """The IMU of a floating base: the site "imu" on it, else its own frame; None for a fixed base."""
    j = base_joint(model)
    if j is None:
        return None
    sites = [s for s in range(model.nsite) if model.site(s).name == "imu" and model.site_bodyid[s] == model.jnt_bodyid[j]]
    quat = model.site_quat[sites[0]] if sites else np.array([1.0, 0, 0, 0])
    frame = "imu" if sites else str(model.body(model.jnt_bodyid[j]).name)
    return IMU(int(model.jnt_qposadr[j]), int(model.jnt_dofadr[j]), quat.copy(), frame)
