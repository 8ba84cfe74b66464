"""The contest: every cause tries to explain the gap at the size of a real mismatch, all else within its tolerance.

Fits are of free-running replays, from a grid of starts, in a hard box: a soft prior would let the many small numbers drift and
imitate anything. Slopes of what may only move within its tolerance are taken once, at the nominal model; those of the cause
under trial wherever it is.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gapless.arrays import Array
from gapless.explain.physics import errors_of, limb_of, limbs
from gapless.identify import colouring
from gapless.measure import Windows, usual
from gapless.twin import Parameter, Twin, quantities

DIFFERENCE = 0.05  # scaled units: wide enough that stick and slip average out, mostly
FARTHEST = 12.0  # scaled units from nominal that a cause is searched: a gain wrong by a factor of 100
INDEPENDENT = 0.2  # s: errors closer than this in time count as one


@dataclass(frozen=True, eq=False)
class Hypothesis:
    """Where a hypothesis ended."""

    causes: tuple[str, ...]
    x: Array
    """Scaled, over the contest's variables."""
    residual: Array
    """In units of the floor of its column, outliers drawn in. Shape: (samples x columns,)."""

    @cached_property
    def left(self) -> float:
        """Mean square of what is left, 1 for a twin within its tolerances."""
        return float(self.residual @ self.residual) / len(self.residual)


