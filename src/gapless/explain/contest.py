"""The contest: every cause tries to explain the gap at the size of a real mismatch, all else within its tolerance.

Fits are of free-running replays, from a grid of starts, in a hard box: a soft prior would let the many small numbers drift and
imitate anything. Slopes of what may only move within its tolerance are taken once, at the nominal model; those of the cause
under trial wherever it is.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import mujoco
import numpy as np

from gapless.arrays import Array, Bools, Ints
from gapless.explain.physics import errors_of
from gapless.identify import colouring
from gapless.measure import Windows, usual
from gapless.robots import home_data, limb_of, limbs_of
from gapless.twin import Space, quantities

DIFFERENCE = 0.05  # scaled units: wide enough that stick and slip average out, mostly
FARTHEST = 12.0  # scaled units from nominal that a cause is searched: a gain wrong by a factor of 100
INDEPENDENT = 0.2  # s: errors closer than this in time count as one
AFFORDED = 1.4e8  # equations (of motion and constraints) times steps that a search may simulate: 30 to 60 s on two cores
DEAR = 1 / 6  # of it, above which slopes of everything are taken once only


@dataclass
class Effort:
    """What may still be simulated, counted in equations times steps: the same on any machine, unlike a deadline."""

    tick: Callable[[str, float | None], object] = lambda text, left: None
    """Told what is being done, and how many seconds are left, roughly."""
    spent: float = 0.0
    expected: float = AFFORDED
    """To be spent in all."""
    doing: str = ""
    started: float = field(default_factory=time.perf_counter)

    @property
    def left(self) -> float:
        return AFFORDED - self.spent

    def begin(self, doing: str) -> None:
        """Say what is done next."""
        self.doing = doing
        self.spend(0.0)

    def spend(self, work: float) -> None:
        seconds = time.perf_counter() - self.started
        self.tick(self.doing, seconds / self.spent * max(self.expected - self.spent, 0.0) if self.spent else None)
        self.spent += work


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
    space: Space
    """The variables."""
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
    effort: Effort = field(default_factory=Effort)
    """What was simulated for it: shared by all contests that come from one another."""

    @cached_property
    def causes(self) -> dict[str, list[int]]:
        """Each cause and its variables."""
        out: dict[str, list[int]] = {}
        for i, name in enumerate(self.space.names):
            cause = quantities.cause(name)
            if cause is not None:
                out.setdefault(cause, []).append(i)
        return out

    @cached_property
    def owners(self) -> list[str]:
        """The joint or link that each variable is of; empty where it is of none."""
        return [name.partition("/")[2] for name in self.space.names]

    @cached_property
    def box(self) -> Array:
        """The ends of the tolerances, scaled. Shape: (2, variables)."""
        return np.stack(self.space.tolerated)

    @cached_property
    def reach(self) -> Array:
        """How far a cause may go either way, scaled. Shape: (2, variables)."""
        return np.clip(self.space.to_scaled([self.space.low, self.space.high]), -FARTHEST, FARTHEST)

    def visible(self, cause: str) -> bool:
        """Whether a cause can show at all: contact needs something that touches, a payload a base that is not held."""
        numbers = self.causes[cause]
        return not quantities.of(self.space.names[numbers[0]]).conditional or bool(self.slopes[:, numbers].any())

    def numbers(self, causes: Sequence[str]) -> list[int]:
        """The variables of some causes."""
        return [i for c in causes for i in self.causes[c]]

    def arena(self, causes: Sequence[str]) -> str:
        """The model in which some causes are simulated: that of the one that needs its own, else the twin as given."""
        return next((c for c in causes if c in self.arenas), "")

    @cached_property
    def places(self) -> dict[str, Ints]:
        """Where each variable is in the space of each arena's twin; -1 where that lacks it. Shape of each: (variables,)."""
        spaces = {arena: data.twin.space.names for arena, data in self.arenas.items()}
        return {a: np.array([names.index(n) if n in names else -1 for n in self.space.names]) for a, names in spaces.items()}

    def values(self, x: Array, arena: str = "") -> Array:
        """Values over the space of an arena's twin. x: (k, variables); shape: (k, parameters)."""
        space, place = self.arenas[arena].twin.space, self.places[arena]
        full = np.tile(space.nominal, (len(x), 1))
        full[:, place[place >= 0]] = self.space.clip(self.space.from_scaled(x))[:, place >= 0]
        return space.clip(full)

    def replayed(self, tried: Sequence[tuple[tuple[str, ...], Array]]) -> list[Hypothesis]:
        """Hypotheses from their causes and scaled vectors; those of one arena are simulated together."""
        arenas = [self.arena(causes) for causes, _ in tried]
        out: dict[int, Hypothesis] = {}
        for arena in set(arenas):
            rows = [i for i, a in enumerate(arenas) if a == arena]
            self.effort.spend(self.work(len(rows), arena))
            errors = errors_of(self.arenas[arena], self.values(np.array([tried[i][1] for i in rows]), arena))
            out |= {i: Hypothesis(*tried[i], residual) for i, residual in zip(rows, self.drawn_in(errors), strict=True)}
        return [out[i] for i in range(len(tried))]

    def work(self, vectors: int, arena: str = "") -> float:
        """Equations times steps that some replays take."""
        return float(vectors * self.rows[arena] * sum(len(r.starts) * r.steps for r in self.arenas[arena].replayers))

    @cached_property
    def rows(self) -> dict[str, int]:
        """Equations of a step in each arena: degrees of freedom, and constraints at home (dry friction, coupled joints)."""
        out = {}
        for arena, model in ((arena, data.twin.model) for arena, data in self.arenas.items()):
            mujoco.mj_forward(model, data := home_data(model))
            out[arena] = model.nv + int(data.nefc)
        return out

    @cached_property
    def dear(self) -> bool:
        """Whether slopes of everything cost so much that they are taken once, and only those of each joint's own renewed."""
        colours = int(colouring(self.affects(local=False)).colour.max(initial=0)) + 1
        return self.work(colours) > DEAR * AFFORDED

    def again(self, fit: Hypothesis) -> Hypothesis:
        """A hypothesis of another contest, judged in this one."""
        return self.replayed([(fit.causes, fit.x)])[0]

    @property
    def nominal(self) -> Hypothesis:
        """The model as given."""
        return self.replayed([((), np.zeros(len(self.space)))])[0]

    def drawn_in(self, errors: Array) -> Array:
        """Errors (k, samples, columns) [rad] as residuals (k, samples x columns): in floors, outliers bounded."""
        r = (errors / self.floor).reshape(len(errors), -1) * self.mask
        if np.isfinite(self.outlier):
            r = r / np.sqrt(1 + (r / self.outlier) ** 2)
        return np.asarray(r)

    def slopes_of(self, fits: Sequence[Hypothesis], which: Sequence[Sequence[int]], affects: Bools) -> list[Array]:
        """One-sided differences about several fits, each by some of the variables. Shape of each: (samples x columns, which).

        affects: which columns each variable moves, at least mostly (see `affects`): variables that meet in no column share a
        replay.
        """
        plans = []
        nearby: list[tuple[tuple[str, ...], Array]] = []
        for fit, numbers in zip(fits, which, strict=True):
            rows = affects[list(numbers)]
            colour = colouring(rows).colour
            step = np.where(fit.x + DIFFERENCE <= self.reach[1], DIFFERENCE, -DIFFERENCE)[list(numbers)]
            plans.append((fit, rows, len(nearby) + colour, step))
            for c in range(colour.max(initial=-1) + 1):
                x = fit.x.copy()
                x[np.array(numbers)[colour == c]] += step[colour == c]
                nearby.append((fit.causes, x))
        residuals = np.array([f.residual for f in self.replayed(nearby)])
        out = []
        for fit, rows, replay, step in plans:
            change = (residuals[replay] - fit.residual).reshape(len(rows), -1, len(self.floor)) * rows[:, None, :]
            out.append(np.asarray((change.reshape(len(rows), -1) / step[:, None]).T))
        return out

    def affects(self, local: bool) -> Bools:
        """The columns that each variable can move: those of its limb where the base is held, all for what has no place.

        local: only those that it moves most: its own joint's, those of its limb for links. Shape: (variables, columns).
        """
        twin = self.arenas[""].twin
        limb, joints = np.array(list(limbs_of(twin.model).values())), np.array(twin.joints)
        links = {o: limb_of(twin.model, int(twin.model.body(o).id)) for o in {*self.owners} - {"", *twin.joints}}
        out = np.ones((len(self.space), len(self.floor)), dtype=bool)
        for row, owner in zip(out, self.owners, strict=True):
            if owner in twin.joints:
                row[: len(limb)] = joints == owner if local else limb == limb[twin.joints.index(owner)]
                row[len(limb) :] = not local
            elif owner and links[owner] in limb:
                row[: len(limb)] = limb == links[owner]
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
