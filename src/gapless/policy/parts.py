"""The parts of a contract: observation, action, joints, timing and conventions, each checked as it is made."""

import math
from dataclasses import dataclass
from typing import Any

from gapless.checks import (
    Checked,
    Numbers,
    bounds,
    checked,
    columns,
    flag,
    listed,
    names,
    number,
    numbers,
    one_of,
    part_of,
    parts_of,
    put,
    rows,
    text,
    whole,
)
from gapless.errors import BadInput

SIZES = {"gyro": 3, "acc": 3, "gravity": 3, "velocity": 3, "quat": 4}
"""Kinds whose number of columns is always the same."""
CLOCKS = {"clock": 2, "clock_sin": 1, "clock_cos": 1}
"""Kinds that show a gait phase, and the columns of each: sine and cosine, or one of the two."""
MOST_NUMBERS = 100_000
"""Columns of an observation. A height map and a long history stay far below; what a hostile file claims may not."""
MOST_FRAMES = 1_000
"""Frames of history."""
MOST_KEPT = 1_000_000
"""Numbers that a robot's history keeps."""
PROVIDERS = ("truth", "encoder", "history", "search", "constant")
"""Who says what the robot is like: see `Context`."""
TEACHERS = PROVIDERS[:2]
"""Those that only a simulator has."""
MOST_ROWS = 1_000
"""Of a reference gait; those of our own tasks have 32."""


@dataclass(frozen=True)
class Term(Checked, where="term {name!r}: "):
    """One part of the observation: `scale * clip(value)`, with its history.

    The value is what `kind` says: "gyro", "gravity" (projected into the base), "command", "q" (from the default position),
    "dq", "last_action", "clock", "quat", or any other name, which is then read under that name as it is.
    """

    name: str = checked(text)
    kind: str = checked(text)
    dim: int = checked(whole, low=1, high=MOST_NUMBERS)
    """Columns of one frame."""
    scale: Numbers = 1.0
    clip: tuple[Numbers, Numbers] | None = None
    """Lowest and highest, before the scale, in `unit`."""
    joints: tuple[str, ...] = checked(names, ())
    """Which joints, in which order; all unless given."""
    provenance: str = checked(one_of, "sensed", valid=("sensed", "estimated", "privileged"))
    """ "sensed", "estimated" (a filter on the robot gives it) or "privileged" (only a simulator knows it)."""
    history: int = checked(whole, 1, low=1, high=MOST_FRAMES)
    """Frames shown."""
    unit: str = checked(text, "")
    frame: str = checked(text, "")
    lag: int = checked(whole, 0, low=0, high=MOST_FRAMES)
    """Newest frames left out: 1 where the history does not hold the present, as in HumanoidVerse."""
    commands: tuple[str, ...] = checked(names, ())
    """Which commands, in which order; all unless given. Of a clock: those that are zero when the robot stands."""
    absolute: bool = checked(flag, False)
    """Of "q": positions as they are, not from the default ones."""
    frequency: float | None = checked(number, None, low=0.0)
    """Of a clock [Hz]."""
    phases: tuple[float, ...] = checked(numbers, (0.0,))
    """Lead of each leg's clock [rad]."""
    standing: str = checked(one_of, "zero", valid=("zero", "run", "stance"))
    """What a clock shows while every command is zero: "zero" for zeros, "run" for the phase as it goes on, "stance" for the
    phase pi of every leg and a clock that starts anew with the next command, as in holosoma."""

    def __post_init__(self) -> None:
        super().__post_init__()
        what = f"term {self.name!r}"
        put(self, "scale", columns(self.scale, f"{what}: scale", self.dim))
        if self.clip is not None:
            put(self, "clip", bounds(self.clip, f"{what}: clip", self.dim))
        if self.kind in CLOCKS and self.frequency is None:
            raise BadInput(f"{what}: a clock needs its frequency [Hz]")
        named = CLOCKS[self.kind] * len(self.phases) if self.kind in CLOCKS else len(self.joints) or len(self.commands)
        size = named or SIZES.get(self.kind, self.dim)
        if self.dim != size:
            raise BadInput(f"{what}: {self.kind} has {size} columns, not {self.dim}")

    @property
    def width(self) -> int:
        """Columns in the observation, history and all."""
        return self.dim * self.history


