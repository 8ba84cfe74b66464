"""Disturbance: what pulls at the robot without being part of it: cables, wind."""

from collections.abc import Mapping
from dataclasses import dataclass

import mujoco

from gapless.robots import driven
from gapless.twin.mechanism import Bound, Fields, Mechanism, Quantity, Values

AIR = 1.2  # kg/m3
CABLE = Quantity("disturbance.cable", "N m/rad", remedy="route the cables elsewhere, or model a spring of {value}")
WIND = tuple(Quantity(f"disturbance.wind_{axis}", "m/s") for axis in "xy")


@dataclass(frozen=True)
class Disturbance(Mechanism):
    """A cable that pulls each joint towards its rest pose as a spring [N m/rad], and wind along the world's axes [m/s].

    Pushes are events, not properties of a robot: see `Worlds.push`.
    """

    quantities = (CABLE, *WIND)
    joints: str = "*"
    wind: bool = False
    """Wind switches the engine's air drag on, which costs time in every step."""

    def install(self, spec: mujoco.MjSpec, home: Mapping[str, float]) -> None:
        if self.wind and spec.option.density == 0:
            spec.option.density = AIR

    def bind(self, model: mujoco.MjModel) -> Bound:
        motors = driven(model, self.joints)
        joints = [d.joint for d in motors]
        parameters = [CABLE.amount(d.name, model.jnt_stiffness[d.joint], 0.2, 0.02, 0.0, 1000.0) for d in motors]
        if self.wind:
            parameters += [w.amount("", model.opt.wind[i], 3.0, 0.2, -40.0, 40.0) for i, w in enumerate(WIND)]

        def apply(fields: Fields, values: Values) -> None:
            fields["jnt_stiffness"][:, joints] = values["disturbance.cable"]
            if self.wind:
                for i, w in enumerate(WIND):
                    fields["opt.wind"][:, i] = values[w.name][:, 0]

        return Bound(parameters, apply)
