"""Recipe: the mechanisms of the twin that a belief is about, kept in the belief's file so that anybody can make it again."""

import dataclasses
import math
import os
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gapless import checks
from gapless.errors import BadInput
from gapless.robots import RobotModel, load_robot
from gapless.twin import belief as beliefs, callback
from gapless.twin.mechanism import Mechanism
from gapless.twin.mechanisms import MECHANISMS, defaults
from gapless.twin.mechanisms.gains import Gains
from gapless.twin.mechanisms.residual import Residual
from gapless.twin.twin import Twin

POSITIVE = ("no_load_speed", "kt", "resistance", "voltage", "stiffness", "longest", "unit")
"""Settings of mechanisms that cannot be zero."""
SIGNED = ("ambient", "step_at", "point", "centre", "low", "high", "members", "scale", "inward", "across", "outward")
"""Settings that can be negative, as others cannot."""
FINEST = 1e-5
"""Time step that a recipe may ask for at least [s]."""
MOST = 1000
"""Mechanisms, joints or entries that a recipe may list."""


def recipe(twin: Twin) -> dict[str, Any]:
    """What a twin has besides the usual mechanisms, as JSON has it."""
    usual = defaults()
    special = [{"kind": type(m).__name__, **dataclasses.asdict(m)} for m in twin.mechanisms if m not in usual]  # type: ignore[call-overload]
    table = {"joints": list(twin.joints), "mechanisms": special, "centre": callback.centres(twin.spec)}
    return table | {"timestep": twin.model.opt.timestep}


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
        made = [_mechanism(m) for m in _few(given.get("mechanisms", []), "mechanisms", checks.listed)]
        centre = {str(j): checks.number(a, str(j)) for j, a in _few(given.get("centre", {}), "centre", checks.mapping).items()}
        joints = _few(given.get("joints", []), "joints", checks.listed)
        own = robot.model.opt.timestep
        step = min(own, checks.number(given.get("timestep", own), "timestep", FINEST))  # numbers hold at no coarser one
        step = next((net.timestep for m in made if isinstance(m, Residual) for net in m.nets), step)  # networks at theirs only
        twin = Twin.load(robot, add=_merged(made, add), timestep=step, in_air=in_air)
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
    hints = typing.get_type_hints(kind)
    known = {f.name: hints[f.name] for f in dataclasses.fields(kind)}
    table = checks.mapping(settings, where)
    ready = {k: _setting(f"{where}.{k}", k, known[k], v) if k in known else v for k, v in table.items()}
    return checks.part_of(ready, where, kind)


def _setting(where: str, key: str, hint: Any, value: Any) -> Any:
    """A setting of a type; `where` is what it is called in messages."""
    origin, of = typing.get_origin(hint), typing.get_args(hint)
    if origin is types.UnionType:
        return None if value is None else _setting(where, key, of[0], value)
    if origin is tuple and of[-1] is ...:
        return tuple(_setting(where, key, of[0], v) for v in _few(value, where, checks.listed))
    if origin is tuple:
        return tuple(_setting(where, key, h, v) for h, v in zip(of, checks.listed(value, where), strict=True))
    if origin is not None:
        return {str(k): _setting(f"{where}.{k}", key, of[1], v) for k, v in checks.mapping(value, where).items()}
    if dataclasses.is_dataclass(hint):
        return mechanism_from(where, hint, value)
    if hint is float:
        number = checks.number(value, where, -math.inf if key in SIGNED else 0.0)
        if number == 0 and key in POSITIVE:
            raise BadInput(f"{where}: a positive number was expected, not 0")
        return number
    return checks.flag(value, where) if hint is bool else checks.text(value, where)


def _few(values: Any, what: str, check: Callable[[Any, str], Any]) -> Any:
    """A list or a table that is not longer than any robot needs."""
    if len(check(values, what)) > MOST:
        raise BadInput(f"{what}: {len(values)} entries, but at most {MOST} are allowed")
    return values
