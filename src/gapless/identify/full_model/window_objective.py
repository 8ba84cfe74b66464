"""Fits in the full model: windows of the logs, each started from the measured state, all columns and windows in one batch.

For what truly couples: accelerations of the other joints, link inertia, contact. Joints of different kinematic trees cannot
affect each other, nor can the encoder zeros of different logs or the starts of different windows, so their columns share
simulations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gapless.arrays import Array
from gapless.errors import BadInput
from gapless.identify.least_squares import Colouring, colouring, least_squares, slopes, widths
from gapless.identify.per_joint.kernel import BLOCK
from gapless.identify.per_joint.problem import soft
from gapless.identify.uncertainty import Part
from gapless.logs import Log
from gapless.robots import base_joint
from gapless.twin import Space, Twin
from gapless.worlds import BASE_SIGNALS as BASE
from gapless.worlds import Replayer

ZERO = 0.02  # rad: how far an encoder's zero may differ from log to log, as a scaled unit
HELD_WINDOW, FREE_WINDOW = 2.0, 0.5  # s: what no position loop or no frame holds drifts away from any measurement
OFF_HEIGHT, OFF_SPEED = 0.003, 0.03  # m, m/s: how wrong legs and IMU are about where a floating base starts
ROBUST = 3.0  # times the typical error of a joint: beyond it errors count less than their square
STRIDE = 200.0  # Hz: samples closer than this tell nothing more
SMALLEST = 1e-4  # rad, Nm, m: no sensor of a robot sees less
PRIOR = 3.0  # scaled units
LAST_STEPS = 3
WIDE = 0.1  # scaled units: where to begin with slopes that say what is known


@dataclass(frozen=True)
class Windows:
    """Windows of several logs, to be predicted from their first samples."""

    twin: Twin
    replayers: tuple[Replayer, ...]
    log_of: NDArray[np.int64]
    """Index of each replayer's log."""
    window: float
    """[s]"""
    blocks: tuple[NDArray[np.int64], ...]
    """Number of the block in its log that a sample belongs to, -1 for samples that are not compared; by replayer. Shape of
    each: (windows, samples)."""
    signals: tuple[str, ...] = ("q",)
    """What is compared."""

    @cached_property
    def trees(self) -> NDArray[np.int64]:
        """The kinematic tree that each column of the errors belongs to; -1 for the base's, which everything moves."""
        own = [int(self.twin.model.dof_treeid[d.dof]) for d in self.twin.drives]
        return np.array([t for s in self.signals for t in ([-1] * 3 if s in BASE else own)], dtype=np.int64)

    def errors(self, values: Array, shifts: Sequence[Array] | None = None) -> list[Array]:
        """Replayed minus measured, signal after signal, NaN where there is no sample; by log.

        values: over the twin's space, (k, parameters), or by log, (logs, k, parameters). shifts: see `Replayer`, by log.
        Shape of each: (k, windows, samples, columns).
        """
        out = []
        for i, replayer in enumerate(self.replayers):
            result = replayer(values[i] if values.ndim == 3 else values, shift=None if shifts is None else shifts[i])
            error = np.concatenate([result.error(s) for s in self.signals], axis=3)
            error = error[:, :, :: _every(replayer)]
            error[:, self.blocks[i] < 0] = np.nan
            out.append(error)
        return out


