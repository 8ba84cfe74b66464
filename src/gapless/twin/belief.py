"""Belief: what is known about a Space's parameters: a point, a box, a Gaussian or particles."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np

from gapless.arrays import Array
from gapless.errors import BadInput
from gapless.plain import plain, read_json, typed, write_json
from gapless.report import Printed, Section, Table, first_rows
from gapless.twin.space import Space

FORMAT, OLDER = "gapless belief 2", "gapless belief 1"
MAX_FILE = 256 * 2**20  # bytes: a million particles of 30 parameters
DRAWS = 1000  # for the intervals that are printed


class _Printed(Printed):
    """Every belief prints its mean and 90 % interval."""

    def described(self) -> Section:
        belief = cast("Belief", self)
        low, high = np.percentile(belief.sample(DRAWS, np.random.default_rng(0)), (5, 95), axis=0)
        columns = zip(belief.space.parameters, belief.mean(), low, high, strict=True)
        rows = [[p.name, f"{mean:.4g}", f"{least:.4g} .. {most:.4g}", p.unit] for p, mean, least, most in columns]
        head = ("parameter", "mean", "90 % interval", "unit")
        return Section(f"belief about {len(belief.space)} parameters", table=Table(head, first_rows(rows)))


@dataclass(frozen=True, repr=False)
class Point(_Printed):
    """Certainty: one value each."""

    space: Space
    values: Array
    """Shape: (parameters,)."""

    def __post_init__(self) -> None:
        self.space.check(self.values)

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        return np.tile(self.values, (n, 1))

    def mean(self) -> Array:
        return self.values

    def narrow(self, by: float) -> Point:
        return self


@dataclass(frozen=True, repr=False)
class Box(_Printed):
    """Every value between two bounds is as likely, in the scaled space (so a factor is log-uniform)."""

    space: Space
    low: Array
    high: Array

    def __post_init__(self) -> None:
        self.space.check(self.low)
        self.space.check(self.high)
        wrong = np.asarray(self.low) > np.asarray(self.high)
        if wrong.any():
            i = int(np.argmax(wrong))
            raise BadInput(f"{self.space.names[i]}: lower bound {self.low[i]:g} is above upper bound {self.high[i]:g}")

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        low, high = self.space.to_scaled(self.low), self.space.to_scaled(self.high)
        drawn = self.space.from_scaled(low + (high - low) * rng.random((n, len(self.space))))
        return np.clip(drawn, self.low, self.high)

    def mean(self) -> Array:
        """The centre of the box in the scaled space."""
        return self.space.from_scaled((self.space.to_scaled(self.low) + self.space.to_scaled(self.high)) / 2)

    def narrow(self, by: float) -> Box:
        return Box(self.space, _nearer(self, self.low, by), _nearer(self, self.high, by))


@dataclass(frozen=True, repr=False)
class Gaussian(_Printed):
    """A Gaussian in the scaled space, mirrored back where it leaves the bounds: a delay around zero is a half-Gaussian."""

    space: Space
    centre: Array
    """Mean in the scaled space. Shape: (parameters,)."""
    covariance: Array
    """Covariance in the scaled space. Shape: (parameters, parameters)."""

    def __post_init__(self) -> None:
        k = len(self.space)
        if np.shape(self.centre) != (k,) or np.shape(self.covariance) != (k, k):
            raise BadInput(f"a Gaussian over {k} parameters needs a mean of {k} and a covariance of {k} x {k} numbers")
        if not (np.isfinite(self.centre).all() and np.isfinite(self.covariance).all()):
            raise BadInput("a Gaussian needs finite numbers")
        if not np.allclose(self.covariance, np.transpose(self.covariance), atol=1e-9):
            raise BadInput("a Gaussian's covariance must be symmetric")
        if np.linalg.eigvalsh(self.covariance).min() < -1e-9 * max(1.0, float(np.abs(self.covariance).max())):
            raise BadInput("a Gaussian's covariance has a negative eigenvalue")
        self.space.check(self.mean())

    @cached_property
    def _root(self) -> Array:
        w, v = np.linalg.eigh(self.covariance)
        return v * np.sqrt(np.maximum(w, 0))

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        scaled = self.centre + rng.standard_normal((n, len(self.centre))) @ self._root.T
        return self.space.clip(self.space.from_scaled(self.space.mirrored(scaled)))

    def mean(self) -> Array:
        return self.space.from_scaled(self.centre)

    def narrow(self, by: float) -> Gaussian:
        return dataclasses.replace(self, covariance=self.covariance * _fraction(by) ** 2)


@dataclass(frozen=True, repr=False)
class Particles(_Printed):
    """Weighted samples."""

    space: Space
    values: Array
    """Shape: (particles, parameters)."""
    weights: Array
    """Shape: (particles,); they sum to 1."""

    def __post_init__(self) -> None:
        if np.ndim(self.values) != 2 or len(self.values) != len(self.weights) or not len(self.weights):
            raise BadInput("particles need at least one row of values and as many weights as rows")
        if np.min(self.weights) < 0 or not math.isclose(float(np.sum(self.weights)), 1.0, rel_tol=1e-6):
            raise BadInput("particle weights must not be negative and must sum to 1")
        self.space.check(self.values)

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        return self.values[rng.choice(len(self.values), size=n, p=self.weights / np.sum(self.weights))]

    def mean(self) -> Array:
        return self.space.from_scaled(self.weights @ self.space.to_scaled(self.values))

    def narrow(self, by: float) -> Particles:
        return dataclasses.replace(self, values=_nearer(self, self.values, by))


Plain = Point | Box | Gaussian | Particles


@dataclass(frozen=True, repr=False)
class Both(_Printed):
    """Two beliefs about different parameters of one robot, which have nothing to do with each other."""

    one: Plain
    other: Plain

    @cached_property
    def space(self) -> Space:
        one, other = self.one.space, self.other.space
        return Space(one.parameters + other.parameters, {**one.fixed, **other.fixed})

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        return np.hstack([self.one.sample(n, rng), self.other.sample(n, rng)])

    def mean(self) -> Array:
        return np.concatenate([self.one.mean(), self.other.mean()])

    def narrow(self, by: float) -> Both:
        return Both(self.one.narrow(by), self.other.narrow(by))


Belief = Plain | Both
_KINDS: dict[str, type[Plain]] = {kind.__name__.lower(): kind for kind in (Point, Box, Gaussian, Particles)}


def _nearer(belief: Belief, values: Array, by: float) -> Array:
    """Values at a fraction of their distance from a belief's mean, in the scaled space."""
    space, mean = belief.space, belief.space.to_scaled(belief.mean())
    return space.clip(space.from_scaled(mean + (space.to_scaled(values) - mean) * _fraction(by)))


