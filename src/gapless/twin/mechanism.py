"""What a mechanism is: it says all about its quantities, installs itself into the model, and writes values into model fields.

The smallest one, whole:

    INERTIA = Quantity("armature.inertia", "kg m2", rungs=(DRIVE,), remedy="set the armature to {value}")

    @dataclass(frozen=True)
    class Armature(Mechanism):
        quantities = (INERTIA,)
        joints: str = "*"

        def bind(self, model):
            motors = driven(model, self.joints)
            dofs = [d.dof for d in motors]
            parameters = [INERTIA.factor(d.name, model.dof_armature[d.dof], within=1.5, tolerance=0.05) for d in motors]

            def apply(fields, values):                     # fields and values have a leading axis of worlds
                fields["dof_armature"][:, dofs] = values["armature.inertia"]

            return Bound(parameters, apply)
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import mujoco
import numpy as np

from gapless.arrays import Array, Bools
from gapless.errors import BadInput
from gapless.twin.space import Parameter, amount, factor

# Rungs that several mechanisms share: of the ladder of single joints, and of a robot on its feet.
DRIVE, PLAIN_FRICTION = "drive: gains or motor, armature, delay", "+ viscous and Coulomb friction"
STANDING_DRIVE, STANDING_FRICTION = "drive: gains, delay", "+ viscous and Coulomb friction, armature"

LEAST_ROTOR = 1e-3  # kg m2: of a motor that the model gives none where a link can move beside it

ALWAYS, ON_FEET, IN_REPLAY, NEVER = "any motion", "a robot on its feet", "a replay", "nothing"
"""What shows a quantity, the most demanding last: any motion of held joints, contact with the ground, the timing of one log, or
nothing, as no prediction depends on noise."""


@dataclass(frozen=True)
class Quantity:
    """All that the rest of the program must know about a quantity; `gapless.twin.quantities` makes tables of it."""

    name: str
    """`mechanism.quantity`."""
    unit: str = ""
    cause: str | None = ""
    """The cause that it is part of where a gap is explained: itself unless given; None where it is no cause."""
    remedy: str = ""
    """What to do about the cause; {value}, {nominal} and {ratio} ("1.3 times") are filled in."""
    separated: Mapping[str, str] = field(default_factory=dict)
    """Other causes that a log may not tell it from, and the motion that does."""
    shown_by: str = ALWAYS
    conditional: bool = False
    """Whether some robots cannot show it (nothing touches, the base is held): a cause only where a replay depends on it."""
    far: tuple[float, ...] = ()
    """Scaled values beyond the usual grid from which a search for the cause starts too."""
    rungs: tuple[str, ...] = ()
    """Steps of the ladder on which it is fitted: by joints alone if their simulation has it, else in the full model."""
    standing: str = ""
    """The step on which it is fitted to a robot on its feet."""
    starts: tuple[float, ...] = ()
    """Values from which its rung starts, where the nominal one has no slope to follow."""
    structure: bool = False
    """Whether its rung puts something new into the model, which unmodelled coupling can mimic: it must gain more."""
    stands_for: tuple[str, ...] = ()
    """Quantities of the same joint that a fit to positions puts into this one: a gain has the motor's strength in it."""
    scales: tuple[str, ...] = ()
    """Quantities of the same joint that grow with this one, and are no better known: with a motor's strength its limit."""
    torque_only: bool = False
    """Whether it is fitted only where drives take torque: a position loop hides it."""
    shows: str = ""
    """The motion that shows it, where logs do not determine it."""
    changes: str = ""
    """What may have changed on the robot where two recordings differ in it."""
    ranges: Mapping[str, tuple[str, float, float]] = field(default_factory=dict)
    """Preset of randomisation to what it draws, (how, low, high): a factor of nominal ("x"; from 0 to a real mismatch where the
    model has none), a difference from nominal ("+"), the same in units of a real mismatch ("scale"; "base": of the base alone),
    a share of the robot's mass ("of mass"), or values ("")."""
    mirrored: bool = False
    """Whether it changes its sign when left and right change places."""
    exported: str = ""
    """What it is to a training framework's drive: kp, kd, limit, armature, dry, viscous or delay."""

    @property
    def optional(self) -> bool:
        """Whether a plain drive may lack it, so that a fit which ends at 0 is a result."""
        return bool(self.rungs) and DRIVE not in self.rungs

    @property
    def in_any_motion(self) -> bool:
        """Whether joints that move show it, also those of a robot that is held."""
        return self.shown_by == ALWAYS

    @property
    def repeatable(self) -> bool:
        """Whether the same command gives the same effect each time."""
        return self.shown_by in (ALWAYS, ON_FEET)

    @property
    def predicted(self) -> bool:
        """Whether a replay's prediction depends on it."""
        return self.shown_by != NEVER

    def of(self, place: str) -> str:
        """The name of the parameter of one joint, link or bus."""
        return f"{self.name}/{place}" if place else self.name

    def factor(self, place: str, nominal: float, within: float, tolerance: float, span: float = 10.0) -> Parameter:
        """A parameter that is wrong by factors; see `space.factor`."""
        return factor(self.of(place), float(nominal), within, tolerance, self.unit, span)

    def some(
        self, place: str, nominal: float, within: float, tolerance: float, span: float, absent: tuple[float, float, float]
    ) -> Parameter:
        """A parameter that is wrong by factors where the model has some of it.

        absent: scale, tolerance and highest value where the model has none, which is wrong by an amount.
        """
        if nominal > 0:
            return self.factor(place, nominal, within, tolerance, span)
        scale, close, high = absent
        return self.amount(place, 0.0, scale, close, 0.0, high)

    def amount(self, place: str, nominal: float, scale: float, tolerance: float, low: float, high: float) -> Parameter:
        """A parameter that is wrong by an amount; see `space.amount`."""
        return amount(self.of(place), float(nominal), scale, tolerance, self.unit, low, high)


