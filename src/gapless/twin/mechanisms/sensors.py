"""Sensors: noise, bias, drift, quantisation, read skew and lost frames of what the robot reports."""

from collections.abc import Mapping
from dataclasses import dataclass

import mujoco

from gapless.errors import BadInput
from gapless.robots import base_joint
from gapless.twin.mechanism import IN_REPLAY, NEVER, Bound, Fields, Mechanism, Quantity, Values

ACCELEROMETER = "gapless_acc"

# Name: size of a real mismatch, tolerance, highest, unit, and up to where `wide` draws it. Sources: data/README figures of
# STS3215 (encoder step 0.09 deg), Unitree-class joint encoders and MEMS IMUs (LSM6DSOX: 0.004 rad/s rms at 100 Hz), Peng 2018
# for noise sizes; ranges: Asimov's and mjlab's, IMU noise of Tan et al. 2018 (to 0.05 rad), less.
_SIZES = {
    "noise_q": (0.002, 0.0005, 0.1, "rad", 0.01),
    "noise_dq": (0.05, 0.01, 5.0, "rad/s", 0.5),
    "noise_tau": (0.1, 0.02, 20.0, "N m", 0.0),
    "noise_gyro": (0.02, 0.005, 2.0, "rad/s", 0.1),
    "noise_acc": (0.1, 0.02, 20.0, "m/s2", 0.0),
    "noise_tilt": (0.01, 0.002, 0.5, "rad", 0.03),
    **{f"bias_gyro_{axis}": (0.01, 0.002, 0.5, "rad/s", 0.0) for axis in "xyz"},
    "drift_gyro": (0.001, 0.0002, 0.1, "rad/s/sqrt(s)", 0.0),
    "quantum_q": (0.0015, 0.0002, 0.1, "rad", 0.0),
    "quantum_dq": (0.02, 0.005, 5.0, "rad/s", 0.0),
    "skew": (0.0005, 0.00005, 0.01, "s", 0.0),
    "drop": (0.02, 0.001, 0.9, "", 0.02),
}


def _quantity(name: str, unit: str, wide: float) -> Quantity:
    presets = ("wide", "models30") if name.startswith("noise") else ("wide",)
    return Quantity(
        f"sensors.{name}",
        unit,
        cause=None,
        shown_by=IN_REPLAY if name == "skew" else NEVER,
        ranges={preset: ("", 0.0, wide) for preset in presets if wide},
        mirrored=name in ("bias_gyro_x", "bias_gyro_z"),
    )


@dataclass(frozen=True)
class Sensors(Mechanism):
    """Standard deviations, biases, steps; all zero in a model, never in a robot.

    `skew` is the time between the readings of two joints next to each other on a bus; `drop` the share of frames that do
    not arrive, so that the controller sees the one before.
    """

    quantities = tuple(_quantity(name, unit, wide) for name, (*_, unit, wide) in _SIZES.items())
    accelerometer: bool = False
    """Put one into the model, at the site "imu" or the base's origin; it costs time in every step."""

    def install(self, spec: mujoco.MjSpec, home: Mapping[str, float]) -> None:
        if not self.accelerometer:
            return
        model = spec.copy().compile()
        joint = base_joint(model)
        if joint is None:
            raise BadInput("an accelerometer needs a floating base, and this robot has a fixed base")
        base = spec.joint(model.joint(joint).name).parent
        site = next((s for s in base.sites if s.name == "imu"), None) or base.add_site(name=ACCELEROMETER)
        spec.add_sensor(
            name=ACCELEROMETER, type=mujoco.mjtSensor.mjSENS_ACCELEROMETER, objtype=mujoco.mjtObj.mjOBJ_SITE, objname=site.name
        )

    def bind(self, model: mujoco.MjModel) -> Bound:
        parameters = [
            quantity.amount("", 0.0, scale, tolerance, -high if "bias" in quantity.name else 0.0, high)
            for quantity, (scale, tolerance, high, *_) in zip(self.quantities, _SIZES.values(), strict=True)
        ]

        def apply(fields: Fields, values: Values) -> None:
            for name in _SIZES:
                value = values[f"sensors.{name}"][:, 0]
                if name.startswith("bias_gyro"):
                    fields["path.bias_gyro"][:, "xyz".index(name[-1])] = value
                else:
                    fields["path.frame_drop" if name == "drop" else f"path.{name}"][:] = value

        return Bound(parameters, apply)
