"""Recipe: the mechanisms of the twin that a belief is about, kept in the belief's file so that anybody can make it again."""

from __future__ import annotations

import dataclasses
import math
import os
import types
import typing
from collections.abc import Mapping, Sequence
from typing import Any

from gapless.errors import BadInput
from gapless.robots import RobotModel, load_robot
from gapless.twin import belief as beliefs
from gapless.twin import callback
from gapless.twin.mechanism import Mechanism
from gapless.twin.mechanisms import MECHANISMS, defaults
from gapless.twin.mechanisms.gains import Gains
from gapless.twin.twin import Twin

MOST = 1000
"""Mechanisms, joints or entries that a recipe may list."""


def recipe(twin: Twin) -> dict[str, Any]:
    """What a twin has besides the usual mechanisms, as JSON has it."""
    usual = defaults()
    special = [{"kind": type(m).__name__, **dataclasses.asdict(m)} for m in twin.mechanisms if m not in usual]  # type: ignore[call-overload]
    return {"joints": list(twin.joints), "mechanisms": special, "centre": callback.centres(twin.spec)}


def written(belief: str | os.PathLike[str]) -> bool:
    """Whether a belief's file has a recipe; one without is about a usual twin."""
    return "twin" in beliefs.table(belief)


def load(
    robot: str | os.PathLike[str] | RobotModel,
    belief: str | os.PathLike[str],
    add: Sequence[Mechanism] = (),
    in_air: bool = False,
) -> Twin:
    """The twin that a belief's file is about, made from the robot's model (not from a twin.xml, which has it all already).

    Args:
        robot: as `Twin.load` takes it.
        belief: the file, as `gapless fit` writes it; it may come from anywhere.
        add: mechanisms that take the place of the recipe's of the same kind; of gains, only those that are given.
        in_air: hold the floating base fixed.
    """
    robot = robot if isinstance(robot, RobotModel) else load_robot(robot)
    given = beliefs.table(belief).get("twin", {})
    try:
        made = [_mechanism(m) for m in _few(given.get("mechanisms", []), list)]
        centre = {str(j): _value(float, a) for j, a in _few(given.get("centre", {}), dict).items()}
        joints = _few(given.get("joints", []), list)
        twin = Twin.load(robot, add=_merged(made, add), in_air=in_air)
        if "joints" in given and sorted(map(str, joints)) != sorted(twin.joints):
            named = ", ".join(map(str, joints[:3]))
            raise BadInput(f"it is about a robot with the joints {named}…, and {robot.name} has others")
        return twin.plus(centre={j: angle for j, angle in centre.items() if j in twin.joints}) if centre else twin
    except (BadInput, TypeError, ValueError, KeyError, AttributeError, ArithmeticError) as error:
        raise BadInput(f"{belief}: its twin cannot be made of {robot.source} ({error})") from None


def _merged(made: list[Mechanism], add: Sequence[Mechanism]) -> list[Mechanism]:
    """The recipe's mechanisms, with those that are given instead; a gain that is not given stays the recipe's."""
    known = next((m for m in made if isinstance(m, Gains)), Gains())
    chosen = [dataclasses.replace(known, kp=m.kp or known.kp, kd=m.kd or known.kd) if isinstance(m, Gains) else m for m in add]
    return [*chosen, *(m for m in made if type(m) not in {type(m) for m in add})]


def _mechanism(table: Mapping[str, Any]) -> Mechanism:
    fields = dict(table)
    made: Mechanism = _made(MECHANISMS[fields.pop("kind")], fields)
    return made


def _made(kind: Any, fields: Mapping[str, Any]) -> Any:
    """A dataclass, each field of the type that it says."""
    hints = typing.get_type_hints(kind)
    return kind(**{name: _value(hints[name], value) for name, value in fields.items()})


def _value(hint: Any, value: Any) -> Any:
    """A value of a type; what JSON has of it may be anything."""
    origin, of = typing.get_origin(hint), typing.get_args(hint)
    if origin is types.UnionType:
        return None if value is None else _value(of[0], value)
    if origin is tuple:
        return tuple(_value(h, v) for h, v in zip(of, value, strict=True))
    if origin is not None:  # a table by joint or bus
        return {str(k): _value(of[1], v) for k, v in _few(value, dict).items()}
    if dataclasses.is_dataclass(hint):
        return _made(hint, _few(value, dict))
    if hint is float and isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return float(value)
    if hint is float or not isinstance(value, hint):
        raise ValueError(f"{str(value)[:40]!r} where a {hint.__name__} belongs")
    return value


def _few(values: Any, kind: type[list[Any]] | type[dict[str, Any]]) -> Any:
    if not isinstance(values, list | dict) or not isinstance(values, kind) or len(values) > MOST:
        raise ValueError(f"a short {kind.__name__} was expected, not {str(values)[:40]}")
    return values
