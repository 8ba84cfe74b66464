"""Checks of values that come from files: each returns the value in its plain form, or says in one sentence what is wrong."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, field, fields
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np

from gapless.errors import BadInput, must_exist

Numbers = float | tuple[float, ...]
"""One number for all columns, or one a column."""
LARGEST = 1e30
"""Nothing on a robot is as large, and float32 holds it."""
MOST_NAMES = 1_000
"""Joints, terms or commands; what a hostile file may claim is compared name by name."""


def checked(check: Callable[..., Any], default: Any = MISSING, factory: Any = MISSING, **limits: Any) -> Any:
    """A field of a dataclass that `Checked` puts through `check(value, what, **limits)`."""
    return field(default=default, default_factory=factory, metadata={"check": check, "limits": limits})


class Checked:
    """A frozen dataclass that puts its `checked` fields into their plain form as it is made; a default of None may stay.

    where: what they belong to, as messages say it before a field's name, with fields in braces: "timing.", "term {name!r}: ".
    """

    _where: ClassVar[str]

    def __init_subclass__(cls, where: str = "") -> None:
        cls._where = where

    def __post_init__(self) -> None:
        where = self._where.format_map(vars(self))
        for f in fields(self):  # type: ignore[arg-type]
            value = getattr(self, f.name)
            if "check" in f.metadata and not (value is None and f.default is None):
                put(self, f.name, f.metadata["check"](value, where + f.name, **f.metadata["limits"]))


def put(part: Any, name: str, value: Any) -> None:
    """Set a field of a frozen dataclass under construction."""
    object.__setattr__(part, name, value)


def part_of(value: Any, what: str, kind: Any) -> Any:
    """A dataclass: itself, or made from a table of its fields; entries that are unknown or missing are named."""
    if isinstance(value, kind):
        return value
    table = mapping(value, what)
    must_exist(f"entry of {what}", map(str, table), [f.name for f in fields(kind)])
    for f in fields(kind):
        if f.name not in table and f.default is MISSING and f.default_factory is MISSING:
            raise BadInput(f"{what}: {f.name} is missing")
    return kind(**table)


def parts_of(value: Any, what: str, kind: Any) -> tuple[Any, ...]:
    """A list of dataclasses, each as `part_of` takes it."""
    if len(entries := listed(value, what)) > MOST_NAMES:
        raise BadInput(f"{what}: {len(entries)} entries, but at most {MOST_NAMES} are allowed")
    return tuple(part_of(entry, f"{what}[{i}]", kind) for i, entry in enumerate(entries))


def number(value: Any, what: str, low: float = -math.inf, high: float = math.inf) -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not -LARGEST <= value <= LARGEST:  # type: ignore[operator]
        raise BadInput(f"{what}: a finite number was expected, not {str(value)[:40]}")
    if not low <= float(value) <= high:
        raise BadInput(f"{what}: {float(value):g} is not from {low:g} to {high:g}")
    return float(value)


def whole(value: Any, what: str, low: int, high: int) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral) or not low <= int(value) <= high:
        raise BadInput(f"{what}: a whole number from {low} to {high} was expected, not {str(value)[:40]}")
    return int(value)


def flag(value: Any, what: str) -> bool:
    if not isinstance(value, bool):
        raise BadInput(f"{what}: true or false was expected, not {str(value)[:40]}")
    return value


def text(value: Any, what: str) -> str:
    if not isinstance(value, str) or len(value) > 2_000:
        raise BadInput(f"{what}: a text was expected, not {str(value)[:40]}")
    return value


def one_of(value: Any, what: str, valid: Sequence[str]) -> str:
    if not isinstance(value, str) or value not in valid:
        raise BadInput(f"{what}: {str(value)[:40]!r} is not one of {', '.join(valid)}")
    return value


def mapping(value: Any, what: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise BadInput(f"{what}: a table was expected, not {str(value)[:40]}")
    return value


def listed(value: Any, what: str) -> Sequence[Any]:
    value = value.tolist() if isinstance(value, np.ndarray) else value
    if not isinstance(value, list | tuple):
        raise BadInput(f"{what}: a list was expected, not {str(value)[:40]}")
    return value


def texts(value: Any, what: str) -> tuple[str, ...]:
    return tuple(text(v, what) for v in listed(value, what))


def numbers(value: Any, what: str) -> tuple[float, ...]:
    return tuple(number(v, what) for v in listed(value, what))


def names(value: Any, what: str) -> tuple[str, ...]:
    """Names that are not empty and all different."""
    found = tuple(value) if isinstance(value, Mapping) else tuple(listed(value, what))
    if len(found) > MOST_NAMES:
        raise BadInput(f"{what}: {len(found)} names, but at most {MOST_NAMES} are allowed")
    for name in found:
        if not isinstance(name, str) or not name or len(name) > 200:
            raise BadInput(f"{what}: a name was expected, not {str(name)[:40]!r}")
    if len(set(found)) < len(found):
        raise BadInput(f"{what}: {next(n for n in found if found.count(n) > 1)!r} occurs twice")
    return found


def rows(value: Any, what: str, most: int) -> tuple[tuple[float, ...], ...]:
    """A table of numbers: at least one row and at most `most`, all of the same length."""
    table = [listed(row, what) for row in listed(value, what)[: most + 1]]
    if not 1 <= len(table) <= most:
        raise BadInput(f"{what}: from 1 to {most} rows were expected, not {len(listed(value, what))}")
    lengths = {len(row) for row in table}
    if len(lengths) > 1 or max(lengths) > MOST_NAMES:
        raise BadInput(f"{what}: rows of one length, of at most {MOST_NAMES} numbers, were expected, not of {max(lengths)}")
    return tuple(numbers(row, what) for row in table)


def columns(value: Any, what: str, dim: int) -> Numbers:
    """One number, or `dim` of them."""
    if isinstance(value, Real):
        return number(value, what)
    found = numbers(value, what)
    if len(found) != dim:
        raise BadInput(f"{what}: {len(found)} numbers for {dim} columns")
    return found


def bounds(value: Any, what: str, dim: int = 1, low: float = -math.inf) -> tuple[Numbers, Numbers]:
    """A lowest and a highest value, each one number or `dim` of them, none below `low`."""
    pair = listed(value, what)
    if len(pair) != 2:
        raise BadInput(f"{what}: a lowest and a highest value were expected, not {str(value)[:40]}")
    least, most = (columns(v, what, dim) for v in pair)
    if not (np.asarray(least) <= np.asarray(most)).all():
        raise BadInput(f"{what}: the lowest value is above the highest")
    number(np.min(least), what, low)
    return least, most