class Values(dict[str, Array]):
    """Quantity (`friction.coulomb`) to its values; a quantity of no joint at all has no columns.

    Shape of each: (n, number of joints or links).
    """

    def __init__(self, blocks: Mapping[str, Array], n: int):
        super().__init__(blocks)
        self.n = n

    def __missing__(self, quantity: str) -> Array:
        return np.zeros((self.n, 0))


class Fields(dict[str, Array]):
    """Model and path fields of n worlds: each starts as the model's own values and is written in place.

    Keys are MjModel field names (`dof_damping`), `opt.` fields of MjOption, and `path.` fields of the command and sensor
    path (see `gapless.twin.path`). Shape of each: (n, ...).
    """

    def __init__(self, base: Callable[[str], Array], n: int):
        super().__init__()
        self._base, self.n = base, n

    def __missing__(self, name: str) -> Array:
        base = np.asarray(self._base(name), float)
        out = self[name] = np.empty((self.n, *base.shape))
        out[:] = base
        return out


def field_of(model: mujoco.MjModel, name: str) -> Array:
    """A live view of a field of MjModel, or of its options (`opt.gravity`)."""
    owner, _, attribute = name.rpartition(".")
    return np.asarray(getattr(model.opt if owner else model, attribute))


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


@dataclass(frozen=True)
class Motion:
    """What the driven joints did in logs. Shape of each: (samples, joints)."""

    q: Array
    dq: Array
    error: Array | None = None
    """Simulated minus measured position, once something was simulated."""
    first: Bools | None = None
    """Samples of the first half of the logs: what errors there suggest, the other half must confirm. Shape: (samples,)."""


class Mechanism:
    """One physical cause of mismatch; a frozen dataclass in a file of its own, which is all that the program knows of it."""

    quantities: ClassVar[tuple[Quantity, ...]] = ()
    rival_step: ClassVar[float] = 1.0
    """Share of the twin's time step at which it competes as a cause."""

    @classmethod
    def suspected(cls, model: mujoco.MjModel, motion: Motion) -> Self | None:
        """The mechanism that a fit tries where the twin lacks it, at values to start from; None where nothing speaks for it."""
        return None

    @classmethod
    def rival(cls, model: mujoco.MjModel, motion: Motion) -> Self | None:
        """The mechanism that competes as a cause, in a model of its own, where the twin lacks it; at first it does nothing."""
        return None

    def install(self, spec: mujoco.MjSpec, home: Mapping[str, float]) -> None:
        """Add to the model what the mechanism needs there: joints, history buffers, solver settings.

        home: joint to its angle in the home pose [rad]. The spec has no keyframes meanwhile, since they must match its joints.
        """

    def bind(self, model: mujoco.MjModel) -> Bound:
        """Name the parameters and say how they are written."""
        raise NotImplementedError


def part_joints(spec: mujoco.MjSpec, names: Sequence[str], suffix: str, **settings: Any) -> None:
    """Put another joint of the same kind and axis behind each of some joints: motor first, then link."""
    for joint in map(spec.joint, names):
        if joint.parent.joints[-1].name != joint.name:
            raise BadInput(
                f"{joint.name} is not the last joint of its body {joint.parent.name}, so nothing can be put between it and the "
                "link: give each joint a body of its own"
            )
        same = {"type": joint.type, "axis": joint.axis, "pos": joint.pos, "armature": 1e-6, "frictionloss": 0.0}
        joint.parent.add_joint(name=joint.name + suffix, **same, **settings)
        # without rotor inertia the two joints could part at no cost and the mass matrix would be singular
        if joint.armature <= 0:
            joint.armature = LEAST_ROTOR


def keep(spec: mujoco.MjSpec, name: str, numbers: Sequence[float]) -> None:
    """Put numbers into a spec under a name that a twin reads when it is loaded; all others stay in their places."""
    numeric = spec.numeric(name)
    if numeric is None:
        spec.add_numeric(name=name, data=numbers, size=len(numbers))
    else:
        numeric.data = numbers
