"""Armature: the rotor's inertia as the joint feels it, gear ratio squared."""

from dataclasses import dataclass

import mujoco

from gapless.robots import driven
from gapless.twin.mechanism import Bound, Fields, Values
from gapless.twin.space import amount, factor


@dataclass(frozen=True)
class Armature:
    """Reflected rotor inertia of each joint [kg m2]."""

    joints: str = "*"

    def install(self, spec: mujoco.MjSpec) -> None:
        pass

    def bind(self, model: mujoco.MjModel) -> Bound:
        motors = driven(model, self.joints)
        dofs = [d.dof for d in motors]
        parameters = []
        for d in motors:
            name, value = f"armature.inertia/{d.name}", float(model.dof_armature[d.dof])
            # where the model has none, the size of the link's own inertia is what matters
            own = float(model.dof_M0[d.dof])
            parameters.append(
                factor(name, value, 1.5, 0.05, "kg m2", span=30.0)
                if value > 0
                else amount(name, 0.0, 0.3 * own, 0.01 * own, "kg m2", 0.0, 10 * own)
            )

        def apply(fields: Fields, values: Values) -> None:
            fields["dof_armature"][:, dofs] = values["armature.inertia"]

        return Bound(parameters, apply)
