"""Offset: encoders whose zero is not where the model thinks, and an IMU that is not mounted square."""

from dataclasses import dataclass

import mujoco

from gapless.robots import base_joint, driven, drives
from gapless.twin.mechanism import DRIVE, ON_FEET, Bound, Fields, Mechanism, Quantity, Values

ENCODER = Quantity(
    "offset.encoder",
    "rad",
    remedy="calibrate the encoder zeros, or subtract {value} from the readings",
    rungs=(DRIVE,),
    shows="holding several poses against gravity shows it",
    changes="the robot was homed anew, or a coupling or an encoder slipped",
    ranges={"wide": ("", -0.02, 0.02)},  # Asimov's and mjlab's
)
IMU = tuple(
    Quantity(
        f"offset.imu_{axis}",
        "rad",
        "offset.imu",
        "level the IMU, or subtract its tilt from the readings",
        shown_by=ON_FEET,
        standing="+ seat of the IMU",
        changes="the IMU sits differently, or the part that it is mounted on was bent or refitted",
        ranges={"wide": ("", -0.03, 0.03)},  # Tan et al. 2018: 0.05
        mirrored=axis == "roll",
    )
    for axis in ("roll", "pitch")
)


@dataclass(frozen=True)
class Offset(Mechanism):
    """Encoder zero of each joint (reading minus truth) and tilt of the IMU against the base, [rad].

    The drive's own loop uses the same encoder: a servo told to go to q stops at q - offset and reports q.
    """

    quantities = (ENCODER, *IMU)
    joints: str = "*"

    def bind(self, model: mujoco.MjModel) -> Bound:
        motors = driven(model, self.joints)
        columns = [drives(model).index(d) for d in motors]
        parameters = [ENCODER.amount(d.name, 0.0, 0.02, 0.002, -0.5, 0.5) for d in motors]
        floating = base_joint(model) is not None
        if floating:
            parameters += [tilt.amount("", 0.0, 0.02, 0.002, -0.5, 0.5) for tilt in IMU]

        def apply(fields: Fields, values: Values) -> None:
            fields["path.offset_q"][:, columns] = values["offset.encoder"]
            if floating:
                fields["path.imu_roll"][:] = values["offset.imu_roll"][:, 0]
                fields["path.imu_pitch"][:] = values["offset.imu_pitch"][:, 0]

        return Bound(parameters, apply)
