"""Backlash: play between motor and joint, as a second joint that moves freely within a small range."""

from collections.abc import Mapping
from dataclasses import dataclass

import mujoco
import numpy as np

from gapless.robots import driven
from gapless.twin.mechanism import Bound, Fields, Mechanism, Motion, Quantity, Values, part_joints

PLAY = "_play"
LEAST = 1e-5  # rad: half the narrowest play; a limit of no width at all makes the solver fight itself
WIDTH = Quantity(
    "backlash.width",
    "rad",
    remedy="repair or preload the gear; otherwise model a play of {value} and randomise it",
    separated={"flex.stiffness": "load the joint from one side, then move: play then closes, a spring does not"},
    rungs=("+ backlash",),
    starts=(0.005, 0.03),
    structure=True,
    changes="a gear has worn, or a screw came loose or was tightened",
)


@dataclass(frozen=True)
class Backlash(Mechanism):
    """Total play of each joint [rad] (MuJoCo's two-joint recipe). The encoder and the drive are on the motor's side."""

    quantities = (WIDTH,)
    rival_step = 0.5  # gear teeth are stiffer than the steps of most models can follow
    joints: str = "*"
    width: float = 0.0
    """Nominal play [rad]."""

    @classmethod
    def suspected(cls, model: mujoco.MjModel, motion: Motion) -> "Backlash":
        return cls()

    rival = suspected

    def install(self, spec: mujoco.MjSpec, home: Mapping[str, float]) -> None:
        part_joints(
            spec,
            [d.name for d in driven(spec.copy().compile(), self.joints)],
            PLAY,
            limited=mujoco.mjtLimited.mjLIMITED_TRUE,
            range=_range(self.width),
            # teeth are hard: a stiff, well damped stop; MuJoCo makes it as soft as the time step asks for (refsafe)
            solref_limit=[0.004, 1.0],
            solimp_limit=[0.95, 0.99, 0.001, 0.5, 2],
            damping=[0.0, 0.0, 0.0],
            stiffness=[0.0, 0.0, 0.0],
        )

    def bind(self, model: mujoco.MjModel) -> Bound:
        motors = driven(model, self.joints)
        plays = [model.joint(d.name + PLAY).id for d in motors]
        parameters = [WIDTH.amount(d.name, self.width, 0.01, 0.001, 0.0, 0.3) for d in motors]

        def apply(fields: Fields, values: Values) -> None:
            fields["jnt_range"][:, plays] = np.moveaxis(_range(values["backlash.width"]), 0, -1)

        return Bound(parameters, apply)


def _range(width: float | np.ndarray) -> np.ndarray:
    half = np.maximum(np.asarray(width, float) / 2, LEAST)
    return np.stack([-half, half])
