"""Flex: a spring between motor and joint: series elasticity, a soft gear, a link that bends."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import mujoco
import numpy as np

from gapless.errors import BadInput
from gapless.robots import Drive, driven, drives, is_dc_motor
from gapless.twin.mechanism import LEAST_ROTOR, Bound, Fields, Mechanism, Motion, Quantity, Values, part_joints
from gapless.twin.mechanisms.gains import KP

SPRING = "_flex"
RINGING = 0.7  # radians a step: above 2 the integrator diverges; lighter rotors than modelled take up the rest
RIGID = 5.0  # times a drive's gain: a spring as stiff as that hardly shows
RUNG = "+ flex between motor and link"
STIFFNESS = Quantity(
    "flex.stiffness",
    "N m/rad",
    remedy="model a spring of {value} in series with the drive; stiffen the joint if it should not be there",
    far=(-6.0, -5.0, -4.5, -4.0, -3.5, -2.5, -2.0),
    rungs=(RUNG,),
    structure=True,
    changes="a belt or a screw came loose or was tightened",
)
DAMPING = Quantity("flex.damping", "N m s/rad", cause=None, rungs=(RUNG,), structure=True)


@dataclass(frozen=True)
class Flex(Mechanism):
    """Stiffness [N m/rad] and damping [N m s/rad] in series with each drive. The encoder is on the motor's side."""

    quantities = (STIFFNESS, DAMPING)
    rival_step = 0.25  # a link that rings on its gear does so faster than the steps of most models can follow
    joints: str = "*"
    stiffness: float = 1000.0
    """Infinite: the stiffest that the time step can follow, on the joints where that is stiff beside the drive."""
    damping: float = 0.1

    @classmethod
    def suspected(cls, model: mujoco.MjModel, motion: Motion) -> "Flex":
        """A spring as stiff as the gains, and soft enough for the time step; parameters are scaled about it."""
        motors = drives(model)
        kp = [float(model.actuator_gainprm[d.actuator, 0]) for d in motors]
        softest = [0.1 / model.opt.timestep**2 / max(float(model.dof_invweight0[d.dof]), 1e-9) for d in motors]
        return cls(stiffness=float(min(np.median(kp), *softest)))

    @classmethod
    def rival(cls, model: mujoco.MjModel, motion: Motion) -> "Flex":
        return cls(stiffness=math.inf)

    def install(self, spec: mujoco.MjSpec, home: Mapping[str, float]) -> None:
        if self.stiffness <= 0:
            raise BadInput(f"a flexible joint needs a positive stiffness, not {self.stiffness:g} N m/rad")
        spring = {"stiffness": [min(self.stiffness, 1e6), 0, 0], "damping": [self.damping, 0, 0]}
        model = spec.copy().compile()
        motors = [d for d in driven(model, self.joints) if self.stiffness < math.inf or _rigid(model, d)]
        part_joints(spec, [d.name for d in motors], SPRING, limited=mujoco.mjtLimited.mjLIMITED_FALSE, **spring)

    def bind(self, model: mujoco.MjModel) -> Bound:
        joints = {model.joint(j).name: j for j in range(model.njnt)}
        motors = [d for d in driven(model, self.joints) if d.name + SPRING in joints]
        springs = [joints[d.name + SPRING] for d in motors]
        dofs = [int(model.jnt_dofadr[s]) for s in springs]
        stiffest = [(RINGING / model.opt.timestep) ** 2 / float(model.dof_invweight0[v]) for v in dofs]
        for d, limit in zip(motors, stiffest, strict=True):
            if limit < self.stiffness < math.inf:
                raise BadInput(
                    f"a spring of {self.stiffness:g} N m/rad on {d.name} rings faster than steps of "
                    f"{model.opt.timestep:g} s can follow: use at most {limit:.3g} N m/rad, or steps of at most "
                    f"{model.opt.timestep * math.sqrt(limit / self.stiffness):.2g} s"
                )
        parameters = [
            replace(STIFFNESS.factor(d.name, min(self.stiffness, limit), 3.0, 0.1, span=1000.0), high=limit)
            for d, limit in zip(motors, stiffest, strict=True)
        ]
        parameters += [DAMPING.amount(d.name, self.damping, 0.1, 0.1, 0.0, k) for d, k in zip(motors, stiffest, strict=True)]

        def apply(fields: Fields, values: Values) -> None:
            fields["jnt_stiffness"][:, springs] = values["flex.stiffness"]
            fields["dof_damping"][:, dofs] = values["flex.damping"]

        return Bound(parameters, apply)


def _rigid(model: mujoco.MjModel, d: Drive) -> bool:
    """Whether the time step can follow a spring on a joint that is much stiffer than its drive."""
    rotor = max(float(model.dof_armature[d.dof]), LEAST_ROTOR)
    link = max(1 / float(model.dof_invweight0[d.dof]) - rotor, 1e-9)
    stiffest = (RINGING / model.opt.timestep) ** 2 / (1 / link + 1 / rotor)
    return stiffest > RIGID * float(model.actuator_gainprm[d.actuator, KP if is_dc_motor(model, d.actuator) else 0])