@dataclass(frozen=True)
class Contest:
    """The variables of a twin and its rivals, with their tolerance boxes, and the slopes at the nominal model."""

    arenas: Mapping[str, Windows]
    """By the cause that needs a model of its own (backlash); "" for the twin as given."""
    variables: tuple[Parameter, ...]
    floor: Array
    """What is left of each column for a twin within its tolerances [rad]."""
    slopes: Array
    """Of residuals with respect to scaled variables. Shape: (samples x columns, variables)."""
    outlier: float = np.inf
    """Errors beyond this many floors hardly count more when they grow: a lost command is no property of the robot."""
    loose: float = 1.0
    """How much farther out an error must be than usual to be taken for an outlier."""
    mask: Array | float = 1.0
    """Which residuals count. Shape: (samples x columns,)."""

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(v.name for v in self.variables)

    @cached_property
    def causes(self) -> dict[str, list[int]]:
        """Each cause and its variables."""
        out: dict[str, list[int]] = {}
        for i, v in enumerate(self.variables):
            cause = quantities.cause(v.name)
            if cause is not None:
                out.setdefault(cause, []).append(i)
        return out

    @cached_property
    def box(self) -> tuple[Array, Array]:
        """Tolerances, scaled."""
        ends = [_tolerated(v) for v in self.variables]
        return np.array([e[0] for e in ends]), np.array([e[1] for e in ends])

    @cached_property
    def reach(self) -> tuple[Array, Array]:
        """How far a cause may go, scaled."""
        ends = [_scaled(v, np.array([v.low, v.high])) for v in self.variables]
        return np.array([max(e[0], -FARTHEST) for e in ends]), np.array([min(e[1], FARTHEST) for e in ends])

    def visible(self, cause: str) -> bool:
        """Whether a cause can show at all: contact needs something that touches, a payload a base that is not held."""
        numbers = self.causes[cause]
        return not quantities.of(self.names[numbers[0]]).conditional or bool(self.slopes[:, numbers].any())

    def numbers(self, causes: Sequence[str]) -> list[int]:
        """The variables of some causes."""
        return [i for c in causes for i in self.causes[c]]

    def arena(self, causes: Sequence[str]) -> str | None:
        """Where a hypothesis is simulated; None where its causes cannot meet in one model."""
        own = [c for c in causes if c in self.arenas]
        return None if len(own) > 1 else own[0] if own else ""

    def has(self, arena: str, i: int) -> bool:
        """Whether a variable exists in an arena."""
        return self.variables[i].name in self._place(self.arenas[arena].twin)

    def present(self, arena: str) -> NDArray[np.bool_]:
        """Which variables exist in an arena."""
        return np.array([self.has(arena, i) for i in range(len(self.variables))])

    def errors(self, tried: Sequence[tuple[str, Array]]) -> Array:
        """Residuals of scaled vectors in their arenas, in units of the floor. Shape: (k, samples x columns)."""
        out: list[Array | None] = [None] * len(tried)
        for arena in {a for a, _ in tried}:
            rows = [i for i, (a, _) in enumerate(tried) if a == arena]
            data = self.arenas[arena]
            error = errors_of(data, self.values(np.array([tried[i][1] for i in rows]), data.twin))
            for i, e in zip(rows, self.drawn_in(error), strict=True):
                out[i] = e
        return np.array(out)

    def drawn_in(self, errors: Array) -> Array:
        """Errors (k, samples, columns) [rad] as residuals (k, samples x columns): in floors, outliers bounded."""
        r = (errors / self.floor).reshape(len(errors), -1) * self.mask
        if np.isfinite(self.outlier):
            r = r / np.sqrt(1 + (r / self.outlier) ** 2)
        return np.asarray(r)

    def values(self, x: Array, twin: Twin) -> Array:
        """Values over a twin's space. x: (k, variables); shape: (k, parameters)."""
        space = twin.space
        full = np.tile(space.nominal, (len(x), 1))
        for i, v in enumerate(self.variables):
            if v.name in self._place(twin):
                full[:, self._place(twin)[v.name]] = _unscaled(v, x[:, i])
        return space.clip(full)

    def _place(self, twin: Twin) -> dict[str, int]:
        places = self._places.setdefault(id(twin), {})
        if not places:
            places.update({n: i for i, n in enumerate(twin.space.names)})
        return places

    @cached_property
    def _places(self) -> dict[int, dict[str, int]]:
        return {}

    def slopes_of(self, tried: Sequence[tuple[str, Array, Array, Sequence[int]]], affects: NDArray[np.bool_]) -> list[Array]:
        """One-sided differences about several scaled vectors: (arena, x, residual at x, which variables).

        affects: which columns each variable moves, at least mostly (see `local`): variables that meet in no column share a
        replay. Shape of each: (samples x columns, which).
        """
        high, columns = self.reach[1], len(self.floor)
        plans = []
        asked: list[tuple[str, Array]] = []
        for arena, x, at, which in tried:
            rows = affects[list(which)]
            colour = colouring(rows).colour if len(which) else np.zeros(0, dtype=np.int64)
            step = np.where(x + DIFFERENCE <= high, DIFFERENCE, -DIFFERENCE)
            plans.append((at, which, rows, colour, step, len(asked)))
            for c in range(colour.max(initial=-1) + 1):
                mine = np.array(which)[colour == c]
                moved = x.copy()
                moved[mine] += step[mine]
                asked.append((arena, moved))
        errors = self.errors(asked)
        out = []
        for at, which, rows, colour, step, first in plans:
            change = (errors[first + colour] - at).reshape(len(which), -1, columns) * rows[:, None, :]
            out.append(np.asarray((change.reshape(len(which), -1) / step[list(which)][:, None]).T))
        return out

    @cached_property
    def local(self) -> NDArray[np.bool_]:
        """The columns that a variable moves most: its own joint's, those of its limb for links, all for what has no place."""
        return self._affects(local=True)

    @cached_property
    def coupled(self) -> NDArray[np.bool_]:
        """The columns that a variable can move: those of its limb where the base is held."""
        return self._affects(local=False)

    def _affects(self, local: bool) -> NDArray[np.bool_]:
        """Shape: (variables, columns)."""
        twin = self.arenas[""].twin
        own = limbs(twin)
        out = np.ones((len(self.variables), len(self.floor)), dtype=bool)
        for i, v in enumerate(self.variables):
            _, _, place = v.name.partition("/")
            if place in twin.joints:
                j = twin.joints.index(place)
                out[i, : len(own)] = np.arange(len(own)) == j if local else own == own[j]
                out[i, len(own) :] = not local
            elif place:
                limb = limb_of(twin, int(twin.model.body(place).id))
                if limb in own:
                    out[i, : len(own)] = own == limb
        return out

    @cached_property
    def information(self) -> Array:
        return np.asarray(self.slopes.T @ self.slopes)

    def usual(self, fit: Hypothesis) -> Array:
        """Mean square by column without its few largest: a lost command makes such, and is no property of the robot."""
        return usual(fit.residual.reshape(-1, len(self.floor)) ** 2)

    def evidence(self, fit: Hypothesis) -> float:
        """Smaller is better (as in Schwarz's criterion): what is left, and a price for every number beyond its tolerance."""
        low, high = self.box
        used = int(((fit.x < low - 1e-9) | (fit.x > high + 1e-9)).sum())
        n = self.independent
        return n * float(np.log(max(fit.left, 1e-12))) + used * float(np.log(n))

    @cached_property
    def independent(self) -> float:
        """How many errors count as independent."""
        data = self.arenas[""]
        seconds = sum(float(np.ptp(data.clock[data.log == i])) for i in range(len(data.logs)))
        return max(seconds / INDEPENDENT, 10.0) * len(self.floor)


def variables(twin: Twin) -> tuple[Parameter, ...]:
    """The parameters that can move a prediction of this twin."""
    return tuple(p for p in twin.space.parameters if quantities.of(p.name).predicted)


def _scaled(v: Parameter, values: Array) -> Array:
    return np.asarray((np.log(values / v.nominal) if v.log else values - v.nominal) / v.scale)


def _unscaled(v: Parameter, x: Array) -> Array:
    return np.asarray(np.clip(v.nominal * np.exp(x * v.scale) if v.log else v.nominal + x * v.scale, v.low, v.high))


def _tolerated(v: Parameter) -> tuple[float, float]:
    low, high = _scaled(v, np.clip([v.nominal - v.tolerance, v.nominal + v.tolerance], v.low, v.high))
    return float(low), float(high)
