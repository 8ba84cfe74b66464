"""The contract: all that a runtime must know to run a policy, by name and in SI units, as frozen data."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gapless.errors import BadInput, unknown
from gapless.policy import checks
from gapless.policy.checks import Numbers

VERSION = 1
"""Of the text that a contract is written as."""
SIZES = {"gyro": 3, "acc": 3, "gravity": 3, "velocity": 3, "quat": 4}
"""Kinds whose number of columns is always the same."""
CLOCKS = {"clock": 2, "clock_sin": 1, "clock_cos": 1}
"""Kinds that show a gait phase, and the columns of each: sine and cosine, or one of the two."""
OF_JOINTS = ("q", "dq", "last_action")
PROVENANCES = ("sensed", "estimated", "privileged")
ACTION_KINDS = ("position", "velocity", "torque")
STANDING = ("zero", "run", "stance")
GAIN_UNITS = ("Nm", "duty")
OPTIONAL = ("action.clip", "action.filter", "action.reference")
"""What a policy may well be without: None there says that there is none."""
MOST_NUMBERS = 100_000
"""Columns of an observation. A height map and a long history stay far below; what a hostile file claims may not."""
MOST_FRAMES = 1_000
"""Frames of history."""
MOST_KEPT = 1_000_000
"""Numbers that a robot's history keeps."""
MOST_ROWS = 1_000
"""Of a reference gait; those of our own tasks have 32."""


@dataclass(frozen=True)
class Term:
    """One part of the observation: `scale * clip(value)`, with its history.

    The value is what `kind` says: "gyro", "gravity" (projected into the base), "command", "q" (minus the default position),
    "dq", "last_action", "clock", "quat", or any other name, which is then read under that name as it is.
    """

    name: str
    kind: str
    dim: int
    """Columns of one frame."""
    scale: Numbers = 1.0
    clip: tuple[Numbers, Numbers] | None = None
    """Lowest and highest, before the scale, in `unit`."""
    joints: tuple[str, ...] = ()
    """Which joints, in which order; all unless given."""
    provenance: str = "sensed"
    """ "sensed", "estimated" (a filter on the robot gives it) or "privileged" (only a simulator knows it)."""
    history: int = 1
    """Frames shown."""
    unit: str = ""
    frame: str = ""
    lag: int = 0
    """Newest frames left out: 1 where the history does not hold the present, as in HumanoidVerse."""
    commands: tuple[str, ...] = ()
    """Which commands, in which order; all unless given. Of a clock: those that are zero when the robot stands."""
    frequency: float | None = None
    """Of a clock [Hz]."""
    phases: tuple[float, ...] = (0.0,)
    """Lead of each leg's clock [rad]."""
    standing: str = "zero"
    """What a clock shows while every command is zero: "zero" for zeros, "run" for the phase as it goes on, "stance" for the
    phase pi of every leg and a clock that starts anew with the next command, as in holosoma."""

    def __post_init__(self) -> None:
        what = f"term {self.name!r}"
        checks.texts(self, what, "name", "kind", "provenance", "unit", "frame", "standing")
        for name, low, high in (("dim", 1, MOST_NUMBERS), ("history", 1, MOST_FRAMES), ("lag", 0, MOST_FRAMES)):
            checks.put(self, name, checks.whole(getattr(self, name), f"{what}: {name}", low, high))
        for name in ("joints", "commands"):
            checks.put(self, name, checks.names(getattr(self, name), f"{what}: {name}"))
        checks.one_of(self.provenance, f"{what}: provenance", PROVENANCES)
        checks.one_of(self.standing, f"{what}: standing", STANDING)
        checks.put(self, "scale", checks.columns(self.scale, f"{what}: scale", self.dim))
        checks.put(self, "phases", checks.numbers(self.phases, f"{what}: phases"))
        if self.clip is not None:
            checks.put(self, "clip", checks.bounds(self.clip, f"{what}: clip", self.dim))
        expected = SIZES.get(self.kind)
        if self.kind in CLOCKS:
            expected = CLOCKS[self.kind] * len(self.phases)
            if self.frequency is None:
                raise BadInput(f"{what}: a clock needs its frequency [Hz]")
            checks.put(self, "frequency", checks.number(self.frequency, f"{what}: frequency", low=0.0))
        elif self.joints:
            expected = len(self.joints)
        elif self.commands:
            expected = len(self.commands)
        if expected is not None and self.dim != expected:
            raise BadInput(f"{what}: {self.kind} has {expected} columns, not {self.dim}")

    @property
    def width(self) -> int:
        """Columns in the observation, history and all."""
        return self.dim * self.history