@dataclass(frozen=True)
class Observation(Checked, where="observation."):
    """The order of the numbers that go in."""

    terms: tuple[Term, ...] = checked(parts_of, (), kind=Term)
    major: str = checked(one_of, "term", valid=("term", "frame"))
    """ "term": each term with all its frames; "frame": neighbours with the same history go frame by frame."""
    order: str = checked(one_of, "oldest_first", valid=("oldest_first", "newest_first"))
    warmup: str = checked(one_of, "repeat", valid=("repeat", "zeros"))
    """What the history holds after a reset: the first frame again, or zeros."""
    last_action: str = checked(one_of, "raw", valid=("raw", "clipped", "processed"))
    """What "last_action" shows: the network's output, clipped, or "processed" (also scaled and offset)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        names([t.name for t in self.terms], "observation.terms")
        if self.width > MOST_NUMBERS:
            raise BadInput(f"observation: {self.width} numbers, but at most {MOST_NUMBERS} are allowed; shorten the history")
        kept = max((t.history + t.lag for t in self.terms), default=0) * sum(t.dim for t in self.terms)
        if kept > MOST_KEPT:
            raise BadInput(f"observation: a history of {kept} numbers, but at most {MOST_KEPT} are kept; shorten it")

    @property
    def width(self) -> int:
        """Numbers that go into the network."""
        return sum(t.width for t in self.terms)


@dataclass(frozen=True)
class Reference(Checked, where="action.reference."):
    """An open-loop gait that the action is added to: what is added to each driven joint's target over one cycle.

    A robot is `time * frequency` cycles into it, by the time since its reset. Row i of r belongs to i / r of a cycle, between
    rows it is linear, and the last row leads to the first. While a robot stands nothing is added.
    """

    frequency: float = checked(number, low=0.0)
    """[Hz]"""
    table: tuple[tuple[float, ...], ...] = checked(rows, most=MOST_ROWS)
    """In the action's unit. Shape: (rows, driven joints)."""
    commands: tuple[str, ...] = checked(names, ())
    """Those that are zero when the robot stands; all unless given."""
    wake: float | None = checked(number, None, low=0.0)
    """Base speed above which a robot that is asked to stand steps in place (see `Gait`); never unless given [m/s]."""


@dataclass(frozen=True)
class Action(Checked, where="action."):
    """What the numbers that come out mean: `offset + scale * clip(action)` for each driven joint, and a gait on top."""

    kind: str = checked(one_of, "position", valid=("position", "velocity", "torque"))
    """ "position" [rad or m], "velocity" [rad/s or m/s] or "torque" [N m or N]."""
    joints: tuple[str, ...] = checked(names, ())
    scale: Numbers | None = None
    offset: Numbers | None = None
    clip: tuple[Numbers, Numbers] | None = None
    """Lowest and highest, of the network's output."""
    filter: float | None = checked(number, None, low=0.0, high=1.0)
    """Share of a new target that is taken each period, where targets are smoothed; 1 takes all of it."""
    reference: Reference | None = checked(part_of, None, kind=Reference)
    """What is added to the targets, where the action is a residual on a gait."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, check in (("scale", columns), ("offset", columns), ("clip", bounds)):
            if (value := getattr(self, name)) is not None:
                put(self, name, check(value, f"action.{name}", len(self.joints)))
        if self.reference is not None and (width := len(self.reference.table[0])) != len(self.joints):
            raise BadInput(f"action.reference.table: {width} columns for {len(self.joints)} driven joints")


@dataclass(frozen=True)
class Joints(Checked, where="joints."):
    """The robot's joints as the policy was trained with them; readings and targets follow this order."""

    names: tuple[str, ...] = checked(names)
    default_pos: tuple[float, ...] | None = None
    kp: tuple[float, ...] | None = None
    kd: tuple[float, ...] | None = None
    effort_limit: tuple[float | None, ...] | None = None
    velocity_limit: tuple[float | None, ...] | None = None
    armature: tuple[float, ...] | None = None
    limits: tuple[tuple[float, float] | None, ...] | None = None
    """Lowest and highest position of each joint, None for a joint without."""
    gain_unit: str = checked(one_of, "Nm", valid=("Nm", "duty"))
    """What the gains put out for each rad and rad/s: a torque ("Nm"), or the share of its supply ("duty")."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.names:
            raise BadInput("joints.names: a policy needs at least one joint")
        for name in ("default_pos", "kp", "kd", "effort_limit", "velocity_limit", "armature", "limits"):
            if (value := getattr(self, name)) is None:
                continue
            entries = listed(value, what := f"joints.{name}")
            if len(entries) != len(self.names):
                raise BadInput(f"{what}: {len(entries)} values for {len(self.names)} joints")
            put(self, name, tuple(self._value(name, f"{what} of {j}", x) for j, x in zip(self.names, entries, strict=True)))

    @staticmethod
    def _value(name: str, what: str, value: Any) -> Any:
        """A figure of one joint."""
        if value is None and name in ("effort_limit", "velocity_limit", "limits"):
            return None
        if name == "limits":
            return bounds(value, what)
        return number(value, what, -math.inf if name == "default_pos" else 0.0)


@dataclass(frozen=True)
class Timing(Checked, where="timing."):
    """The periods of policy and simulation."""

    control_dt: float | None = checked(number, None, low=1e-6, high=10.0)
    """The period of the policy [s]."""
    sim_dt: float | None = checked(number, None, low=1e-6, high=10.0)
    decimation: int | None = checked(whole, None, low=1, high=1_000_000)
    delay_range: tuple[float, float] | None = checked(bounds, None, low=0.0)
    """Delay from reading to command that the policy was trained with [s]."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.control_dt and self.sim_dt and self.decimation:
            product = self.sim_dt * self.decimation
            if abs(product - self.control_dt) > 1e-6 * self.control_dt:
                steps = f"{self.decimation} steps of {self.sim_dt:g} s"
                raise BadInput(f"timing: {steps} make {product:g} s, but control_dt is {self.control_dt:g} s")