def within_tolerance(space: Space) -> Box:
    """The box of values that are no news: nominal plus and minus each parameter's tolerance."""
    return Box(space, space.clip(space.nominal - space.tolerance), space.clip(space.nominal + space.tolerance))


def save(belief: Plain, path: str | os.PathLike[str], twin: Mapping[str, Any] | None = None) -> None:
    """Write a belief as JSON, whole or not at all, with the recipe of its twin (`gapless.twin.recipe`) where that is given.

    The file says which other parameters a number stands for, as no position tells them apart: they must not be drawn besides.
    """
    table = plain(belief)
    space = table.pop("space")
    of: dict[str, Any] = {} if twin is None else {"twin": twin}
    others = {p.name: stood_for(p.members or (p.name,)) for p in belief.space.parameters}
    of["stands_for"] = {name: names for name, names in others.items() if names}
    write_json(path, {"format": FORMAT, "kind": type(belief).__name__.lower(), **space, **table, **of})


def stood_for(names: Iterable[str]) -> list[str]:
    """Parameters that fitted ones stand for."""
    from gapless.twin import quantities  # they are made of mechanisms, whose files need a belief's space

    return [other for name in names for other in quantities.stood_for(name)]


def combined(belief: Plain, others: Box) -> Both:
    """What is believed about some parameters, and for all that it does not speak of, nor stands for, what others say."""
    told = {name for p in belief.space.parameters for name in (p.name, *p.members)} | set(belief.space.fixed)
    told |= set(stood_for(told))
    rest = [i for i, name in enumerate(others.space.names) if name not in told]
    space = Space(tuple(others.space.parameters[i] for i in rest))
    return Both(belief, Box(space, others.low[rest], others.high[rest]))


def load(path: str | os.PathLike[str]) -> Plain:
    """Read a belief written by `save`; every fault is one sentence that names the file."""
    data = table(path)
    try:
        return typed(_KINDS[data["kind"]], data, space=typed(Space, data))
    except (TypeError, ValueError, OverflowError) as error:
        raise BadInput(f"{path}: {error}") from None


def table(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What a belief's file holds, as it is written there."""
    path = Path(path) / "belief.json" if Path(path).is_dir() else path  # the folder of a fit will do
    data = read_json(path, MAX_FILE)
    if data.get("format") == OLDER:
        raise BadInput(f"{path}: a belief of an earlier form, whose intervals were too narrow: run `gapless fit` again")
    if data.get("format") != FORMAT or str(data.get("kind")) not in _KINDS:
        raise BadInput(f"{path}: not a belief file (expected format {FORMAT!r} and a kind of {', '.join(_KINDS)})")
    return data


def _fraction(by: float) -> float:
    if not 0 <= by <= 1:
        raise BadInput(f"a belief is narrowed by a fraction from 0 to 1, not {by:g}")
    return by