@dataclass(frozen=True)
class Observation:
    """The order of the numbers that go in."""

    terms: tuple[Term, ...] = ()
    major: str = "term"
    """ "term": each term with all its frames; "frame": neighbours with the same history go frame by frame."""
    order: str = "oldest_first"
    warmup: str = "repeat"
    """What the history holds after a reset: the first frame again, or zeros."""
    last_action: str = "raw"
    """What "last_action" shows: the network's output, clipped, or "processed" (also scaled and offset)."""

    def __post_init__(self) -> None:
        checks.put(self, "terms", checks.parts(self.terms, "observation.terms", Term))
        checks.one_of(self.major, "observation.major", ("term", "frame"))
        checks.one_of(self.order, "observation.order", ("oldest_first", "newest_first"))
        checks.one_of(self.warmup, "observation.warmup", ("repeat", "zeros"))
        checks.one_of(self.last_action, "observation.last_action", ("raw", "clipped", "processed"))
        checks.names([t.name for t in self.terms], "observation.terms")
        if self.width > MOST_NUMBERS:
            raise BadInput(f"observation: {self.width} numbers, but at most {MOST_NUMBERS} are taken; shorten the history")
        kept = max((t.history + t.lag for t in self.terms), default=0) * sum(t.dim for t in self.terms)
        if kept > MOST_KEPT:
            raise BadInput(f"observation: a history of {kept} numbers, but at most {MOST_KEPT} are kept; shorten it")

    @property
    def width(self) -> int:
        return sum(t.width for t in self.terms)


@dataclass(frozen=True)
class Reference:
    """An open-loop gait that the action is added to: what is added to each driven joint's target over one cycle.

    A robot is `time * frequency` cycles into it, by the time since its reset. Row i of r belongs to i / r of a cycle, between
    rows it is linear, and the last row leads to the first. While every command is zero nothing is added.
    """

    frequency: float
    """[Hz]"""
    table: tuple[tuple[float, ...], ...]
    """In the action's unit. Shape: (rows, driven joints)."""
    commands: tuple[str, ...] = ()
    """Those that are zero when the robot stands; all unless given."""
    wake: float | None = None
    """Base speed above which a robot that is asked to stand steps in place (see `Gait`); never unless given [m/s]."""

    def __post_init__(self) -> None:
        checks.put(self, "frequency", checks.number(self.frequency, "action.reference.frequency", low=0.0))
        if self.wake is not None:
            checks.put(self, "wake", checks.number(self.wake, "action.reference.wake", low=0.0))
        checks.put(self, "table", checks.rows(self.table, "action.reference.table", MOST_ROWS))
        checks.put(self, "commands", checks.names(self.commands, "action.reference.commands"))


@dataclass(frozen=True)
class Action:
    """What the numbers that come out mean: `offset + scale * clip(action)` for each driven joint, and a gait on top."""

    kind: str = "position"
    """ "position" [rad or m], "velocity" [rad/s or m/s] or "torque" [N m or N]."""
    joints: tuple[str, ...] = ()
    scale: Numbers | None = None
    offset: Numbers | None = None
    clip: tuple[Numbers, Numbers] | None = None
    """Lowest and highest, of the network's output."""
    filter: float | None = None
    """Share of a new target that is taken each period, where targets are smoothed; 1 takes all of it."""
    reference: Reference | None = None
    """What is added to the targets, where the action is a residual on a gait."""

    def __post_init__(self) -> None:
        checks.one_of(self.kind, "action.kind", ACTION_KINDS)
        checks.put(self, "joints", checks.names(self.joints, "action.joints"))
        for name in ("scale", "offset"):
            if (value := getattr(self, name)) is not None:
                checks.put(self, name, checks.columns(value, f"action.{name}", len(self.joints)))
        if self.clip is not None:
            checks.put(self, "clip", checks.bounds(self.clip, "action.clip", len(self.joints)))
        if self.filter is not None:
            checks.put(self, "filter", checks.number(self.filter, "action.filter", 0.0, 1.0))
        if self.reference is not None:
            checks.parts([self.reference], "action.reference", Reference)
            if (columns := len(self.reference.table[0])) != len(self.joints):
                raise BadInput(f"action.reference.table: {columns} columns for {len(self.joints)} driven joints")


