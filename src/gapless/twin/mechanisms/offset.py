"""Offset: encoders whose zero is not where the model thinks, and an IMU that is not mounted square."""

from dataclasses import dataclass

import mujoco

from gapless.robots import base_joint, driven, drives
from gapless.twin.mechanism import Bound, Fields, Values
from gapless.twin.space import amount


@dataclass(frozen=True)
class Offset:
    """Encoder zero of each joint (reading minus truth) and tilt of the IMU against the base, [rad].

    The drive's own loop uses the same encoder: a servo told to go to q stops at q - offset and reports q.
    """

    joints: str = "*"

    def install(self, spec: mujoco.MjSpec) -> None:
        pass

    def bind(self, model: mujoco.MjModel) -> Bound:
        motors = driven(model, self.joints)
        columns = [drives(model).index(d) for d in motors]
        parameters = [amount(f"offset.encoder/{d.name}", 0.0, 0.02, 0.002, "rad", -0.5, 0.5) for d in motors]
        floating = base_joint(model) is not None
        if floating:
            parameters += [amount(f"offset.imu_{a}", 0.0, 0.02, 0.002, "rad", -0.5, 0.5) for a in ("roll", "pitch")]

        def apply(fields: Fields, values: Values) -> None:
            fields["path.offset_q"][:, columns] = values["offset.encoder"]
            if floating:
                fields["path.imu_roll"][:] = values["offset.imu_roll"][:, 0]
                fields["path.imu_pitch"][:] = values["offset.imu_pitch"][:, 0]

        return Bound(parameters, apply)
