"""Space: the named parameters of a twin, in one order, and the scaled space in which they are searched and drawn."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from gapless.arrays import Array
from gapless.errors import BadInput, unknown
from gapless.report import Printed, Section, Table, first_rows


@dataclass(frozen=True)
class Parameter:
    """One number that may be wrong about a model.

    Example: `Parameter("friction.coulomb/knee", nominal=0.2, low=0.0, high=2.0, tolerance=0.05, scale=0.2, unit="N m")`.
    """

    name: str
    """`mechanism.quantity` or `mechanism.quantity/NAME`."""
    nominal: float
    """What the model as given says, in `unit`."""
    low: float
    high: float
    tolerance: float
    """How wrong the value may be without being news, in `unit`."""
    scale: float
    """The size of a real mismatch: in `unit`, or as a natural logarithm of a factor where `log` is set."""
    log: bool = False
    """Whether the parameter is scaled by its logarithm (it is positive, and wrong by factors)."""
    unit: str = ""
    members: tuple[str, ...] = ()
    """The twin's parameters that take this value; empty means just the one of this name."""

    def __post_init__(self) -> None:
        if not self.low <= self.nominal <= self.high:
            raise BadInput(f"{self.name}: nominal {self.nominal:g} is outside its bounds [{self.low:g}, {self.high:g}]")
        if self.log and self.low <= 0:
            raise BadInput(f"{self.name}: a parameter on a logarithmic scale needs a positive lower bound")
        if self.scale <= 0 or self.tolerance < 0 or not math.isfinite(self.scale + self.tolerance + self.nominal):
            raise BadInput(f"{self.name}: scale must be positive, tolerance not negative, and all values finite")

    @property
    def quantity(self) -> str:
        """The name without the joint or link: `friction.coulomb`."""
        return self.name.partition("/")[0]


def factor(name: str, nominal: float, within: float, tolerance: float, unit: str = "", span: float = 10.0) -> Parameter:
    """A positive parameter that is wrong by factors: `within` a factor of 1.5 in practice, `tolerance` relative.

    Where the model says zero there is no factor to speak of: use `amount`.
    """
    return Parameter(name, nominal, nominal / span, nominal * span, tolerance * nominal, math.log(within), log=True, unit=unit)


def amount(name: str, nominal: float, scale: float, tolerance: float, unit: str, low: float, high: float) -> Parameter:
    """A parameter that is wrong by an amount; bounds are widened to hold the nominal value."""
    return Parameter(name, nominal, min(low, nominal), max(high, nominal), tolerance, scale, unit=unit)


def _each(attribute: str) -> cached_property[Array]:
    """An attribute of all parameters of a space. Shape: (parameters,)."""
    return cached_property(lambda space: np.array([getattr(p, attribute) for p in space.parameters]))


