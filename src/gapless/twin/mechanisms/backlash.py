"""Backlash: play between motor and joint, as a second joint that moves freely within a small range."""

from dataclasses import dataclass

import mujoco
import numpy as np

from gapless.robots import driven
from gapless.twin.mechanism import Bound, Fields, Values, last_joints
from gapless.twin.space import amount

PLAY = "_play"
LEAST = 1e-5  # rad: half the narrowest play; a limit of no width at all makes the solver fight itself


@dataclass(frozen=True)
class Backlash:
    """Total play of each joint [rad] (MuJoCo's two-joint recipe). The encoder and the drive are on the motor's side."""

    joints: str = "*"
    width: float = 0.0
    """Nominal play [rad]."""

    def install(self, spec: mujoco.MjSpec) -> None:
        for joint in last_joints(spec, self.joints):
            body = joint.parent
            body.add_joint(
                name=joint.name + PLAY,
                type=joint.type,
                axis=joint.axis,
                pos=joint.pos,
                limited=mujoco.mjtLimited.mjLIMITED_TRUE,
                range=_range(self.width),
                # teeth are hard: a stiff, well damped stop, as fast as twice the step allows
                solref_limit=[max(0.004, 2 * spec.option.timestep), 1.0],
                solimp_limit=[0.95, 0.99, 0.001, 0.5, 2],
                armature=1e-6,
                damping=[0.0, 0.0, 0.0],
                frictionloss=0.0,
                stiffness=[0.0, 0.0, 0.0],
            )
            # without rotor inertia the two joints could part at no cost and the mass matrix would be singular
            if joint.armature <= 0:
                joint.armature = 1e-3

    def bind(self, model: mujoco.MjModel) -> Bound:
        motors = driven(model, self.joints)
        plays = [model.joint(d.name + PLAY).id for d in motors]
        parameters = [amount(f"backlash.width/{d.name}", self.width, 0.01, 0.001, "rad", 0.0, 0.3) for d in motors]

        def apply(fields: Fields, values: Values) -> None:
            fields["jnt_range"][:, plays] = np.moveaxis(_range(values["backlash.width"]), 0, -1)

        return Bound(parameters, apply)


def _range(width: float | np.ndarray) -> np.ndarray:
    half = np.maximum(np.asarray(width, float) / 2, LEAST)
    return np.stack([-half, half])