@dataclass(frozen=True)
class Joints:
    """The robot's joints as the policy was trained with them; readings and targets follow this order."""

    names: tuple[str, ...]
    default_pos: tuple[float, ...] | None = None
    kp: tuple[float, ...] | None = None
    kd: tuple[float, ...] | None = None
    effort_limit: tuple[float | None, ...] | None = None
    velocity_limit: tuple[float | None, ...] | None = None
    armature: tuple[float, ...] | None = None
    limits: tuple[tuple[float, float] | None, ...] | None = None
    """Lowest and highest position of each joint, None for a joint without."""
    gain_unit: str = "Nm"
    """What the gains put out for each rad and rad/s: a torque ("Nm"), or the share of its supply ("duty")."""

    def __post_init__(self) -> None:
        checks.put(self, "names", checks.names(self.names, "joints.names"))
        if not self.names:
            raise BadInput("joints.names: a policy needs at least one joint")
        checks.one_of(self.gain_unit, "joints.gain_unit", GAIN_UNITS)
        for name in ("default_pos", "kp", "kd", "effort_limit", "velocity_limit", "armature", "limits"):
            if (value := getattr(self, name)) is None:
                continue
            what = f"joints.{name}"
            entries = checks.listed(value, what)
            if len(entries) != len(self.names):
                raise BadInput(f"{what}: {len(entries)} values for {len(self.names)} joints")
            low = -math.inf if name == "default_pos" else 0.0
            found: list[Any] = []
            for joint, entry in zip(self.names, entries, strict=True):
                if entry is None and name in ("effort_limit", "velocity_limit", "limits"):
                    found.append(None)
                elif name == "limits":
                    found.append(checks.bounds(entry, f"{what} of {joint}", 1))
                else:
                    found.append(checks.number(entry, f"{what} of {joint}", low))
            checks.put(self, name, tuple(found))


@dataclass(frozen=True)
class Timing:
    control_dt: float | None = None
    """The period of the policy [s]."""
    sim_dt: float | None = None
    decimation: int | None = None
    delay_range: tuple[float, float] | None = None
    """Delay from reading to command that the policy was trained with [s]."""

    def __post_init__(self) -> None:
        for name in ("control_dt", "sim_dt"):
            if (value := getattr(self, name)) is not None:
                checks.put(self, name, checks.number(value, f"timing.{name}", low=1e-6, high=10.0))
        if self.decimation is not None:
            checks.put(self, "decimation", checks.whole(self.decimation, "timing.decimation", 1, 1_000_000))
        if self.delay_range is not None:
            low, high = checks.bounds(self.delay_range, "timing.delay_range", 1)
            checks.put(self, "delay_range", (checks.number(low, "timing.delay_range", low=0.0), high))
        if self.control_dt and self.sim_dt and self.decimation:
            product = self.sim_dt * self.decimation
            if abs(product - self.control_dt) > 1e-6 * self.control_dt:
                raise BadInput(
                    f"timing: {self.decimation} steps of {self.sim_dt:g} s make {product:g} s, "
                    f"but control_dt is {self.control_dt:g} s"
                )


@dataclass(frozen=True)
class Source:
    """Where the policy comes from."""

    framework: str = ""
    version: str = ""
    run: str = ""
    sha256: str = ""
    """Of the file that was read, where it was another framework's."""

    def __post_init__(self) -> None:
        checks.texts(self, "source", "framework", "version", "run", "sha256")


@dataclass(frozen=True)
class RobotIdentity:
    """Which robot the policy is for."""

    name: str = ""
    model_sha256: str = ""
    mass: float | None = None
    """[kg]"""

    def __post_init__(self) -> None:
        checks.texts(self, "robot", "name", "model_sha256")
        if self.mass is not None:
            checks.put(self, "mass", checks.number(self.mass, "robot.mass", low=0.0))


