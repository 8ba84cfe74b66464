"""Friction: viscous and dry friction of each joint, and dry friction that depends on speed, load and angle."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import mujoco
import numba
import numpy as np

from gapless.robots import driven, drives, torque_limit
from gapless.twin import callback
from gapless.twin.mechanism import PLAIN_FRICTION, STANDING_FRICTION, Bound, Fields, Mechanism, Quantity, Values

# Dry friction is a soft constraint in MuJoCo; with its defaults a joint creeps. These make it stick, and need many solver
# iterations to be right (20 give a wrong answer without a warning).
SOLREF, SOLIMP = (0.01, 1.0), (0.9999, 0.9999, 0.001, 0.5, 2.0)
ITERATIONS, LS_ITERATIONS = 100, 50
WARMER = "grease and gears were warmer or colder, have run in or have worn"
VISCOUS = Quantity(
    "friction.viscous",
    "N m s/rad",
    remedy="set joint damping to {value}, or identify it with a chirp up to the speeds of the task",
    rungs=(PLAIN_FRICTION,),
    standing=STANDING_FRICTION,
    shows="longer stretches at constant speed, slow and fast, show it",
    changes=WARMER,
    ranges={"wide": ("x", 0.5, 2.0)},  # Peng et al. 2018, less
    exported="viscous",
)
COULOMB = Quantity(
    "friction.coulomb",
    "N m",
    remedy="set friction loss to {value}, or identify it with slow triangles; randomise it by a factor of 2",
    rungs=(PLAIN_FRICTION,),
    standing=STANDING_FRICTION,
    shows="slow reversals show it",
    changes=WARMER,
    ranges={"wide": ("x", 0.5, 2.0)},
    exported="dry",
)
_EXTRA = {  # cause: its rung, what to do about it, the motion that shows it
    "stribeck": (
        "+ Stribeck friction",
        "identify Stribeck friction with slow triangles (`gapless fit` tries it), or learn a residual",
        "very slow reversals show it",
    ),
    "load": (
        "+ friction with load",
        "identify friction with load: move with and without a payload (`gapless fit` tries it)",
        "motion with a known extra mass shows it",
    ),
    "angle": (
        "+ friction with angle",
        "identify friction over the joint's whole range (`gapless fit` tries it); look at the gear",
        "the same slow motion at both ends of the range shows it",
    ),
}
EXTRA = tuple(
    (
        Quantity(f"friction.{name}", unit, f"friction.{cause}", remedy, rungs=(rung,), shows=shows, changes=WARMER),
        scale,
        low,
        high,
    )
    for name, cause, unit, scale, low, high in (
        ("stribeck", "stribeck", "N m", 0.5, 0.0, 20.0),
        ("stribeck_speed", "stribeck", "rad/s", 0.05, 0.005, 5.0),
        ("load", "load", "", 0.1, 0.0, 1.0),
        ("load2", "load", "1/(N m)", 0.02, 0.0, 1.0),
        ("angle", "angle", "N m/rad", 0.5, -20.0, 20.0),
        ("angle2", "angle", "N m/rad2", 0.5, -20.0, 20.0),
    )
    for rung, remedy, shows in (_EXTRA[cause],)
)
"""In the order of the callback's columns, with scale and bounds: of torques in units of the joint's Coulomb friction."""


@dataclass(frozen=True)
class Friction(Mechanism):
    """Torque that resists motion: viscous * v, and dry friction of

        coulomb + stribeck * exp(-(v / stribeck_speed)^2) + load * |motor torque| + load2 * motor torque^2
                + angle * (q - home) + angle2 * (q - home)^2

    never below zero (`dry_friction`). The terms after Coulomb's need a callback in the engine and exist where `full` is set.
    """

    quantities = (VISCOUS, COULOMB, *(quantity for quantity, *_ in EXTRA))
    joints: str = "*"
    full: bool = False
    hard: bool = True
    """Dry friction that sticks; off keeps the model's own, usually soft, solver settings."""

    def install(self, spec: mujoco.MjSpec, home: Mapping[str, float]) -> None:
        model = spec.copy().compile()
        if self.hard:
            for d in drives(model):
                spec.joint(d.name).solref_friction = SOLREF
                spec.joint(d.name).solimp_friction = SOLIMP
            spec.option.iterations = max(spec.option.iterations, ITERATIONS)
            spec.option.ls_iterations = max(spec.option.ls_iterations, LS_ITERATIONS)
        if self.full:
            callback.prepare(spec, {d.name: home[d.name] for d in driven(model, self.joints)})

    def bind(self, model: mujoco.MjModel) -> Bound:
        motors = driven(model, self.joints)
        dofs = [d.dof for d in motors]
        limits = {d.name: torque_limit(model, d.actuator) for d in motors}
        torques = {name: limit if 0 < limit < np.inf else 1.0 for name, limit in limits.items()}  # what sizes absent friction
        sizes = {d.name: max(float(model.dof_frictionloss[d.dof]), 0.01 * torques[d.name]) for d in motors}
        parameters = []
        for d in motors:
            absent = 0.01 * torques[d.name], 0.001 * torques[d.name], torques[d.name]
            parameters.append(VISCOUS.some(d.name, model.dof_damping[d.dof], 2.0, 0.1, 100.0, absent))
        for d in motors:
            dry, size = model.dof_frictionloss[d.dof], sizes[d.name]
            parameters.append(COULOMB.amount(d.name, dry, size, 0.1 * size, 0.0, max(torques[d.name], 20 * size)))
        slot, joints = callback.slot(model), [d.joint for d in motors]
        for k, (quantity, scale, low, high) in enumerate(EXTRA if self.full else ()):
            for d in motors:
                size = sizes[d.name] if quantity.unit.startswith("N m") else 1.0
                start = model.jnt_user[d.joint, slot + k]
                parameters.append(quantity.amount(d.name, start, scale * size, 0.1 * scale * size, low * size, high * size))

        def apply(fields: Fields, values: Values) -> None:
            fields["dof_damping"][:, dofs] = values["friction.viscous"]
            dry = values["friction.coulomb"]
            # a joint without any dry friction gets no constraint row, and the callback would have nothing to write to
            fields["dof_frictionloss"][:, dofs] = np.maximum(dry, callback.LEAST) if self.full else dry
            for k, (quantity, *_) in enumerate(EXTRA if self.full else ()):
                fields["jnt_user"][:, joints, slot + k] = values[quantity.name]

        return Bound(parameters, apply)


@numba.njit
def dry_friction(  # type: ignore[no-untyped-def]
    speed, torque, angle, coulomb, stribeck, stribeck_speed, load, load2, linear, square
):
    """The dry friction [N m] of a joint, never below 0: of the engine's callback, and of the simulation of single joints.

    angle: from home [rad]. torque: of the motor [N m].
    """
    total = coulomb + load * abs(torque) + load2 * torque * torque + linear * angle + square * angle * angle
    if stribeck > 0.0:
        total += stribeck * math.exp(-((speed / stribeck_speed) ** 2))
    return max(total, 0.0)
