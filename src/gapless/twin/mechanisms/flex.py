"""Flex: a spring between motor and joint: series elasticity, a soft gear, a link that bends."""

import math
from dataclasses import dataclass, replace

import mujoco

from gapless.errors import BadInput
from gapless.robots import driven
from gapless.twin.mechanism import Bound, Fields, Values, last_joints
from gapless.twin.space import amount, factor

SPRING = "_flex"
RINGING = 0.7  # radians a step: above 2 the integrator diverges; lighter rotors than modelled take up the rest


@dataclass(frozen=True)
class Flex:
    """Stiffness [Nm/rad] and damping [Nms/rad] in series with each drive. The encoder is on the motor's side."""

    joints: str = "*"
    stiffness: float = 1000.0
    damping: float = 0.1

    def install(self, spec: mujoco.MjSpec) -> None:
        if self.stiffness <= 0:
            raise BadInput(f"a flexible joint needs a positive stiffness, not {self.stiffness:g} Nm/rad")
        for joint in last_joints(spec, self.joints):
            joint.parent.add_joint(
                name=joint.name + SPRING,
                type=joint.type,
                axis=joint.axis,
                pos=joint.pos,
                limited=mujoco.mjtLimited.mjLIMITED_FALSE,
                stiffness=[self.stiffness, 0, 0],
                damping=[self.damping, 0, 0],
                armature=1e-6,
                frictionloss=0.0,
            )
            if joint.armature <= 0:
                joint.armature = 1e-3

    def bind(self, model: mujoco.MjModel) -> Bound:
        motors = driven(model, self.joints)
        springs = [model.joint(d.name + SPRING).id for d in motors]
        dofs = [int(model.jnt_dofadr[s]) for s in springs]
        stiffest = [(RINGING / model.opt.timestep) ** 2 / float(model.dof_invweight0[v]) for v in dofs]
        for d, limit in zip(motors, stiffest, strict=True):
            if self.stiffness > limit:
                raise BadInput(
                    f"a spring of {self.stiffness:g} Nm/rad on {d.name} rings faster than steps of "
                    f"{model.opt.timestep:g} s can follow: use at most {limit:.3g} Nm/rad, or steps of at most "
                    f"{model.opt.timestep * math.sqrt(limit / self.stiffness):.2g} s"
                )
        parameters = [
            replace(factor(f"flex.stiffness/{d.name}", self.stiffness, 3.0, 0.1, "Nm/rad", span=100.0), high=limit)
            for d, limit in zip(motors, stiffest, strict=True)
        ]
        parameters += [
            amount(f"flex.damping/{d.name}", self.damping, 0.1, 0.02, "Nms/rad", 0.0, self.stiffness) for d in motors
        ]

        def apply(fields: Fields, values: Values) -> None:
            fields["jnt_stiffness"][:, springs] = values["flex.stiffness"]
            fields["dof_damping"][:, dofs] = values["flex.damping"]

        return Bound(parameters, apply)