@dataclass(frozen=True)
class Conventions:
    quaternion: str = "wxyz"
    """Order in which a term of kind "quat" is shown; readings are always w first."""
    imu_frame: str | None = None
    """The site or link that gyro and gravity are given in."""
    gravity: tuple[float, ...] = (0.0, 0.0, -1.0)
    """What the gravity term shows on an upright robot."""

    def __post_init__(self) -> None:
        checks.one_of(self.quaternion, "conventions.quaternion", ("wxyz", "xyzw"))
        if self.imu_frame is not None:
            checks.texts(self, "conventions", "imu_frame")
        checks.put(self, "gravity", checks.numbers(self.gravity, "conventions.gravity"))
        if self.gravity not in ((0.0, 0.0, -1.0), (0.0, 0.0, 1.0)):
            raise BadInput(f"conventions.gravity: (0, 0, -1) or (0, 0, 1) on an upright robot, not {self.gravity}")


@dataclass(frozen=True)
class Recurrent:
    """The network's memory: inputs and outputs of shape (layers, n, hidden), in pairs."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    reset: str = "zeros"

    def __post_init__(self) -> None:
        for name in ("inputs", "outputs"):
            checks.put(self, name, checks.names(getattr(self, name), f"recurrent.{name}"))
        checks.one_of(self.reset, "recurrent.reset", ("zeros",))
        if not self.inputs or len(self.inputs) != len(self.outputs):
            raise BadInput(f"recurrent: {len(self.inputs)} inputs and {len(self.outputs)} outputs do not make pairs")


@dataclass(frozen=True)
class Contract:
    """All that a runtime must know. What is not known is None and listed by `unknown`; nothing is guessed."""

    joints: Joints
    action: Action
    observation: Observation = field(default_factory=Observation)
    timing: Timing = field(default_factory=Timing)
    source: Source = field(default_factory=Source)
    robot: RobotIdentity = field(default_factory=RobotIdentity)
    conventions: Conventions = field(default_factory=Conventions)
    normalizer: str = "none"
    """ "baked" where the network scales its inputs itself by what it saw in training."""
    recurrent: Recurrent | None = None
    commands: Mapping[str, tuple[float, float] | None] = field(default_factory=dict)
    """The columns of the command in their order, and the range that each was trained with."""

    def __post_init__(self) -> None:
        checks.one_of(self.normalizer, "normalizer", ("baked", "none"))
        if not isinstance(self.commands, Mapping):
            raise BadInput("commands: a table of name and range was expected")
        checks.names(self.commands, "commands")
        ranges = {n: None if r is None else checks.bounds(r, f"commands {n!r}", 1) for n, r in self.commands.items()}
        checks.put(self, "commands", ranges)
        for joint in self.action.joints:
            if joint not in self.joints.names:
                raise unknown("joint in action.joints", joint, self.joints.names)
        for command in self.action.reference.commands if self.action.reference else ():
            if command not in self.commands:
                raise unknown("command in action.reference", command, self.commands)
        wakes = self.action.reference is not None and self.action.reference.wake is not None
        if wakes and not any(t.kind == "velocity" for t in self.observation.terms):
            raise BadInput("action.reference.wake: the gait wakes by a velocity that is no term of the observation")
        for term in self.observation.terms:
            self._check(term)

    def _check(self, term: Term) -> None:
        what = f"term {term.name!r}"
        if term.provenance == "privileged":
            raise BadInput(
                f"{what} is privileged, and a robot cannot measure it: give it to the critic, "
                "or tag it estimated if a filter on the robot provides it"
            )
        known = {"last_action": self.action.joints}.get(term.kind, self.joints.names)
        for joint in term.joints:
            if joint not in known:
                raise unknown(f"joint in {what}", joint, known)
        for command in term.commands:
            if command not in self.commands:
                raise unknown(f"command in {what}", command, self.commands)
        if term.kind == "command" and not term.commands and term.dim != len(self.commands):
            raise BadInput(f"{what}: {term.dim} columns, but the contract names {len(self.commands)} commands")
        if term.kind in OF_JOINTS and not term.joints and term.dim != len(known):
            raise BadInput(f"{what}: {term.dim} columns for {len(known)} joints; name its joints")

    @property
    def width(self) -> int:
        """Numbers that go into the network."""
        return self.observation.width

    @property
    def unknown(self) -> tuple[str, ...]:
        """Names of what the contract does not say."""
        found = [
            f"{part}.{f.name}"
            for part in ("timing", "joints", "action", "robot", "conventions")
            for f in fields(getattr(self, part))
            if getattr(getattr(self, part), f.name) is None and f"{part}.{f.name}" not in OPTIONAL
        ]
        found += [f"commands.{name}" for name, range in self.commands.items() if range is None]
        return tuple(found if self.observation.terms else ["observation.terms", *found])

    def columns(self, joints: Sequence[str]) -> NDArray[np.int64]:
        """Where each joint of the contract is among a robot's joints; a robot without one of them is another robot."""
        missing = [j for j in self.joints.names if j not in joints]
        if missing:
            raise BadInput(
                f"the policy is for a robot with joints {', '.join(self.joints.names[:6])} ...; "
                f"this one has no {', '.join(missing[:6])}{' ...' if len(missing) > 6 else ''} "
                f"(it has {', '.join(list(joints)[:6])} ...)"
            )
        return np.array([list(joints).index(j) for j in self.joints.names])

    def json(self) -> str:
        """The contract as text that `parse_contract` reads back bit by bit."""
        return readable(json.loads(json.dumps({"version": VERSION, **asdict(self)})))


