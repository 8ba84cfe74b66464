"""What a value in a contract may be: each function returns it in its plain form or says in one sentence what is wrong."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np

from gapless.errors import BadInput

Numbers = float | tuple[float, ...]
"""One number for all columns, or one a column."""
LARGEST = 1e30
"""Nothing on a robot is as large, and float32 holds it."""
MOST_NAMES = 1_000
"""Joints, terms or commands; what a hostile file may claim is compared name by name."""


def put(of: Any, name: str, value: Any) -> None:
    """Give a frozen dataclass under construction the plain form of a value."""
    object.__setattr__(of, name, value)


def number(value: Any, what: str, low: float = -math.inf, high: float = math.inf) -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not -LARGEST <= value <= LARGEST:  # type: ignore[operator]
        raise BadInput(f"{what}: a finite number was expected, not {str(value)[:40]}")
    found = float(value)
    if not low <= found <= high:
        raise BadInput(f"{what}: {found:g} is not from {low:g} to {high:g}")
    return found


def whole(value: Any, what: str, low: int, high: int) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral) or not low <= int(value) <= high:
        raise BadInput(f"{what}: a whole number from {low} to {high} was expected, not {str(value)[:40]}")
    return int(value)


def listed(value: Any, what: str) -> Sequence[Any]:
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if not isinstance(value, list | tuple):
        raise BadInput(f"{what}: a list was expected, not {str(value)[:40]}")
    return value


def numbers(value: Any, what: str) -> tuple[float, ...]:
    return tuple(number(v, what) for v in listed(value, what))


def rows(value: Any, what: str, most: int) -> tuple[tuple[float, ...], ...]:
    """A table of numbers: at least one row and at most `most`, all of the same length."""
    found = [listed(row, what) for row in listed(value, what)[: most + 1]]
    if not 1 <= len(found) <= most:
        raise BadInput(f"{what}: from 1 to {most} rows were expected, not {len(listed(value, what))}")
    lengths = {len(row) for row in found}
    if len(lengths) > 1 or max(lengths) > MOST_NAMES:
        raise BadInput(f"{what}: rows of one length, of at most {MOST_NAMES} numbers, were expected, not of {max(lengths)}")
    return tuple(numbers(row, what) for row in found)


def columns(value: Any, what: str, dim: int) -> Numbers:
    """One number, or `dim` of them."""
    if isinstance(value, Real):
        return number(value, what)
    found = numbers(value, what)
    if len(found) != dim:
        raise BadInput(f"{what}: {len(found)} numbers for {dim} columns")
    return found


def bounds(value: Any, what: str, dim: int) -> tuple[Numbers, Numbers]:
    pair = listed(value, what)
    if len(pair) != 2:
        raise BadInput(f"{what}: a lowest and a highest value were expected, not {str(value)[:40]}")
    low, high = (columns(v, what, dim) for v in pair)
    if not (np.asarray(low) <= np.asarray(high)).all():
        raise BadInput(f"{what}: the lowest value is above the highest")
    return low, high


def names(value: Any, what: str) -> tuple[str, ...]:
    found = tuple(value) if isinstance(value, Mapping) else tuple(listed(value, what))
    if len(found) > MOST_NAMES:
        raise BadInput(f"{what}: {len(found)} names, but at most {MOST_NAMES} are taken")
    for name in found:
        if not isinstance(name, str) or not name or len(name) > 200:
            raise BadInput(f"{what}: a name was expected, not {str(name)[:40]!r}")
    if len(set(found)) < len(found):
        raise BadInput(f"{what}: {next(n for n in found if found.count(n) > 1)!r} is there twice")
    return found


def texts(of: Any, what: str, *names: str) -> None:
    for name in names:
        value = getattr(of, name)
        if not isinstance(value, str) or len(value) > 2_000:
            raise BadInput(f"{what}: {name} must be text, not {str(value)[:40]}")


def one_of(value: Any, what: str, valid: Iterable[str]) -> None:
    if value not in tuple(valid):
        raise BadInput(f"{what}: {str(value)[:40]!r} is not one of {', '.join(valid)}")


def parts(value: Any, what: str, kind: type) -> tuple[Any, ...]:
    found = tuple(listed(value, what))
    for part in found:
        if not isinstance(part, kind):
            raise BadInput(f"{what}: holds {str(part)[:40]}, not {kind.__name__.lower()}s")
    return found
