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
from typing import Protocol

import mujoco
import numpy as np

from gapless.arrays import Array
from gapless.errors import BadInput
from gapless.robots import driven
from gapless.twin.space import Parameter


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
class StepState:
    """The state of n worlds just before a physics step: what a force may depend on. Read it, never write it."""

    qpos: Array
    """Shape: (n, nq)."""
    qvel: Array
    """Shape: (n, nv)."""
    control: Array
    """What the actuators receive during this step. Shape: (n, nu)."""


@dataclass(frozen=True)
class Bound:
    """A mechanism bound to a compiled model."""

    parameters: Sequence[Parameter]
    apply: Callable[[Fields, Values], None]
    """Write values into fields, in place. Called in the order of the mechanisms, from the model's own values each time."""
    force: Callable[[StepState, Values], Array] | None = None
    """Generalised forces (n, nv) [N or N m] that act during one physics step, from the state before it.

    For what no field of the model describes: a ripple over the angle, a learned torque. It is called for all worlds at once,
    before every step, so it must be vectorised; forces of several mechanisms add up.
    """


class Mechanism(Protocol):
    """One physical cause of mismatch; a frozen dataclass in a file of its own."""

    def install(self, spec: mujoco.MjSpec) -> None:
        """Add to the model what the mechanism needs there: joints, history buffers, solver settings."""

    def bind(self, model: mujoco.MjModel) -> Bound:
        """Name the parameters and say how they are written."""


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
