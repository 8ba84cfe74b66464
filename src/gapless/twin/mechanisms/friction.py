"""Friction: viscous and dry friction of each joint, and dry friction that depends on speed, load and angle."""

from dataclasses import dataclass

import mujoco
import numpy as np

from gapless.robots import driven, drives
from gapless.twin import callback
from gapless.twin.mechanism import Bound, Fields, Values
from gapless.twin.space import Parameter, amount, factor

# Dry friction is a soft constraint in MuJoCo; with its defaults a joint creeps. These make it stick, and need many solver
# iterations to be right (20 give a wrong answer without a warning).
SOLREF, SOLIMP = (0.01, 1.0), (0.9999, 0.9999, 0.001, 0.5, 2.0)
ITERATIONS, LS_ITERATIONS = 100, 50


@dataclass(frozen=True)
class Friction:
    """Torque that resists motion: viscous * v, and dry friction of

        coulomb + stribeck * exp(-(v / stribeck_speed)^2) + load * |motor torque| + load2 * motor torque^2
                + angle * (q - home) + angle2 * (q - home)^2

    never below zero. The terms after Coulomb's need a callback in the engine and are there where `full` is set.
    """

    joints: str = "*"
    full: bool = False
    hard: bool = True
    """Dry friction that sticks; off keeps the model's own, usually soft, solver settings."""

    def install(self, spec: mujoco.MjSpec) -> None:
        model = spec.copy().compile()
        chosen = driven(model, self.joints)
        if self.hard:
            for d in drives(model):
                spec.joint(d.name).solref_friction = SOLREF
                spec.joint(d.name).solimp_friction = SOLIMP
            spec.option.iterations = max(spec.option.iterations, ITERATIONS)
            spec.option.ls_iterations = max(spec.option.ls_iterations, LS_ITERATIONS)
        if self.full:
            home = model.key_qpos[0] if model.nkey else model.qpos0
            callback.prepare(spec, {d.name: float(home[d.qpos]) for d in chosen})

    def bind(self, model: mujoco.MjModel) -> Bound:
        motors = driven(model, self.joints)
        dofs = [d.dof for d in motors]
        parameters: list[Parameter] = []
        for d in motors:
            torque = _torque(model, d.actuator)
            viscous = float(model.dof_damping[d.dof])
            parameters.append(
                factor(f"friction.viscous/{d.name}", viscous, 2.0, 0.1, "Nms/rad", span=100.0)
                if viscous > 0
                else amount(f"friction.viscous/{d.name}", 0.0, 0.01 * torque, 0.001 * torque, "Nms/rad", 0.0, torque)
            )
        for d in motors:
            torque, dry = _torque(model, d.actuator), float(model.dof_frictionloss[d.dof])
            size = max(dry, 0.01 * torque)
            parameters.append(amount(f"friction.coulomb/{d.name}", dry, size, 0.1 * size, "Nm", 0.0, max(torque, 20 * size)))
        if self.full:
            slot = callback.slot(model)
            for k, (quantity, scale, unit, low, high, _) in enumerate(_EXTRA):
                for d in motors:
                    start = float(model.jnt_user[d.joint, slot + k])
                    size = max(float(model.dof_frictionloss[d.dof]), 0.01 * _torque(model, d.actuator))
                    unit_size = size if unit.startswith("Nm") else 1.0
                    parameters.append(
                        amount(
                            f"friction.{quantity}/{d.name}",
                            start,
                            scale * unit_size,
                            0.1 * scale * unit_size,
                            unit,
                            low * unit_size,
                            high * unit_size,
                        )
                    )
            joints = [d.joint for d in motors]

        def apply(fields: Fields, values: Values) -> None:
            fields["dof_damping"][:, dofs] = values["friction.viscous"]
            dry = values["friction.coulomb"]
            # a joint without any dry friction gets no constraint row, and the callback would have nothing to write to
            fields["dof_frictionloss"][:, dofs] = np.maximum(dry, callback.LEAST) if self.full else dry
            if self.full:
                for k, (quantity, *_) in enumerate(_EXTRA):
                    fields["jnt_user"][:, joints, slot + k] = values[f"friction.{quantity}"]

        return Bound(parameters, apply)


# quantity, scale, unit, low, high, start; scale and bounds of torques are in units of the joint's Coulomb friction.
# The order is the order of the callback's columns.
_EXTRA = (
    ("stribeck", 0.5, "Nm", 0.0, 20.0, 0.0),
    ("stribeck_speed", 0.05, "rad/s", 0.005, 5.0, 0.1),
    ("load", 0.1, "", 0.0, 1.0, 0.0),
    ("load2", 0.02, "1/Nm", 0.0, 1.0, 0.0),
    ("angle", 0.5, "Nm/rad", -20.0, 20.0, 0.0),
    ("angle2", 0.5, "Nm/rad2", -20.0, 20.0, 0.0),
)


def _torque(model: mujoco.MjModel, actuator: int) -> float:
    """A torque typical of the drive, which sizes friction where the model has none: its limit, else 1 Nm."""
    joint = int(model.actuator_trnid[actuator, 0])
    limited = (model.actuator_forcelimited[actuator], model.actuator_forcerange[actuator])
    for there, ends in (limited, (model.jnt_actfrclimited[joint], model.jnt_actfrcrange[joint])):
        if there and np.abs(ends).max() > 0:
            return float(np.abs(ends).max())
    if model.actuator_biastype[actuator] == mujoco.mjtBias.mjBIAS_NONE and model.actuator_ctrllimited[actuator]:
        return float(abs(model.actuator_ctrlrange[actuator, 1] * model.actuator_gainprm[actuator, 0]))
    return 1.0
