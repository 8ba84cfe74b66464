"""Draft: a contract while it is read, as a plain table, with the source of every field."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from gapless.checks import part_of
from gapless.errors import BadInput
from gapless.policy.contract import Contract

FILE, INFERRED, USER, FRAMEWORK = "file", "inferred", "user", "framework default"
OF_JOINTS = ("joints.default_pos", "joints.kp", "joints.kd", "joints.effort_limit", "joints.velocity_limit", "joints.armature")
OF_ACTION = ("action.scale", "action.offset")


@dataclass(frozen=True)
class Origin:
    """Where a field of a contract comes from."""

    kind: str
    """ "file", "inferred", "user" or "framework default"."""
    where: str
    """File and line, or why it is believed."""

    def __str__(self) -> str:
        return self.where if self.kind == FILE else f"{self.kind}: {self.where}"


@dataclass
class Draft:
    """What a format says, by dotted name of the contract: "joints.kp", "observation.terms"."""

    framework: str
    values: dict[str, Any] = field(default_factory=dict)
    origins: dict[str, Origin] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    """What is odd about the files, in sentences."""
    width: int | None = None
    """Numbers that the network takes, and below those that it gives."""
    outputs: int | None = None

    def put(self, name: str, value: Any, where: str, kind: str = FILE) -> None:
        """Take down a field; None says nothing."""
        if value is not None:
            self.values[name] = value
            self.origins[name] = Origin(kind, where)

    def suppose(self, name: str, value: Any, why: str, kind: str = FRAMEWORK) -> None:
        """Take down a field that no file states, unless one does."""
        if name not in self.values:
            self.put(name, value, why, kind)

    def get(self, name: str) -> Any:
        return self.values.get(name)

    def missing(self) -> tuple[str, ...]:
        """What a contract cannot do without, and is not known."""
        needed = ["joints.names", "observation.terms"]
        return tuple(name for name in needed if not self.values.get(name))

    def contract(self) -> Contract:
        """The contract, once nothing is missing; what is unknown in it is None."""
        names = [str(n) for n in self.values["joints.names"]]
        driven = [str(n) for n in self.values.get("action.joints") or names]
        values = dict(self.values)
        for key in (*OF_JOINTS, *OF_ACTION):
            if key in values:
                values[key] = by_joint(values[key], driven if key in OF_ACTION else names, key)
        if values.get("action.offset") is None and values.get("action.kind", "position") != "position":
            values["action.offset"] = 0.0
        table: dict[str, Any] = {}
        for key, value in values.items():
            *parts, last = key.split(".")
            inner = table
            for part in parts:
                inner = inner.setdefault(part, {})
                if not isinstance(inner, dict):
                    raise BadInput(f"{key}: {part} is not a table")
            inner[last] = value
        table.setdefault("action", {}).setdefault("joints", driven)
        table.setdefault("source", {}).setdefault("framework", self.framework)
        return part_of(table, "the contract", Contract)


def by_joint(value: Any, joints: Sequence[str], what: str) -> Any:
    """One value a joint: from a list as it is, from one number for all, or from a table of patterns, later ones first."""
    if isinstance(value, Mapping):
        out: list[Any] = [None] * len(joints)
        for pattern, number in value.items():
            hits = [i for i, j in enumerate(joints) if fnmatchcase(j, str(pattern))]
            if not hits:
                raise BadInput(f"{what}: no joint matches {pattern!r}; the joints are {', '.join(joints[:8])} ...")
            for i in hits:
                out[i] = number
        if None in out:
            raise BadInput(f'{what}: nothing is said for {joints[out.index(None)]}; a pattern "*" first serves the rest')
        return out
    if isinstance(value, int | float) and not isinstance(value, bool):
        return [value] * len(joints)
    return value


def matching(patterns: Any, joints: Sequence[str]) -> list[str]:
    """Joints that a list of names or patterns stands for, each pattern in the robot's order."""
    out: list[str] = []
    for pattern in patterns if isinstance(patterns, list | tuple) else [patterns]:
        hits = [j for j in joints if fnmatchcase(j, str(pattern))] if joints else []
        out += hits if hits else [str(pattern)]
    return out
