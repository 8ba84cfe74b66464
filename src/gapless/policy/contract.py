"""The contract: all that a runtime must know to run a policy, by name and in SI units, as frozen data."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from gapless.arrays import Ints
from gapless.checks import Checked, bounds, checked, mapping, names, one_of, part_of
from gapless.errors import BadInput, must_exist
from gapless.files import refusing
from gapless.policy.parts import (
    TEACHERS,
    Action,
    Context,
    Conventions,
    Joints,
    Observation,
    Recurrent,
    RobotIdentity,
    Source,
    Term,
    Timing,
)
from gapless.report import few

VERSION = 1
"""Of the text that a contract is written as."""
OF_JOINTS = ("q", "dq", "last_action")
OPTIONAL = ("action.clip", "action.filter", "action.reference")
"""What a policy may well be without: None there says that there is none."""


def _ranges(value: Any, what: str) -> dict[str, tuple[float, float] | None]:
    names(mapping(value, what), what)
    return {n: None if r is None else bounds(r, f"{what} {n!r}") for n, r in value.items()}  # type: ignore[misc]


@dataclass(frozen=True)
class Contract(Checked):
    """All that a runtime must know. What is not known is None and listed by `unknown`; nothing is guessed."""

    joints: Joints = checked(part_of, kind=Joints)
    action: Action = checked(part_of, kind=Action)
    observation: Observation = checked(part_of, factory=Observation, kind=Observation)
    timing: Timing = checked(part_of, factory=Timing, kind=Timing)
    source: Source = checked(part_of, factory=Source, kind=Source)
    robot: RobotIdentity = checked(part_of, factory=RobotIdentity, kind=RobotIdentity)
    conventions: Conventions = checked(part_of, factory=Conventions, kind=Conventions)
    normalizer: str = checked(one_of, "none", valid=("baked", "none"))
    """ "baked" where the network scales its inputs itself by what it saw in training."""
    recurrent: Recurrent | None = checked(part_of, None, kind=Recurrent)
    context: Context | None = checked(part_of, None, kind=Context)
    commands: Mapping[str, tuple[float, float] | None] = checked(_ranges, factory=dict)
    """The columns of the command in their order, and the range that each was trained with."""

    def __post_init__(self) -> None:
        super().__post_init__()
        reference = self.action.reference
        must_exist("joint in action.joints", self.action.joints, self.joints.names)
        must_exist("command in action.reference", reference.commands if reference else (), self.commands)
        if reference and reference.wake is not None and not any(t.kind == "velocity" for t in self.observation.terms):
            raise BadInput("action.reference.wake: the gait wakes by a velocity that is no term of the observation")
        for term in self.observation.terms:
            self._check(term)

    def _check(self, term: Term) -> None:
        what = f"term {term.name!r}"
        if term.kind == "context" and (self.context is None or term.dim != len(self.context.names)):
            size = "none" if self.context is None else len(self.context.names)
            raise BadInput(f"{what}: {term.dim} columns, but the contract's context has {size}")
        if term.provenance == "privileged" and not (term.kind == "context" and self.teaches):
            raise BadInput(
                f"{what} is privileged, and a robot cannot measure it: give it to the critic, "
                "or tag it estimated if a filter on the robot provides it"
            )
        known = {"last_action": self.action.joints}.get(term.kind, self.joints.names)
        must_exist(f"joint in {what}", term.joints, known)
        must_exist(f"command in {what}", term.commands, self.commands)
        if term.kind == "command" and not term.commands and term.dim != len(self.commands):
            raise BadInput(f"{what}: {term.dim} columns, but the contract names {len(self.commands)} commands")
        if term.kind in OF_JOINTS and not term.joints and term.dim != len(known):
            raise BadInput(f"{what}: {term.dim} columns for {len(known)} joints; name its joints")

    @property
    def teaches(self) -> bool:
        """Whether the policy is a teacher: it is told what only a simulator knows."""
        return self.context is not None and self.context.provider in TEACHERS

    def must_run_on_a_robot(self) -> None:
        """Raise for a teacher."""
        if self.teaches:
            raise BadInput(
                "the policy is a teacher, which is told its robot's true parameters, and no robot knows them: "
                "run its student (gapless train ... --adapt student --from TEACHER), or search (gapless adapt)"
            )

    @property
    def width(self) -> int:
        """Numbers that go into the network."""
        return self.observation.width

    @property
    def unknown(self) -> tuple[str, ...]:
        """Names of what the contract does not say."""
        missing = [
            f"{part}.{f.name}"
            for part in ("timing", "joints", "action", "robot", "conventions")
            for f in fields(getattr(self, part))
            if getattr(getattr(self, part), f.name) is None and f"{part}.{f.name}" not in OPTIONAL
        ]
        missing += [f"commands.{name}" for name, range in self.commands.items() if range is None]
        return tuple(missing if self.observation.terms else ["observation.terms", *missing])

    def columns(self, joints: Sequence[str]) -> Ints:
        """Where each joint of the contract is among a robot's joints; a robot without one of them is another robot."""
        missing = [j for j in self.joints.names if j not in joints]
        if missing:
            raise BadInput(
                f"the policy is for a robot with joints {few(self.joints.names)}; this one has no {few(missing)} (it has "
                f"{few(joints) if joints else 'no driven joints'})"
            )
        return np.array([list(joints).index(j) for j in self.joints.names])

    def json(self) -> str:
        """The contract as text that `parse_contract` reads back bit by bit."""
        return readable(json.loads(json.dumps({"version": VERSION, **asdict(self)})))


def parse_contract(text: str | bytes | Mapping[str, Any]) -> Contract:
    """The contract that a text or a parsed table holds; text from elsewhere is not trusted."""
    table: Any = text
    if isinstance(text, str | bytes):
        with refusing("the contract is not JSON", ValueError, RecursionError):
            table = json.loads(text)
    table = dict(mapping(table, "the contract"))
    if table.pop("version", None) != VERSION:
        raise BadInput(f"the contract is not of version {VERSION}, which this gapless reads; it was written by another version")
    return part_of(table, "the contract", Contract)


def readable(value: Any, indent: str = "") -> str:
    """JSON with a line for each entry of a table, and lists of numbers, names or pairs on one line."""
    inner = indent + "  "
    if isinstance(value, dict) and value:
        lines = [f"{inner}{json.dumps(k)}: {readable(v, inner)}" for k, v in value.items()]
        return "{\n" + ",\n".join(lines) + f"\n{indent}}}"
    if isinstance(value, list) and any(isinstance(v, dict) or (isinstance(v, list) and len(v) > 2) for v in value):
        return "[\n" + ",\n".join(inner + readable(v, inner) for v in value) + f"\n{indent}]"
    return json.dumps(value)


def columns_of(names: tuple[str, ...], among: tuple[str, ...]) -> slice | Ints:
    """Where names are among others; a slice where that is all of them in order, which costs nothing."""
    if not names or names == among:
        return slice(None)
    return np.array([among.index(n) for n in names])