@dataclass(frozen=True, repr=False)
class Space(Printed):
    """Named parameters in one order. Vectors over it have shape (..., len(space))."""

    parameters: tuple[Parameter, ...]
    fixed: dict[str, float] = field(default_factory=dict)
    """Parameters of the twin held at a value other than nominal."""

    def __post_init__(self) -> None:
        names = [p.name for p in self.parameters]
        if len(set(names)) != len(names):
            twice = next(n for n in names if names.count(n) > 1)
            raise BadInput(f"parameter {twice!r} is named twice")

    def described(self) -> Section:
        rows = [[p.name, f"{p.nominal:.4g}", f"{p.low:.4g}", f"{p.high:.4g}", p.unit] for p in self.parameters]
        head = ("parameter", "nominal", "least", "largest", "unit")
        return Section(f"{len(self)} parameters", table=Table(head, first_rows(rows)))

    def __len__(self) -> int:
        return len(self.parameters)

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(p.name for p in self.parameters)

    nominal, low, high, tolerance = (_each(name) for name in ("nominal", "low", "high", "tolerance"))
    _scale, _log = _each("scale"), _each("log")

    @cached_property
    def bounds(self) -> tuple[Array, Array]:
        """`low` and `high`, scaled."""
        return self.to_scaled(self.low), self.to_scaled(self.high)

    @cached_property
    def tolerated(self) -> tuple[Array, Array]:
        """The ends of the tolerances, scaled."""
        low, high = (self.to_scaled(self.clip(self.nominal + sign * self.tolerance)) for sign in (-1, 1))
        return low, high

    def match(self, pattern: str) -> tuple[str, ...]:
        """The names that a pattern with `*` matches; raises if there are none."""
        hits = tuple(n for n in self.names if n == pattern or fnmatchcase(n, pattern))
        if not hits:
            raise unknown("parameter", pattern, self.names)
        return hits

    def values(self, given: Mapping[str, float]) -> Array:
        """The nominal vector with the given values (by name or pattern) put in; checked against the bounds."""
        out = self.nominal.copy()
        for pattern, value in given.items():
            for name in self.match(pattern):
                out[self.names.index(name)] = value
        self.check(out)
        return out

    def check(self, values: ArrayLike) -> None:
        """Raise a sentence naming the first parameter that is not finite or outside its bounds."""
        values = np.atleast_2d(np.asarray(values, float))
        if values.shape[-1] != len(self):
            raise BadInput(f"expected {len(self)} parameter values, got {values.shape[-1]}")
        slack = 1e-12 * np.maximum(np.abs(self.low), np.abs(self.high))
        bad = ~((values >= self.low - slack) & (values <= self.high + slack))
        if bad.any():
            row, column = np.argwhere(bad)[0]
            p = self.parameters[column]
            raise BadInput(f"{p.name} = {values[row, column]:g} {p.unit} is outside its bounds [{p.low:g}, {p.high:g}]")

    def to_scaled(self, values: ArrayLike) -> Array:
        """Values as distances from nominal in units of a real mismatch: 0 is nominal, +-1 a mismatch met in practice."""
        values = np.asarray(values, float)
        safe = np.where(self._log, np.maximum(values, self.low), 1.0)
        ratio = np.log(safe / np.where(self._log, self.nominal, 1.0))
        return np.where(self._log, ratio, values - self.nominal) / self._scale

    def from_scaled(self, scaled: ArrayLike) -> Array:
        """The inverse of `to_scaled`."""
        step = np.asarray(scaled, float) * self._scale
        grown = self.nominal * np.exp(np.where(self._log, step, 0.0))
        return np.where(self._log, grown, self.nominal + step)

    def clip(self, values: ArrayLike) -> Array:
        return np.clip(np.asarray(values, float), self.low, self.high)

    def mirrored(self, scaled: Array) -> Array:
        """Scaled values, those beyond a bound mirrored back: a Gaussian about a delay of zero becomes a half-Gaussian."""
        low, high = self.bounds
        scaled = np.where(scaled < low, 2 * low - scaled, scaled)
        return np.clip(np.where(scaled > high, 2 * high - scaled, scaled), low, high)

    def select(self, *patterns: str) -> Space:
        """Only the parameters that match; the others keep their nominal values."""
        keep = {n for p in patterns for n in self.match(p)}
        return dataclasses.replace(self, parameters=tuple(p for p in self.parameters if p.name in keep))

    def fix(self, given: Mapping[str, float]) -> Space:
        """Hold parameters (by name or pattern) at a value: they leave the space, the value stays."""
        fixed = dict(self.fixed)
        gone = set()
        for pattern, value in given.items():
            for name in self.match(pattern):
                p = self.parameters[self.names.index(name)]
                if not p.low <= value <= p.high:
                    raise BadInput(f"{name} = {value:g} {p.unit} is outside its bounds [{p.low:g}, {p.high:g}]")
                fixed.update(dict.fromkeys(p.members or (name,), float(value)))
                gone.add(name)
        return Space(tuple(p for p in self.parameters if p.name not in gone), fixed)

    def tie(self, *patterns: str) -> Space:
        """One value for all parameters that a pattern matches, named by the pattern: `tie("friction.viscous/*_knee")`.

        The nominal value of the tied parameter is the mean (geometric for factors), its bounds are what all members allow.
        """
        space = self
        for pattern in patterns:
            space = space.join(pattern, space.match(pattern))
        return space

    def join(self, name: str, members: Sequence[str]) -> Space:
        """One value of a name of its own for all of the parameters that are listed; see `tie`."""
        group = [p for p in self.parameters if p.name in members]
        if len({p.quantity for p in group}) > 1:
            raise BadInput(f"cannot tie {name!r}: it matches different quantities ({group[0].name}, {group[-1].name})")
        tied = _tied(name, group)
        rest = [p for p in self.parameters if p.name not in members or p is group[0]]
        return Space(tuple(tied if p is group[0] else p for p in rest), self.fixed)

    def spread(self, values: ArrayLike) -> dict[str, Array]:
        """Twin parameter names to their columns, ties and fixed values resolved. Shape of each: (n,)."""
        values = np.atleast_2d(np.asarray(values, float))
        out = {name: np.full(len(values), value) for name, value in self.fixed.items()}
        for i, p in enumerate(self.parameters):
            for name in p.members or (p.name,):
                out[name] = values[:, i]
        return out


def _tied(name: str, group: Iterable[Parameter]) -> Parameter:
    group = list(group)
    low, high = max(p.low for p in group), min(p.high for p in group)
    if low > high:
        raise BadInput(f"cannot tie {name!r}: no value is within the bounds of all of its parameters")
    log = all(p.log for p in group)
    nominals = np.array([p.nominal for p in group])
    nominal = float(np.exp(np.log(nominals).mean()) if log else nominals.mean())
    return dataclasses.replace(
        group[0],
        name=name,
        nominal=nominals[0] if np.ptp(nominals) == 0 else min(max(nominal, low), high),
        low=low,
        high=high,
        log=log,
        scale=group[0].scale if log == group[0].log else max(abs(nominal), 1e-6),
        members=tuple(m for p in group for m in (p.members or (p.name,))),
    )