def windows(
    twin: Twin,
    logs: Sequence[Log],
    keep: Sequence[NDArray[np.bool_]] | None = None,
    seconds: float = 20.0,
    most: int = 0,
    starts: Sequence[Array] | None = None,
    length: float | None = None,
    signals: tuple[str, ...] = ("q",),
    free: bool = False,
) -> Windows:
    """Cut logs into windows.

    Args:
        twin: the model.
        logs: what was measured.
        keep: blocks of `identify.joint.BLOCK` to use, by log; all unless given.
        seconds: of each log that are used.
        most: at most so many windows of all logs, evenly spread; 0 for all.
        starts: when windows start instead, by log [s].
        length: of the windows instead of the usual one [s]; as long as the logs, they run free.
        free: one window from the first sample to the last instead, of which the blocks in `keep` are compared.
        signals: what is compared: q, dq, tau, and a floating base's quat, gyro, base_pos, base_vel; every log must have them.
    """
    holds = not twin.floating and twin.all_servos
    length = length or (HELD_WINDOW if holds else FREE_WINDOW)
    begins: list[Array] = []
    for i, log in enumerate(logs):
        clock = log["q"].time
        whole = np.isfinite(np.column_stack([log["q"].column(j) for j in twin.joints])).all(axis=1)
        count = max(1, int((min(seconds, clock[-1] - clock[0]) + 1e-6) / length))
        rows = np.searchsorted(clock, clock[0] + length * np.arange(count) - 1e-9)
        good = whole[rows] & (clock[-1] - clock[rows] >= 0.5 * length)
        if keep is not None and not free:
            mine = np.repeat(keep[i], round(BLOCK / length))
            good &= np.pad(mine, (0, max(0, count - len(mine))))[:count]
        begins.append(clock[rows[good]] if starts is None else starts[i])
    total = sum(map(len, begins))
    if not total:
        raise BadInput(
            "no window of the logs starts with a position of every joint, so nothing can be fitted in the full model"
        )
    if most and total > most and not free:
        flat = np.zeros(total, dtype=bool)
        flat[np.linspace(0, total - 1, most).round().astype(int)] = True
        parts = np.split(flat, np.cumsum([len(b) for b in begins])[:-1])
        begins = [b[p] for b, p in zip(begins, parts, strict=True)]
    used = [i for i, b in enumerate(begins) if len(b)]
    if free:
        made = tuple(Replayer(twin, logs[i], end=seconds) for i in used)
    else:
        made = tuple(Replayer(twin, logs[i], window=length, starts=begins[i]) for i in used)
    for signal in signals:
        lacks = next((r.log for r in made if signal not in r.columns), None)
        if lacks is not None:
            has = ", ".join(made[0].columns)
            raise BadInput(f"{lacks.name}: no {signal} of every joint to fit to (it has {has})")
    blocks = tuple(_blocks(r, None if keep is None else keep[i]) for r, i in zip(made, used, strict=True))
    return Windows(twin, made, np.array(used, dtype=np.int64), length, blocks, signals)