def parse_contract(text: str | bytes | Mapping[str, Any]) -> Contract:
    """The contract that a text or a parsed table holds; text from elsewhere is not trusted."""
    table = text
    if isinstance(text, str | bytes):
        try:
            table = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise BadInput(f"the contract is not JSON ({str(error)[:80]})") from None
    table = dict(_table(table, "the contract"))
    if table.pop("version", None) != VERSION:
        raise BadInput(f"the contract is not of version {VERSION}, which this gapless reads; it was written by another version")
    parts = {
        "joints": Joints,
        "action": Action,
        "timing": Timing,
        "source": Source,
        "robot": RobotIdentity,
        "conventions": Conventions,
    }
    action = table.get("action")
    if isinstance(action, Mapping) and action.get("reference") is not None:
        table["action"] = {**action, "reference": _built(Reference, action["reference"], "action.reference")}
    for name, kind in parts.items():
        table[name] = _built(kind, table.get(name), name)
    if table.get("recurrent") is not None:
        table["recurrent"] = _built(Recurrent, table["recurrent"], "recurrent")
    observation = dict(_table(table.get("observation"), "observation"))
    terms = checks.listed(observation.get("terms"), "observation.terms")
    observation["terms"] = [_built(Term, t, f"observation.terms[{i}]") for i, t in enumerate(terms[: checks.MOST_NAMES + 1])]
    table["observation"] = _built(Observation, observation, "observation")
    built: Contract = _built(Contract, table, "the contract")
    return built


def readable(value: Any, indent: str = "") -> str:
    """JSON with a line for each entry of a table, and lists of numbers, names or pairs on one line."""
    inner = indent + "  "
    if isinstance(value, dict) and value:
        lines = [f"{inner}{json.dumps(k)}: {readable(v, inner)}" for k, v in value.items()]
        return "{\n" + ",\n".join(lines) + f"\n{indent}}}"
    if isinstance(value, list) and any(isinstance(v, dict) or (isinstance(v, list) and len(v) > 2) for v in value):
        return "[\n" + ",\n".join(inner + readable(v, inner) for v in value) + f"\n{indent}]"
    return json.dumps(value)


def columns_of(names: tuple[str, ...], among: tuple[str, ...]) -> slice | NDArray[np.int64]:
    """Where names are among others; a slice where that is all of them in order, which costs nothing."""
    if not names or names == among:
        return slice(None)
    return np.array([among.index(n) for n in names])


def _table(value: Any, what: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise BadInput(f"{what}: " + ("is missing in the contract" if value is None else "a table was expected"))
    return value


def _built(kind: Any, value: Any, what: str) -> Any:
    known = [f.name for f in fields(kind)]
    table = _table(value, what)
    for name in table:
        if name not in known:
            raise unknown(f"entry of {what}", str(name), known)
    try:
        return kind(**table)
    except TypeError as error:  # an entry without which there is none of its kind
        raise BadInput(f"{what}: {error.args[0].split('() ')[-1]}") from None
