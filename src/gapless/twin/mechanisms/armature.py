"""Armature: the rotor's inertia as the joint feels it, gear ratio squared."""

from dataclasses import dataclass

import mujoco

from gapless.robots import driven
from gapless.twin.mechanism import DRIVE, STANDING_FRICTION, Bound, Fields, Mechanism, Quantity, Values

INERTIA = Quantity(
    "armature.inertia",
    "kg m2",
    remedy="set the armature to {value} ({ratio} the model's {nominal}): rotor inertia times the gear ratio squared",
    rungs=(DRIVE,),
    standing=STANDING_FRICTION,
    shows="faster motion with sharp reversals shows it",
    ranges={"wide": ("x", 0.8, 1.25)},
    exported="armature",
)


@dataclass(frozen=True)
class Armature(Mechanism):
    """Reflected rotor inertia of each joint [kg m2]."""

    quantities = (INERTIA,)
    joints: str = "*"

    def bind(self, model: mujoco.MjModel) -> Bound:
        motors = driven(model, self.joints)
        dofs = [d.dof for d in motors]
        # where the model has none, the inertia of the link is what matters
        absent = [(0.3 * link, 0.01 * link, 10 * link) for link in model.dof_M0[dofs].tolist()]
        parameters = [
            INERTIA.some(d.name, model.dof_armature[d.dof], 1.5, 0.05, 30.0, size)
            for d, size in zip(motors, absent, strict=True)
        ]

        def apply(fields: Fields, values: Values) -> None:
            fields["dof_armature"][:, dofs] = values["armature.inertia"]

        return Bound(parameters, apply)
