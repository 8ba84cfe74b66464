"""Disturbance: what pulls at the robot without being part of it: cables, wind."""

from dataclasses import dataclass

import mujoco

from gapless.robots import driven
from gapless.twin.mechanism import Bound, Fields, Values
from gapless.twin.space import amount

AIR = 1.2  # kg/m3


@dataclass(frozen=True)
class Disturbance:
    """A cable that pulls each joint towards its rest pose as a spring [Nm/rad], and wind along the world's axes [m/s].

    Pushes are events, not properties of a robot: see `Worlds.push`.
    """

    joints: str = "*"
    wind: bool = False
    """Wind switches the engine's air drag on, which costs time in every step."""

    def install(self, spec: mujoco.MjSpec) -> None:
        if self.wind and spec.option.density == 0:
            spec.option.density = AIR

    def bind(self, model: mujoco.MjModel) -> Bound:
        motors = driven(model, self.joints)
        joints = [d.joint for d in motors]
        parameters = [
            amount(f"disturbance.cable/{d.name}", float(model.jnt_stiffness[d.joint]), 0.2, 0.02, "Nm/rad", 0.0, 1000.0)
            for d in motors
        ]
        if self.wind:
            parameters += [
                amount(f"disturbance.wind_{axis}", float(model.opt.wind[i]), 3.0, 0.2, "m/s", -40.0, 40.0)
                for i, axis in enumerate("xy")
            ]

        def apply(fields: Fields, values: Values) -> None:
            fields["jnt_stiffness"][:, joints] = values["disturbance.cable"]
            if self.wind:
                for i, axis in enumerate("xy"):
                    fields["opt.wind"][:, i] = values[f"disturbance.wind_{axis}"][:, 0]

        return Bound(parameters, apply)
