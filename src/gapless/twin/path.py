"""The fields of the command and sensor path: what lies between a controller and the joints, with neutral values.

Mechanisms write them as `fields["path.NAME"]`; `gapless.worlds` acts on them.
"""

import numpy as np

from gapless.arrays import Array

PER_JOINT = (
    "action",  # s, command to joint
    "jitter",  # s, a command comes up to this much later still
    "observation",  # s, joint to controller
    "offset_q",  # rad, encoder reading minus truth
    "quantum_cmd",  # rad, step of the commanded position
)
PER_ROBOT = (
    "drop",  # probability that a command is lost
    "frame_drop",  # probability that a frame of readings is lost
    "imu_roll",  # rad, the IMU's frame against the base
    "imu_pitch",
    "slope_roll",  # rad, the ground against gravity
    "slope_pitch",
    "noise_q",  # standard deviations
    "noise_dq",
    "noise_tau",
    "noise_gyro",
    "noise_acc",
    "noise_tilt",
    "drift_gyro",  # rad/s/sqrt(s), random walk of the gyro's bias
    "quantum_q",
    "quantum_dq",
    "skew",  # s, between the readings of one joint and the next
)


def neutral(joints: int) -> dict[str, Array]:
    """A path that changes nothing."""
    fields: dict[str, Array] = {f"path.{name}": np.zeros(joints) for name in PER_JOINT}
    fields |= {f"path.{name}": np.zeros(()) for name in PER_ROBOT}
    fields["path.bias_gyro"] = np.zeros(3)
    return fields
