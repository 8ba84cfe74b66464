"""Sensors: noise, bias, drift, quantisation, read skew and lost frames of what the robot reports."""

from dataclasses import dataclass

import mujoco

from gapless.errors import BadInput
from gapless.robots import base_joint
from gapless.twin.mechanism import Bound, Fields, Values
from gapless.twin.space import Parameter, amount

ACCELEROMETER = "gapless_acc"

# quantity: (size of a real mismatch, tolerance, highest, unit). Sources: data/README figures of STS3215 (encoder step
# 0.09 deg), Unitree-class joint encoders and MEMS IMUs (LSM6DSOX: 0.004 rad/s rms at 100 Hz), Peng 2018 for noise sizes.
QUANTITIES = {
    "noise_q": (0.002, 0.0005, 0.1, "rad"),
    "noise_dq": (0.05, 0.01, 5.0, "rad/s"),
    "noise_tau": (0.1, 0.02, 20.0, "Nm"),
    "noise_gyro": (0.02, 0.005, 2.0, "rad/s"),
    "noise_acc": (0.1, 0.02, 20.0, "m/s2"),
    "noise_tilt": (0.01, 0.002, 0.5, "rad"),
    "bias_gyro": (0.01, 0.002, 0.5, "rad/s"),
    "drift_gyro": (0.001, 0.0002, 0.1, "rad/s/sqrt(s)"),
    "quantum_q": (0.0015, 0.0002, 0.1, "rad"),
    "quantum_dq": (0.02, 0.005, 5.0, "rad/s"),
    "skew": (0.0005, 0.00005, 0.01, "s"),
    "drop": (0.02, 0.001, 0.9, ""),
}


@dataclass(frozen=True)
class Sensors:
    """Standard deviations, biases, steps; all zero in a model, never in a robot.

    `skew` is the time between the readings of two joints next to each other on a bus; `drop` the share of frames that do
    not arrive, so that the controller sees the one before.
    """

    accelerometer: bool = False
    """Put one into the model, at the site "imu" or the base's origin; it costs time in every step."""

    def install(self, spec: mujoco.MjSpec) -> None:
        if not self.accelerometer:
            return
        model = spec.copy().compile()
        joint = base_joint(model)
        if joint is None:
            raise BadInput("an accelerometer needs a floating base, and this robot has a fixed base")
        base = spec.joint(model.joint(joint).name).parent
        site = next((s for s in base.sites if s.name == "imu"), None) or base.add_site(name=ACCELEROMETER)
        spec.add_sensor(
            name=ACCELEROMETER,
            type=mujoco.mjtSensor.mjSENS_ACCELEROMETER,
            objtype=mujoco.mjtObj.mjOBJ_SITE,
            objname=site.name,
        )

    def bind(self, model: mujoco.MjModel) -> Bound:
        parameters: list[Parameter] = []
        for quantity, (scale, tolerance, high, unit) in QUANTITIES.items():
            axes = ("_x", "_y", "_z") if quantity == "bias_gyro" else ("",)
            low = -high if quantity == "bias_gyro" else 0.0
            parameters += [amount(f"sensors.{quantity}{a}", 0.0, scale, tolerance, unit, low, high) for a in axes]

        def apply(fields: Fields, values: Values) -> None:
            for quantity in QUANTITIES:
                if quantity == "bias_gyro":
                    for i, axis in enumerate("xyz"):
                        fields["path.bias_gyro"][:, i] = values[f"sensors.bias_gyro_{axis}"][:, 0]
                else:
                    name = "path.frame_drop" if quantity == "drop" else f"path.{quantity}"
                    fields[name][:] = values[f"sensors.{quantity}"][:, 0]

        return Bound(parameters, apply)
