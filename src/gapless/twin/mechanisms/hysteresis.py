"""Hysteresis: friction that winds up before it slips, as strain-wave gears, seals, belts and tendons in sheaths have it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import mujoco
import numpy as np

from gapless.errors import BadInput
from gapless.robots import driven, torque_limit
from gapless.twin.mechanism import Bound, Fields, Mechanism, Motion, Quantity, Values

ACTUATOR = "_hysteresis"
COULOMB, STATIC = 3, 4  # places of LuGre friction in biasprm of the engine's `dcmotor`
STIFFNESS, DAMPING = 5, 6  # and in its dynprm
STRIBECK = 1.0  # rad/s: without effect, as static and sliding friction are equal
LEAST = 1e-9  # N m: the engine divides by the torque, and wants a torque constant
SIZE = 0.02  # of the torque limit: friction of a gear as met in practice
NARROWEST, WIDEST = 0.005, 1.0  # rad: what winds up less is dry friction, more a spring

RUNG = "+ hysteresis"
TORQUE = Quantity(
    "hysteresis.torque",
    "N m",
    remedy="model friction of {value} that winds up before it slips (`gapless fit` finds it); look at the gear, belt or seal",
    separated={
        "friction.coulomb": "reverse slowly, by less and by more than the windup: dry friction makes steps, hysteresis loops",
        "backlash.width": "move slowly without load: play then has no torque, hysteresis has",
    },
    rungs=(RUNG,),
    structure=True,
    shows="slow reversals of several sizes show it",
    changes="a belt, seal or gear was tightened, has run in or has worn",
)
WINDUP = Quantity("hysteresis.windup", "rad", cause="hysteresis.torque", rungs=(RUNG,), structure=True)


@dataclass(frozen=True)
class Hysteresis(Mechanism):
    """Friction of a bristle (LuGre): a spring that gives up to a torque [N m], reached after an angle of windup [rad]."""

    quantities = (TORQUE, WINDUP)
    joints: str = "*"
    windup: float = 0.05

    @classmethod
    def suspected(cls, model: mujoco.MjModel, motion: Motion) -> "Hysteresis":
        return cls()

    rival = suspected

    def install(self, spec: mujoco.MjSpec, home: Mapping[str, float]) -> None:
        if not NARROWEST <= self.windup <= WIDEST:
            raise BadInput(
                f"hysteresis winds up over {NARROWEST:g} to {WIDEST:g} rad, not {self.windup:g}: "
                "less is dry friction, more a spring"
            )
        for d in driven(spec.copy().compile(), self.joints):
            passive = spec.add_actuator(name=d.name + ACTUATOR, target=d.name, trntype=mujoco.mjtTrn.mjTRN_JOINT)
            lugre = [LEAST / self.windup, 0.0, LEAST, LEAST, STRIBECK]
            passive.set_to_dcmotor([LEAST, LEAST], 1.0, lugre=lugre, ctrlspec=0)

    def bind(self, model: mujoco.MjModel) -> Bound:
        motors = driven(model, self.joints)
        acts = [model.actuator(d.name + ACTUATOR).id for d in motors]
        limits = [torque_limit(model, d.actuator) for d in motors]
        sizes = [SIZE * limit if 0 < limit < np.inf else SIZE for limit in limits]
        parameters = [TORQUE.amount(d.name, 0.0, s, 0.1 * s, 0.0, 50 * s) for d, s in zip(motors, sizes, strict=True)]
        parameters += [replace(WINDUP.factor(d.name, self.windup, 2.0, 0.5), low=NARROWEST, high=WIDEST) for d in motors]

        def apply(fields: Fields, values: Values) -> None:
            torque = np.maximum(values[TORQUE.name], LEAST)
            stiffness = torque / values[WINDUP.name]
            fields["actuator_biasprm"][:, acts, COULOMB] = fields["actuator_biasprm"][:, acts, STATIC] = torque
            fields["actuator_dynprm"][:, acts, STIFFNESS] = stiffness
            fields["actuator_dynprm"][:, acts, DAMPING] = 0.0

        return Bound(parameters, apply)
