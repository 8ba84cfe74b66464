"""Recipe: the mechanisms of the twin that a belief is about, kept in the belief's file so that anybody can make it again."""

import dataclasses
import math
import os
import types
import typing
from collections.abc import Mapping, Sequence
from typing import Any

from gapless.errors import BadInput, unknown
from gapless.robots import RobotModel, load_robot
from gapless.twin import belief as beliefs, callback
from gapless.twin.mechanism import Mechanism
from gapless.twin.mechanisms import MECHANISMS, defaults
from gapless.twin.mechanisms.gains import Gains
from gapless.twin.twin import Twin

POSITIVE = ("no_load_speed", "kt", "resistance", "voltage", "stiffness", "longest", "unit")
"""Settings of mechanisms that cannot be zero."""
SIGNED = ("ambient", "step_at", "point")
"""Settings that can be negative, as others cannot."""
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
        centre = {str(j): finite(str(j), a) for j, a in _few(given.get("centre", {}), dict).items()}
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
    kind = fields.pop("kind")
    made: Mechanism = mechanism_from(str(kind), MECHANISMS[kind], fields)
    return made


def mechanism_from(where: str, kind: Any, settings: Any) -> Any:
    """A mechanism, or a part of one, from a table; the annotations of its class say what each setting is.

    Args:
        where: what the table is called in messages.
        kind: the class.
        settings: from a file that may have anything in it.
    """
    if not isinstance(settings, Mapping):
        raise BadInput(f"{where} must be a table of settings, not {str(settings)[:40]!r}")
    hints = {field.name: typing.get_type_hints(kind)[field.name] for field in dataclasses.fields(kind)}
    for key in settings:
        if key not in hints:
            raise BadInput(f"{where}: {unknown('setting', key, hints)}")
    try:
        return kind(**{key: _setting(f"{where}.{key}", key, hints[key], value) for key, value in settings.items()})
    except TypeError as error:
        raise BadInput(f"{where}: {error}") from None


def _setting(where: str, key: str, hint: Any, value: Any) -> Any:
    """A setting of a type; `where` is what it is called in messages."""
    origin, of = typing.get_origin(hint), typing.get_args(hint)
    if origin is types.UnionType:
        return None if value is None else _setting(where, key, of[0], value)
    if origin is tuple:
        return tuple(_setting(where, key, h, v) for h, v in zip(of, _few(value, list), strict=True))
    if origin is not None:
        if not isinstance(value, Mapping):
            raise BadInput(f"{where} must be a table by joint pattern, not {str(value)[:40]!r}")
        return {str(k): _setting(f"{where}.{k}", key, of[1], v) for k, v in _few(value, dict).items()}
    if dataclasses.is_dataclass(hint):
        return value if isinstance(value, hint) else mechanism_from(where, hint, value)  # type: ignore[arg-type]
    if hint is float:
        number = finite(where, value)
        if key not in SIGNED and (number < 0 or (number == 0 and key in POSITIVE)):
            raise BadInput(f"{where} must be {'positive' if key in POSITIVE else 'at least 0'}, not {number:g}")
        return number
    if not isinstance(value, hint):
        raise BadInput(f"{where} must be {'true or false' if hint is bool else 'a string'}, not {str(value)[:40]!r}")
    return value


def finite(where: str, value: Any) -> float:
    """A number from a file, finite."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise BadInput(f"{where} must be a number, not {str(value)[:40]!r}")
    return float(value)


def _few(values: Any, kind: type[list[Any]] | type[dict[str, Any]]) -> Any:
    if not isinstance(values, list | dict) or not isinstance(values, kind) or len(values) > MOST:
        raise ValueError(f"a short {kind.__name__} was expected, not {str(values)[:40]}")
    return values
