"""Flex: a spring between motor and joint: series elasticity, a soft gear, a link that bends."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import mujoco
import numpy as np

from gapless.errors import BadInput
from gapless.robots import driven, drives
from gapless.twin.mechanism import Bound, Fields, Mechanism, Motion, Quantity, Values, part_joints

SPRING = "_flex"
RINGING = 0.7  # radians a step: above 2 the integrator diverges; lighter rotors than modelled take up the rest
RUNG = "+ flex between motor and link"
STIFFNESS = Quantity(
    "flex.stiffness",
    "N m/rad",
    remedy="model a spring of {value} in series with the drive; stiffen the joint if it should not be there",
    rungs=(RUNG,),
    structure=True,
    changes="a belt or a screw came loose or was tightened",
)
DAMPING = Quantity("flex.damping", "N m s/rad", cause=None, rungs=(RUNG,), structure=True)


@dataclass(frozen=True)
class Flex(Mechanism):
    """Stiffness [N m/rad] and damping [N m s/rad] in series with each drive. The encoder is on the motor's side."""

    quantities = (STIFFNESS, DAMPING)
    joints: str = "*"
    stiffness: float = 1000.0
    damping: float = 0.1

    @classmethod
    def suspected(cls, model: mujoco.MjModel, motion: Motion) -> "Flex":
        """A spring as stiff as the gains, and soft enough for the time step; parameters are scaled about it."""
        motors = drives(model)
        kp = [float(model.actuator_gainprm[d.actuator, 0]) for d in motors]
        softest = [0.1 / model.opt.timestep**2 / max(float(model.dof_invweight0[d.dof]), 1e-9) for d in motors]
        return cls(stiffness=float(min(np.median(kp), *softest)))

    def install(self, spec: mujoco.MjSpec, home: Mapping[str, float]) -> None:
        if self.stiffness <= 0:
            raise BadInput(f"a flexible joint needs a positive stiffness, not {self.stiffness:g} N m/rad")
        spring = {"stiffness": [self.stiffness, 0, 0], "damping": [self.damping, 0, 0]}
        part_joints(spec, self.joints, SPRING, limited=mujoco.mjtLimited.mjLIMITED_FALSE, **spring)

    def bind(self, model: mujoco.MjModel) -> Bound:
        motors = driven(model, self.joints)
        springs = [model.joint(d.name + SPRING).id for d in motors]
        dofs = [int(model.jnt_dofadr[s]) for s in springs]
        stiffest = [(RINGING / model.opt.timestep) ** 2 / float(model.dof_invweight0[v]) for v in dofs]
        for d, limit in zip(motors, stiffest, strict=True):
            if self.stiffness > limit:
                raise BadInput(
                    f"a spring of {self.stiffness:g} N m/rad on {d.name} rings faster than steps of "
                    f"{model.opt.timestep:g} s can follow: use at most {limit:.3g} N m/rad, or steps of at most "
                    f"{model.opt.timestep * math.sqrt(limit / self.stiffness):.2g} s"
                )
        parameters = [
            replace(STIFFNESS.factor(d.name, self.stiffness, 3.0, 0.1, span=100.0), high=limit)
            for d, limit in zip(motors, stiffest, strict=True)
        ]
        parameters += [DAMPING.amount(d.name, self.damping, 0.1, 0.02, 0.0, self.stiffness) for d in motors]

        def apply(fields: Fields, values: Values) -> None:
            fields["jnt_stiffness"][:, springs] = values["flex.stiffness"]
            fields["dof_damping"][:, dofs] = values["flex.damping"]

        return Bound(parameters, apply)