@dataclass(frozen=True)
class Source(Checked, where="source."):
    """Where the policy comes from."""

    framework: str = checked(text, "")
    version: str = checked(text, "")
    run: str = checked(text, "")
    sha256: str = checked(text, "")
    """Of the file that was read, where it was another framework's."""


@dataclass(frozen=True)
class RobotIdentity(Checked, where="robot."):
    """Which robot the policy is for."""

    name: str = checked(text, "")
    model_sha256: str = checked(text, "")
    mass: float | None = checked(number, None, low=0.0)
    """[kg]"""


@dataclass(frozen=True)
class Conventions(Checked, where="conventions."):
    """Orders and signs that frameworks differ in."""

    quaternion: str = checked(one_of, "wxyz", valid=("wxyz", "xyzw"))
    """Order in which a term of kind "quat" is shown; readings are always w first."""
    imu_frame: str | None = checked(text, None)
    """The site or link that gyro and gravity are given in."""
    gravity: tuple[float, ...] = checked(numbers, (0.0, 0.0, -1.0))
    """What the gravity term shows on an upright robot."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.gravity not in ((0.0, 0.0, -1.0), (0.0, 0.0, 1.0)):
            raise BadInput(f"conventions.gravity: (0, 0, -1) or (0, 0, 1) on an upright robot, not {self.gravity}")


@dataclass(frozen=True)
class Context(Checked, where="context."):
    """What the policy is told of its robot beside what it observes: a vector z, `pi(a | o, z)`.

    With "truth" z are parameters that only a simulator knows, 0 in the middle of the range that training drew them from and
    -1 and 1 at its ends; with "encoder" the network makes a shorter vector of them. Both are teachers, which no robot can run.
    With "history" the network finds z in its observation's history and keeps it as memory, renewed at `rate`. With "search"
    (found by trials on the robot) or "constant" it is `value`. All but "history" have a term of kind "context".
    """

    names: tuple[str, ...] = checked(names)
    """What the numbers are: parameters, or those of a learned vector, z0, z1 and so on."""
    provider: str = checked(one_of, valid=PROVIDERS)
    low: tuple[float, ...] | None = checked(numbers, None)
    """Values of the parameters at z = -1 and, below, at 1; None for a learned vector."""
    high: tuple[float, ...] | None = checked(numbers, None)
    value: tuple[float, ...] | None = checked(numbers, None)
    rate: float | None = checked(number, None, low=1e-3, high=10_000.0)
    """[Hz]"""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("low", "high", "value"):
            if (given := getattr(self, name)) is not None and len(given) != len(self.names):
                raise BadInput(f"context.{name}: {len(given)} numbers for a context of {len(self.names)}")
        if (self.value is not None) != (self.provider in ("search", "constant")):
            raise BadInput(f"context.value: one is {'needed' if self.value is None else 'not taken'} with {self.provider!r}")


@dataclass(frozen=True)
class Recurrent(Checked, where="recurrent."):
    """The network's memory: inputs and outputs of shape (layers, n, hidden), in pairs."""

    inputs: tuple[str, ...] = checked(names)
    outputs: tuple[str, ...] = checked(names)
    reset: str = checked(one_of, "zeros", valid=("zeros",))

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.inputs or len(self.inputs) != len(self.outputs):
            raise BadInput(f"recurrent: {len(self.inputs)} inputs and {len(self.outputs)} outputs do not make pairs")