def _blocks(replayer: Replayer, keep: NDArray[np.bool_] | None) -> NDArray[np.int64]:
    """The block of each sample of each window; -1 where there is no sample, or its block is not kept."""
    time = replayer.time[:, :: _every(replayer)]
    since = np.nan_to_num(time) + (replayer.starts - replayer.log["q"].time[0])[:, None]
    block = ((since + 1e-9) / BLOCK).astype(np.int64)
    if keep is not None and len(replayer.starts) == 1:  # a free run: what it passes through on the way counts only where kept
        block = np.where(keep[np.minimum(block, len(keep) - 1)], block, -1)
    return np.where(np.isnan(time), -1, block)


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

    @cached_property
    def _shapes(self) -> list[tuple[int, int]]:
        """Windows and samples of each log."""
        return [(b.shape[0], b.shape[1]) for b in self.data.blocks]

    @cached_property
    def _at(self) -> tuple[list[int], list[int]]:
        """Columns of `space`, and where they go in the twin's; a tied one goes to several places."""
        names = self.data.twin.space.names
        pairs = [(i, names.index(m)) for i, p in enumerate(self.space.parameters) for m in p.members or (p.name,)]
        return [i for i, _ in pairs], [j for _, j in pairs]

    @cached_property
    def _extra(self) -> tuple[int, int]:
        """How many zeros, and how many numbers for where windows begin."""
        joints, windows = len(self.data.twin.joints), sum(w for w, _ in self._shapes)
        return len(self.data.replayers) * joints * self.zeros, 4 * windows * self.begins

    @cached_property
    def start(self) -> Array:
        take, put = self._at
        values = np.empty(len(self.space))
        values[take] = self.base[put]
        return np.concatenate([self.space.to_scaled(self.space.clip(values)), np.zeros(sum(self._extra))])

    @cached_property
    def bounds(self) -> tuple[Array, Array]:
        far = np.full(sum(self._extra), 5.0)
        low, high = self.space.to_scaled(self.space.low), self.space.to_scaled(self.space.high)
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
        return {int(self.data.log_of[i]): z for i, z in enumerate(own)}

    def __call__(self, x: Array) -> Array:
        """Residuals, (k, residuals)."""
        twin, logs = self.data.twin, len(self.data.replayers)
        full = np.tile(self.values(x), (logs, 1, 1))
        if self.zeros:
            offsets = [twin.space.names.index(f"offset.encoder/{j}") for j in twin.joints]
            own = ZERO * x[:, len(self.space) : len(self.space) + self._extra[0]].reshape(len(x), logs, len(twin.joints))
            full[:, :, offsets] += np.swapaxes(own, 0, 1)
        errors = self.data.errors(twin.space.clip(full), self._shifts(x) if self.begins else None)
        flat = [np.nan_to_num(e / self.size).reshape(len(x), -1) for e in errors]
        return soft(np.clip(np.concatenate(flat, axis=1), -1e3, 1e3), ROBUST)

    def _shifts(self, x: Array) -> list[Array]:
        """How far off each window starts, by log. Shape of each: (k, windows, 2, nv)."""
        model = self.data.twin.model
        joint = base_joint(model)
        assert joint is not None
        dof = int(model.jnt_dofadr[joint])
        own = x[:, len(x[0]) - self._extra[1] :].reshape(len(x), -1, 4)
        out = []
        for w, _ in self._shapes:
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
    def coloured(self) -> Colouring:
        """Joints of different trees, zeros of different logs, and starts of different windows share simulations."""
        twin, trees = self.data.twin, self.data.trees
        columns, logs = len(trees), len(self._shapes)
        tree_of = np.concatenate([np.tile(trees, w * s) for w, s in self._shapes])
        log_of = np.repeat(np.arange(logs), [w * s * columns for w, s in self._shapes])
        affects = [_reach(twin, p.members or (p.name,), tree_of) for p in self.space.parameters]
        for i in range(logs if self.zeros else 0):
            affects += [(log_of == i) & ((tree_of == twin.model.dof_treeid[d.dof]) | (tree_of < 0)) for d in twin.drives]
        for w in range(self._extra[1] // 4):
            affects += [self._window_of == w] * 4
        return colouring(np.array(affects))

    @cached_property
    def _window_of(self) -> NDArray[np.int64]:
        """The window of each residual."""
        count = np.cumsum([0] + [w for w, _ in self._shapes])
        columns = len(self.data.trees)
        return np.concatenate([np.repeat(np.arange(w) + count[i], s * columns) for i, (w, s) in enumerate(self._shapes)])

    def finish(self, x: Array) -> tuple[Array, Part]:
        """Last steps with the slopes that the intervals need anyway; and the residuals and slopes there, for the intervals.

        What other zeros and starts of windows could do instead does not count as known.
        """
        residual = self(x[None])[0]
        wide = widths(slopes(self, x, *self.bounds, self.coloured, residual, WIDE), residual)
        for _ in range(LAST_STEPS):
            every, before = slopes(self, x, *self.bounds, self.coloured, difference=wide), float(residual @ residual)
            wide = widths(every, residual)
            prior = before / max(len(residual), 1) * np.diag(1 / self.prior**2) + 1e-12 * np.eye(len(x))
            step = -np.linalg.solve(every.T @ every + prior, every.T @ residual)
            tried = np.clip(x + np.array([0.0, 0.3, 0.6, 1.0])[:, None] * step, *self.bounds)
            residuals = self(tried)
            best = int((residuals**2).sum(axis=1).argmin())
            x, residual = tried[best], residuals[best]
            if before - float(residual @ residual) < before / len(residual):  # less than the noise of one sample
                break
        own, others = every[:, : len(self.space)], every[:, len(self.space) :]
        if others.size:
            inner = others.T @ others + prior[len(self.space) :, len(self.space) :]
            own = own - others @ np.linalg.solve(inner, others.T @ own)
        return x, Part(self.space.names, residual, own, self._block_of, len(self.data.trees))

    @cached_property
    def _block_of(self) -> NDArray[np.int64]:
        """The stretch of time that each residual belongs to: a block of a log, or a window."""
        first, out = 0, []
        for blocks in self.data.blocks:
            last = int(blocks.max()) + 1
            own = np.maximum(blocks, 0) if len(blocks) == 1 else np.arange(len(blocks))[:, None] + 0 * blocks
            out.append(np.repeat(own.ravel() + first, len(self.data.trees)))
            first += last if len(blocks) == 1 else len(blocks)
        return np.concatenate(out)


def solve(objective: Objective, iterations: int = 8, tolerance: float = 1e-2) -> Array:
    """Minimise it; scaled parameters, then zeros, then where windows begin."""
    low, high = objective.bounds
    return least_squares(objective, objective.start, low, high, objective.prior, iterations, tolerance, objective.coloured).x


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
    flat = np.concatenate([e.reshape(-1, e.shape[-1]) for e in data.errors(values[None])])
    return np.asarray(np.maximum(1.5 * np.nanmedian(np.abs(flat), axis=0), SMALLEST))


def _every(replayer: Replayer) -> int:
    return max(1, round(replayer.log.rate("q") / STRIDE))


def _reach(twin: Twin, names: Sequence[str], trees: NDArray[np.int64]) -> NDArray[np.bool_]:
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
