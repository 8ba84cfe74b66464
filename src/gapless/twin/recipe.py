"""Recipe: the mechanisms of the twin that a belief is about, kept in the belief's file so that anybody can make it again."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gapless import robots
from gapless.errors import BadInput
from gapless.twin import belief as beliefs
from gapless.twin import callback, mechanisms
from gapless.twin.mechanism import Mechanism
from gapless.twin.twin import Twin, defaults

MOST = 1000
"""Mechanisms or joints."""
KINDS: dict[str, Any] = {name: getattr(mechanisms, name) for name in mechanisms.__all__ if name != "DC"}


def recipe(twin: Twin) -> dict[str, Any]:
    """What a twin has besides the usual mechanisms, as JSON has it."""
    usual = defaults()
    special = [{"kind": type(m).__name__, **dataclasses.asdict(m)} for m in twin.mechanisms if m not in usual]  # type: ignore[call-overload]
    return {"joints": list(twin.joints), "mechanisms": special, "centre": callback.centres(twin.spec)}


def load(
    robot: str | os.PathLike[str] | robots.RobotModel,
    belief: str | os.PathLike[str],
    add: Sequence[Mechanism] = (),
    in_air: bool = False,
) -> Twin:
    """The twin that a belief's file is about, made from a robot's model.

    Args:
        robot: as `Twin.load` takes it.
        belief: the file, as `gapless fit` writes it; one without a recipe is about a usual twin.
        add: mechanisms that take the place of the recipe's of the same kind.
        in_air: hold the floating base fixed.
    """
    made, centre, joints = _read(belief)
    instead = {type(m) for m in add}
    twin = Twin.load(robot, add=[*add, *(m for m in made if type(m) not in instead)], in_air=in_air)
    if joints is not None and sorted(joints) != sorted(twin.joints):
        raise BadInput(f"{belief}: is about a robot with the joints {', '.join(joints[:4])}…, not about {twin.name}")
    return twin.plus(centre={joint: angle for joint, angle in centre.items() if joint in twin.joints}) if centre else twin


def _read(path: str | os.PathLike[str]) -> tuple[list[Mechanism], dict[str, float], list[str] | None]:
    """The recipe in a belief's file, which may come from anywhere."""
    given = beliefs.table(path).get("twin", {})
    try:
        made = [_mechanism(m) for m in _list(given.get("mechanisms", []))]
        joints = [str(j) for j in _list(given["joints"])] if "joints" in given else None
        return made, {str(j): _number(a) for j, a in dict(given.get("centre", {})).items()}, joints
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise BadInput(f"{path}: its twin cannot be made ({error})") from None


def _mechanism(table: Mapping[str, Any]) -> Mechanism:
    fields = dict(table)
    kind = KINDS[fields.pop("kind")]
    if kind is mechanisms.Motor and fields.get("dc") is not None:
        fields["dc"] = mechanisms.DC(**{k: _plain(v) for k, v in dict(fields["dc"]).items()})
    made: Mechanism = kind(**{k: v if isinstance(v, mechanisms.DC) else _plain(v) for k, v in fields.items()})
    return made


def _plain(value: Any) -> Any:
    """A number, a word, or a few of them: what fields of mechanisms are."""
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, Mapping):
        return {str(k): _number(v) for k, v in value.items()}
    return tuple(map(_number, value)) if isinstance(value, list) else _number(value)


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{value!r} is not a number")
    return float(value)


def _list(values: Iterable[Any]) -> list[Any]:
    if not isinstance(values, list) or len(values) > MOST:
        raise ValueError(f"a short list was expected, not {str(values)[:40]}")
    return values
