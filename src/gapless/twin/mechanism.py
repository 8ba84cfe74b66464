"""What a mechanism is: it installs itself into the model, names its parameters, and writes their values into model fields.

The smallest one, whole:

    @dataclass(frozen=True)
    class Armature:
        joints: str = "*"

        def install(self, spec): ...                       # nothing to add to the model

        def bind(self, model):
            drives = driven(model, self.joints)
            dofs = [d.dof for d in drives]
            parameters = [factor(f"armature.inertia/{d.name}", model.dof_armature[d.dof], ...) for d in drives]

            def apply(fields, values):                     # fields and values have a leading axis of worlds
                fields["dof_armature"][:, dofs] = values["armature.inertia"]

            return Bound(parameters, apply)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Protocol

import mujoco
import numpy as np

from gapless.errors import BadInput, unknown
from gapless.robots.model import driven_joints
from gapless.twin.space import Array, Parameter


class ValueBlocks(dict[str, Array]):
    """Quantity (`friction.coulomb`) to its values; a quantity of no joint at all has no columns.

    Shape of each: (n, number of joints or links).
    """

    def __init__(self, blocks: Mapping[str, Array], n: int):
        super().__init__(blocks)
        self.n = n

    def __missing__(self, quantity: str) -> Array:
        return np.zeros((self.n, 0))


Values = ValueBlocks


class Fields(dict[str, Array]):
    """Model and path fields of n worlds: each starts as the model's own values and is written in place.

    Keys are MjModel field names (`dof_damping`), `opt.` fields of MjOption, and `path.` fields of the command and sensor
    path (see `gapless.worlds.path`). Shape of each: (n, ...).
    """

    def __init__(self, base: Mapping[str, Array] | Callable[[str], Array], n: int):
        super().__init__()
        self._base = base if callable(base) else base.__getitem__
        self.n = n

    def __missing__(self, name: str) -> Array:
        base = np.asarray(self._base(name), float)
        out = self[name] = np.empty((self.n, *base.shape))
        out[:] = base
        return out


@dataclass(frozen=True)
class Bound:
    """A mechanism bound to a compiled model."""

    parameters: Sequence[Parameter]
    apply: Callable[[Fields, Values], None]
    """Write values into fields, in place. Called in the order of the mechanisms, from the model's own values each time."""


class Mechanism(Protocol):
    """One physical cause of mismatch; a frozen dataclass in a file of its own."""

    def install(self, spec: mujoco.MjSpec) -> None:
        """Add to the model what the mechanism needs there: joints, history buffers, solver settings."""

    def bind(self, model: mujoco.MjModel) -> Bound:
        """Name the parameters and say how they are written."""


@dataclass(frozen=True)
class Drive:
    """An actuator with one control and the hinge or slide joint it moves."""

    name: str
    """The joint's name."""
    actuator: int
    joint: int
    dof: int
    qpos: int


def drives(model: mujoco.MjModel) -> list[Drive]:
    """The driven hinge and slide joints, in the order of the actuators; a joint with two actuators counts once."""
    return [
        Drive(model.joint(j).name, a, j, int(model.jnt_dofadr[j]), int(model.jnt_qposadr[j]))
        for j, a in driven_joints(model).items()
        if model.actuator_ctrlnum[a] == 1
    ]


def base_joint(model: mujoco.MjModel) -> int | None:
    """The free joint of the robot: at the root of its driven joints, not that of an object beside it; None if it is fixed."""
    found = drives(model)
    free = [j for j in range(model.njnt) if model.jnt_type[j] == mujoco.mjtJoint.mjJNT_FREE]
    if found:
        root = model.body_rootid[model.jnt_bodyid[found[0].joint]]
        free = [j for j in free if model.jnt_bodyid[j] == root]
    return free[0] if free else None


def driven(model: mujoco.MjModel, pattern: str) -> list[Drive]:
    """The driven joints that a pattern matches; a joint that exists but has no actuator is an error of its own."""
    found = drives(model)
    hits = [d for d in found if fnmatchcase(d.name, pattern)]
    if hits or (pattern == "*" and not found):
        return hits
    every = [model.joint(j).name for j in range(model.njnt)]
    if any(fnmatchcase(n, pattern) for n in every):
        raise BadInput(
            f"joint {pattern!r} has no actuator, so this mechanism cannot act on it; joints with one: "
            + (", ".join(d.name for d in found) or "none")
        )
    raise unknown("joint", pattern, [d.name for d in found])


def last_joints(spec: mujoco.MjSpec, pattern: str) -> list[mujoco.MjsJoint]:
    """The driven joints of a spec that a pattern matches, to put another joint behind; each must be the last of its body."""
    found = [spec.joint(d.name) for d in driven(spec.copy().compile(), pattern)]
    for joint in found:
        if joint.parent.joints[-1].name != joint.name:
            raise BadInput(
                f"{joint.name} is not the last joint of its body {joint.parent.name}, so nothing can be put between it and the "
                "link: give each joint a body of its own"
            )
    return found


def is_position_servo(model: mujoco.MjModel, actuator: int) -> bool:
    """Whether the control is a position target: an affine servo or a DC motor with a position input."""
    if is_dc_motor(model, actuator):
        return bool(model.actuator_ctrlspec[actuator] & int(mujoco.mjtCtrlInput.mjINPUT_POS))
    return _is_affine(model, actuator) and bool(model.actuator_biasprm[actuator, 1] < 0) and not _integrates(model, actuator)


def is_velocity_servo(model: mujoco.MjModel, actuator: int) -> bool:
    """Whether the control is a velocity target: a velocity servo, or a position servo that integrates its command."""
    if not _is_affine(model, actuator):
        return False
    position, speed = model.actuator_biasprm[actuator, 1:3]
    return bool(position < 0 if _integrates(model, actuator) else position == 0 and speed < 0)


def _is_affine(model: mujoco.MjModel, actuator: int) -> bool:
    return bool(
        model.actuator_gaintype[actuator] == mujoco.mjtGain.mjGAIN_FIXED
        and model.actuator_biastype[actuator] == mujoco.mjtBias.mjBIAS_AFFINE
    )


def _integrates(model: mujoco.MjModel, actuator: int) -> bool:
    return bool(model.actuator_dyntype[actuator] == mujoco.mjtDyn.mjDYN_INTEGRATOR)


def drive_signal(model: mujoco.MjModel, actuator: int) -> str:
    """What a drive is commanded in: "q" [rad], "dq" [rad/s] or "tau" [Nm]."""
    return "q" if is_position_servo(model, actuator) else "dq" if is_velocity_servo(model, actuator) else "tau"


def is_dc_motor(model: mujoco.MjModel, actuator: int) -> bool:
    return bool(model.actuator_gaintype[actuator] == mujoco.mjtGain.mjGAIN_DCMOTOR)
