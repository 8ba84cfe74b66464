"""Fits in the full model: windows of the logs, each started from the measured state, all columns and windows in one batch.

For what truly couples: accelerations of the other joints, link inertia, contact. Joints of different kinematic trees cannot
affect each other, nor can the encoder zeros of different logs or the starts of different windows, so their columns share
simulations.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gapless.arrays import Array
from gapless.identify.least_squares import Colouring, colouring, lasting, least_squares, precision, slopes, squared, widths
from gapless.measure import RESOLUTION, Windows, soft
from gapless.robots import base_joint
from gapless.twin import Space, Twin

ZERO = 0.02  # rad: how far an encoder's zero may differ from log to log, as a scaled unit
OFF_HEIGHT, OFF_SPEED = 0.003, 0.03  # m, m/s: how wrong legs and IMU are about where a floating base starts
ROBUST = 3.0  # times the typical error of a joint: beyond it errors count less than their square
PRIOR = 3.0  # scaled units
LAST_STEPS = 3
WIDE = 0.1  # scaled units: where to begin with slopes that say what is known


@dataclass(frozen=True)
class Objective:
    """Weighted errors of windows as a function of parameters, of each log's own encoder zeros, and of where windows begin."""

    data: Windows
    space: Space
    """What is free: a part of the twin's space."""
    base: Array
    """Everything, over the twin's space; the fit starts here."""
    size: Array
    """Typical error of each column: residuals count in units of it."""
    zeros: bool = False
    begins: bool = False
    """Whether height and velocity of a floating base at the start of each window are free too, since they were not measured."""
    room: Array | None = None
    """Covariance by which what is free may differ from the model, scaled; where None, it may differ widely from the start."""

    @cached_property
    def _at(self) -> tuple[list[int], list[int]]:
        """Columns of `space`, and where they go in the twin's; a tied one goes to several places."""
        names = self.data.twin.space.names
        pairs = [(i, names.index(m)) for i, p in enumerate(self.space.parameters) for m in p.members or (p.name,)]
        return [i for i, _ in pairs], [j for _, j in pairs]

    @cached_property
    def _extra(self) -> tuple[int, int]:
        """How many zeros, and how many numbers for where windows begin."""
        return len(self.data.logs) * len(self.data.twin.joints) * self.zeros, 4 * self.data.count * self.begins

    @cached_property
    def start(self) -> Array:
        take, put = self._at
        values = np.empty(len(self.space))
        values[take] = self.base[put]
        return np.concatenate([self.space.to_scaled(self.space.clip(values)), np.zeros(sum(self._extra))])

    @cached_property
    def bounds(self) -> tuple[Array, Array]:
        far = np.full(sum(self._extra), 5.0)
        low, high = self.space.bounds
        return np.concatenate([low, -far]), np.concatenate([high, far])

    def values(self, x: Array) -> Array:
        """Over the twin's space, without the zeros of single logs. x: (k, ...); shape: (k, parameters)."""
        out = np.tile(self.base, (len(x), 1))
        take, put = self._at
        out[:, put] = self.space.clip(self.space.from_scaled(x[:, : len(self.space)]))[:, take]
        return out

    def own_zeros(self, x: Array) -> dict[int, Array]:
        """Log to the zeros of its encoders [rad]."""
        own = ZERO * x[len(self.space) : len(self.space) + self._extra[0]].reshape(-1, len(self.data.twin.joints))
        return dict(zip(self.data.logs, own, strict=True))

    def with_zeros(self, x: Array, zeros: Mapping[int, Array]) -> Array:
        """A vector with the encoder zeros of single logs put in, by their number [rad]: the inverse of `own_zeros`."""
        out, none = x.copy(), np.zeros(len(self.data.twin.joints))
        if self.zeros:
            own = np.concatenate([zeros.get(int(i), none) for i in self.data.logs])
            out[len(self.space) : len(self.space) + self._extra[0]] = own / ZERO
        return out

    def __call__(self, x: Array) -> Array:
        """Residuals, (k, residuals); large ones count for less than their square."""
        return soft(self.plain(x), ROBUST)

    def plain(self, x: Array) -> Array:
        """Residuals as they are, (k, residuals)."""
        twin, logs = self.data.twin, len(self.data.replayers)
        full = np.tile(self.values(x), (logs, 1, 1))
        if self.zeros:
            offsets = [twin.space.names.index(f"offset.encoder/{j}") for j in twin.joints]
            own = ZERO * x[:, len(self.space) : len(self.space) + self._extra[0]].reshape(len(x), logs, len(twin.joints))
            full[:, :, offsets] += np.swapaxes(own, 0, 1)
        errors = self.data.errors(twin.space.clip(full), self._shifts(x) if self.begins else None)
        return np.asarray(np.clip((errors / self.size).reshape(len(x), -1), -1e3, 1e3))

    def _shifts(self, x: Array) -> list[Array]:
        """How far off each window starts, by log. Shape of each: (k, windows, 2, nv)."""
        model = self.data.twin.model
        joint = base_joint(model)
        assert joint is not None
        dof = int(model.jnt_dofadr[joint])
        own = x[:, len(x[0]) - self._extra[1] :].reshape(len(x), -1, 4)
        out = []
        for w in (len(r.starts) for r in self.data.replayers):
            shift = np.zeros((len(x), w, 2, model.nv))
            shift[:, :, 0, dof + 2] = OFF_HEIGHT * own[:, :w, 0]
            shift[:, :, 1, dof : dof + 3] = OFF_SPEED * own[:, :w, 1:]
            own = own[:, w:]
            out.append(shift)
        return out

    @cached_property
    def prior(self) -> Array:
        """Standard deviation of each number in scaled units: wide for what is asked for, narrow for where windows begin."""
        zeros, begins = self._extra
        return np.concatenate([np.full(len(self.space) + zeros, PRIOR), np.ones(begins)])

    @cached_property
    def covariance(self) -> Array:
        """The same as a covariance, in units of how much errors tell that last for several samples."""
        out = np.diag(self.prior**2)
        if self.room is not None:
            columns = self(self.start[None])[0].reshape(-1, len(self.size)).T
            out[: len(self.space), : len(self.space)] = self.room / np.mean([lasting(c) for c in columns])
        return out

    @cached_property
    def anchor(self) -> Array:
        """Where numbers are that the logs do not tell."""
        return self.start if self.room is None else np.zeros_like(self.start)

    @cached_property
    def coloured(self) -> Colouring:
        """Joints of different trees, zeros of different logs, and starts of different windows share simulations."""
        twin, data = self.data.twin, self.data
        tree_of = np.tile(data.trees, len(data.log))
        log_of, window_of = (np.repeat(numbers, len(data.trees)) for numbers in (data.log, data.window))
        affects = [reaches(twin, p.members or (p.name,), tree_of) for p in self.space.parameters]
        for i in range(len(data.logs) if self.zeros else 0):
            affects += [(log_of == i) & ((tree_of == twin.model.dof_treeid[d.dof]) | (tree_of < 0)) for d in twin.drives]
        for w in range(self._extra[1] // 4):
            affects += [window_of == w] * 4
        return colouring(np.array(affects))

    def finish(self, x: Array, steps: int = LAST_STEPS) -> tuple[Array, Array]:
        """Last steps, with slopes over as wide a stretch as they are worth taking on; where they end, and the last slopes."""
        residual = self(x[None])[0]
        wide = widths(slopes(self, x, *self.bounds, self.coloured, residual, WIDE), residual)
        for _ in range(steps):
            every, before = slopes(self, x, *self.bounds, self.coloured, difference=wide), float(residual @ residual)
            wide = widths(every, residual)
            x, residual = self._step(x, residual, every, slice(None))
            if before - float(residual @ residual) < before / len(residual):  # less than the noise of one sample
                break
        return x, every

    def halves(self, x: Array, every: Array) -> tuple[Array, Array]:
        """What was fitted to everything, and steps from there to what fits either half of the blocks; see `finish`."""
        first = np.repeat(self.data.split.first[self.data.block], len(self.size))
        residual = self(x[None])[0]
        return x, np.stack([self._step(x, residual, every, rows)[0] for rows in (first, ~first)])

    def _step(self, x: Array, residual: Array, every: Array, rows: NDArray[np.bool_] | slice) -> tuple[Array, Array]:
        """A step by slopes to what fits some residuals, as long as is best for these; and the residuals there."""
        r, j = residual[rows], every[rows]
        prior = float(r @ r) / max(len(r), 1) * precision(self.covariance, len(x)) + 1e-12 * np.eye(len(x))
        anchor = x if self.room is None else self.anchor
        step = -np.linalg.solve(j.T @ j + prior, j.T @ r + prior @ (x - anchor))
        tried = np.clip(x + np.array([0.0, 0.3, 0.6, 1.0])[:, None] * step, *self.bounds)
        residuals = self(tried)
        best = int(((residuals[:, rows] ** 2).sum(axis=1) + squared(tried - anchor, prior)).argmin())
        return tried[best], residuals[best]


def solve(objective: Objective, iterations: int = 8, tolerance: float = 1e-2) -> Array:
    """Minimise it; scaled parameters, then zeros, then where windows begin."""
    low, high = objective.bounds
    prior, anchor = objective.covariance, objective.anchor
    return least_squares(objective, objective.start, low, high, prior, iterations, tolerance, objective.coloured, anchor).x


def evolve(objective: Objective, seconds: float = 60.0, seed: int = 1) -> Array:
    """Minimise it by CMA-ES, a population in one batch: slower than least squares, and blind to slopes that mislead it."""
    import time

    import cma

    low, high = objective.bounds
    options = {"bounds": [low.tolist(), high.tolist()], "seed": seed, "verbose": -9, "timeout": seconds, "tolfun": 1e-6}
    search = cma.CMAEvolutionStrategy(objective.start, 0.3, options)
    best, least, end = objective.start, float((objective(objective.start[None])[0] ** 2).sum()), time.monotonic() + seconds
    while not search.stop() and time.monotonic() < end:
        tried = np.array(search.ask())
        costs = (objective(tried) ** 2).sum(axis=1)
        search.tell(list(tried), costs.tolist())
        if costs.min() < least:
            best, least = tried[int(costs.argmin())], float(costs.min())
    return np.asarray(best)


def typical(data: Windows, values: Array) -> Array:
    """Typical error of each column, large ones left aside. Shape: (columns,)."""
    return np.asarray(np.maximum(1.5 * np.median(np.abs(data.errors(values[None])[0]), axis=0), RESOLUTION))


def reaches(twin: Twin, names: Sequence[str], trees: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which errors a parameter can move: those of its own kinematic tree and of the base; all for what has no place."""
    out, links = trees < 0, {twin.model.body(b).name for b in range(1, twin.model.nbody)}
    for name in names:
        _, _, place = name.partition("/")
        if place in twin.joints:
            out |= trees == twin.model.dof_treeid[twin.drives[twin.joints.index(place)].dof]
        elif place in links:
            out |= trees == twin.model.body_treeid[twin.model.body(place).id]
        else:
            out[:] = True
    return out
