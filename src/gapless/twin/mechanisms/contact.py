"""Contact: grip, stiffness and damping of whatever touches, the slope of the ground, a step in the way."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import mujoco
import numpy as np

from gapless.arrays import Array
from gapless.robots import base_joint
from gapless.twin.mechanism import ON_FEET, Bound, Fields, Mechanism, Quantity, Values

STEP = "gapless_step"

GROUND = "+ ground contact"
_quantity = partial(Quantity, shown_by=ON_FEET, conditional=True)
FRICTION = _quantity(
    "contact.friction",
    remedy="set the floor's friction to {value} and randomise it widely: it is never the same twice",
    standing=GROUND,
    changes="it stood on another floor",
    ranges={"wide": ("", 0.5, 1.25), "models30": ("", 0.75, 1.15)},  # Tan et al. 2018; Hwangbo et al. 2019: 0.95 +- 0.2
)
STIFFNESS, DAMPING = (
    _quantity(f"contact.{q}", remedy=f"set the contact's {q} to {{value}} times the model's, and randomise it", standing=GROUND)
    for q in ("stiffness", "damping")
)
ROLL, PITCH = (
    _quantity(
        f"contact.slope_{axis}",
        "rad",
        "contact.slope",
        "level the floor, or tilt the model's",
        ranges={"wide": ("", -0.05, 0.05)},
        mirrored=axis == "roll",
    )
    for axis in ("roll", "pitch")
)
HEIGHT = _quantity("contact.step", "m", remedy="remove the step, or put one of {value} into the model")


@dataclass(frozen=True)
class Contact(Mechanism):
    """Coulomb friction of all contacts, their stiffness and damping as factors of the model's (1 = as modelled).

    A slope tilts gravity, which on a flat floor is the same physics at no cost; the IMU path knows the tilt. A step is a
    box across the robot's way at `step_at` metres ahead of the world's origin; its height is the parameter.
    """

    quantities = (FRICTION, STIFFNESS, DAMPING, ROLL, PITCH, HEIGHT)
    step_at: float | None = None

    def install(self, spec: mujoco.MjSpec, home: Mapping[str, float]) -> None:
        if self.step_at is None:
            return
        body = spec.worldbody.add_body(name=STEP, pos=[self.step_at + 2.0, 0, -0.5])
        floor = next((g for g in spec.geoms if g.type == mujoco.mjtGeom.mjGEOM_PLANE), None)
        body.add_geom(
            name=STEP,
            type=mujoco.mjtGeom.mjGEOM_BOX,
            size=[2.0, 4.0, 0.5],
            contype=floor.contype if floor else 1,
            conaffinity=floor.conaffinity if floor else 1,
            friction=floor.friction if floor else [1, 0.005, 0.0001],
        )

    def bind(self, model: mujoco.MjModel) -> Bound:
        geoms = np.flatnonzero((model.geom_contype | model.geom_conaffinity) != 0)
        touching = len(geoms) > 0 or model.npair > 0
        parameters = []
        grip = _grip(model, geoms)
        if touching:
            parameters = [
                FRICTION.factor("", grip, 1.5, 0.1),
                STIFFNESS.factor("", 1.0, 3.0, 0.3),
                DAMPING.factor("", 1.0, 2.0, 0.2),
            ]
        floating = base_joint(model) is not None
        if floating:
            parameters += [slope.amount("", 0.0, 0.05, 0.005, -0.6, 0.6) for slope in (ROLL, PITCH)]
        if self.step_at is not None:
            parameters.append(HEIGHT.amount("", 0.0, 0.03, 0.002, 0.0, 0.5))
        gravity = float(np.linalg.norm(model.opt.gravity))

        def apply(fields: Fields, values: Values) -> None:
            stiffness, damping = values["contact.stiffness"], values["contact.damping"]
            if len(geoms):
                fields["geom_friction"][:, geoms, 0] *= values["contact.friction"] / grip
                fields["geom_solref"][:, geoms] = _solref(fields["geom_solref"][:, geoms], stiffness, damping)
            if model.npair:
                fields["pair_friction"][:, :, :2] *= (values["contact.friction"] / grip)[:, :, None]
                fields["pair_solref"][:] = _solref(fields["pair_solref"], stiffness, damping)
            if floating:
                roll, pitch = values["contact.slope_roll"][:, 0], values["contact.slope_pitch"][:, 0]
                fields["path.slope_roll"][:], fields["path.slope_pitch"][:] = roll, pitch
                tilted = np.flatnonzero((roll != 0) | (pitch != 0))
                if len(tilted):
                    r, p = roll[tilted], pitch[tilted]
                    # straight down as seen from ground that is rolled about x, then pitched about its own y
                    down = np.stack([np.sin(p) * np.cos(r), -np.sin(r), -np.cos(p) * np.cos(r)], axis=-1)
                    fields["opt.gravity"][tilted] = gravity * down
            if self.step_at is not None:
                body = model.body(STEP).id
                fields["body_pos"][:, body, 2] = values["contact.step"][:, 0] - 0.5

        return Bound(parameters, apply)


def _grip(model: mujoco.MjModel, geoms: np.ndarray) -> float:
    """The sliding friction that the engine would use with the floor: a pair's own, else the higher priority's or the larger."""
    if model.npair:
        return float(max(model.pair_friction[:, 0].max(), 0.01))
    if not len(geoms):
        return 1.0
    top = geoms[model.geom_priority[geoms] == model.geom_priority[geoms].max()]
    return float(max(model.geom_friction[top, 0].max(), 0.01))


def _solref(solref: Array, stiffness: Array, damping: Array) -> Array:
    """Scale stiffness and damping of a contact in either of the engine's formats (manual: Solver parameters)."""
    time, ratio = solref[..., 0], solref[..., 1]
    direct = np.stack([time * stiffness, ratio * damping], axis=-1)
    # standard format: damping ~ 1 / time, stiffness ~ 1 / (time ratio)^2
    standard = np.stack([time / damping, ratio * damping / np.sqrt(stiffness)], axis=-1)
    return np.where((time <= 0)[..., None], direct, standard)
