"""Fits in the full model: windows of the logs, each started from the measured state, all columns and windows in one batch.

For what truly couples: accelerations of the other joints, link inertia, contact. Joints of different kinematic trees cannot
affect each other, and neither can the encoder zeros of different logs, so their columns share simulations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gapless.errors import BadInput
from gapless.identify.joint import BLOCK
from gapless.identify.ladder import soft
from gapless.identify.solve import Colouring, colouring, least_squares, slopes
from gapless.identify.unknown import Part
from gapless.logs import Log
from gapless.twin import Space, Twin
from gapless.twin.mechanism import is_position_servo
from gapless.twin.space import Array
from gapless.worlds import Replayer

ZERO = 0.02  # rad: how far an encoder's zero may differ from log to log, as a scaled unit
SERVO_WINDOW, TORQUE_WINDOW = 2.0, 0.5  # s: a robot without position loops drifts away from any measurement
ROBUST = 3.0  # times the typical error of a joint: beyond it errors count less than their square
STRIDE = 200.0  # Hz: samples closer than this tell nothing more
SMALLEST = 1e-4  # rad: no encoder of a robot sees less


@dataclass(frozen=True)
class Windows:
    """Windows of several logs, to be predicted from their first samples."""

    twin: Twin
    replayers: tuple[Replayer, ...]
    log_of: NDArray[np.int64]
    """Index of each replayer's log."""
    window: float
    """[s]"""

    def errors(self, values: Array) -> list[Array]:
        """Replayed minus measured positions, NaN where there is no sample; by log. Shape: (k, windows, samples, joints).

        values: over the twin's space, (k, parameters), or by log, (logs, k, parameters).
        """
        out = []
        for i, replayer in enumerate(self.replayers):
            error = replayer(values[i] if values.ndim == 3 else values).error("q")
            error[np.broadcast_to(np.isnan(replayer.time)[None, :, :, None], error.shape)] = np.nan
            out.append(error[:, :, :: _every(replayer)])
        return out


def windows(
    twin: Twin,
    logs: Sequence[Log],
    keep: Sequence[NDArray[np.bool_]] | None = None,
    seconds: float = 20.0,
    most: int = 0,
    starts: Sequence[Array] | None = None,
    length: float | None = None,
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
    """
    servo = all(is_position_servo(twin.model, d.actuator) for d in twin.drives)
    length = length or (SERVO_WINDOW if servo else TORQUE_WINDOW)
    begins: list[Array] = []
    for i, log in enumerate(logs):
        clock = log["q"].time
        whole = np.isfinite(np.column_stack([log["q"].column(j) for j in twin.joints])).all(axis=1)
        count = max(1, int((min(seconds, clock[-1] - clock[0]) + 1e-6) / length))
        rows = np.searchsorted(clock, clock[0] + length * np.arange(count) - 1e-9)
        good = whole[rows] & (clock[-1] - clock[rows] >= 0.5 * length)
        if keep is not None:
            mine = np.repeat(keep[i], round(BLOCK / length))
            good &= np.pad(mine, (0, max(0, count - len(mine))))[:count]
        begins.append(clock[rows[good]] if starts is None else starts[i])
    total = sum(map(len, begins))
    if not total:
        raise BadInput(
            "no window of the logs starts with a position of every joint, so nothing can be fitted in the full model"
        )
    if most and total > most:
        flat = np.zeros(total, dtype=bool)
        flat[np.linspace(0, total - 1, most).round().astype(int)] = True
        parts = np.split(flat, np.cumsum([len(b) for b in begins])[:-1])
        begins = [b[p] for b, p in zip(begins, parts, strict=True)]
    used = [i for i, b in enumerate(begins) if len(b)]
    made = tuple(Replayer(twin, logs[i], window=length, starts=begins[i]) for i in used)
    return Windows(twin, made, np.array(used, dtype=np.int64), length)


@dataclass(frozen=True)
class Objective:
    """Weighted errors of windows as a function of some parameters, and of each log's own encoder zeros where asked for."""

    data: Windows
    space: Space
    """What is free: a part of the twin's space."""
    base: Array
    """Everything, over the twin's space; the fit starts here."""
    size: Array
    """Typical error of each joint [rad]: residuals count in units of it."""
    zeros: bool = False

    @cached_property
    def _shapes(self) -> list[tuple[int, int]]:
        """Windows and samples of each log."""
        return [(len(r.starts), len(range(0, r.time.shape[1], _every(r)))) for r in self.data.replayers]

    @cached_property
    def _at(self) -> list[int]:
        return [self.data.twin.space.names.index(n) for n in self.space.names]

    @cached_property
    def _extra(self) -> int:
        return len(self.data.replayers) * len(self.data.twin.joints) if self.zeros else 0

    @cached_property
    def start(self) -> Array:
        return np.concatenate([self.space.to_scaled(self.space.clip(self.base[self._at])), np.zeros(self._extra)])

    @cached_property
    def bounds(self) -> tuple[Array, Array]:
        far = np.full(self._extra, 5.0)
        low, high = self.space.to_scaled(self.space.low), self.space.to_scaled(self.space.high)
        return np.concatenate([low, -far]), np.concatenate([high, far])

    def values(self, x: Array) -> Array:
        """Over the twin's space, without the zeros of single logs. x: (k, ...); shape: (k, parameters)."""
        out = np.tile(self.base, (len(x), 1))
        out[:, self._at] = self.space.clip(self.space.from_scaled(x[:, : len(self.space)]))
        return out

    def own_zeros(self, x: Array) -> dict[int, Array]:
        """Log to the zeros of its encoders [rad]."""
        own = ZERO * x[len(self.space) :].reshape(-1, len(self.data.twin.joints))
        return {int(self.data.log_of[i]): z for i, z in enumerate(own)}

    def __call__(self, x: Array) -> Array:
        """Residuals, (k, residuals)."""
        twin, logs = self.data.twin, len(self.data.replayers)
        full = np.tile(self.values(x), (logs, 1, 1))
        if self.zeros:
            offsets = [twin.space.names.index(f"offset.encoder/{j}") for j in twin.joints]
            own = ZERO * x[:, len(self.space) :].reshape(len(x), logs, len(twin.joints))
            full[:, :, offsets] += np.swapaxes(own, 0, 1)
        flat = [np.nan_to_num(e / self.size).reshape(len(x), -1) for e in self.data.errors(twin.space.clip(full))]
        return soft(np.clip(np.concatenate(flat, axis=1), -1e3, 1e3), ROBUST)

    @cached_property
    def coloured(self) -> Colouring:
        """Joints of different trees, and zeros of different logs, share simulations."""
        twin = self.data.twin
        joints, logs = len(twin.joints), len(self._shapes)
        joint_of = np.concatenate([np.tile(np.arange(joints), w * s) for w, s in self._shapes])
        log_of = np.repeat(np.arange(logs), [w * s * joints for w, s in self._shapes])
        tree = np.array([twin.model.dof_treeid[d.dof] for d in twin.drives])
        affects = [_reach(twin, p.members or (p.name,), tree)[joint_of] for p in self.space.parameters]
        for i in range(logs if self.zeros else 0):
            affects += [(log_of == i) & (tree == tree[j])[joint_of] for j in range(joints)]
        return colouring(np.array(affects))

    def part(self, x: Array) -> Part:
        """The residuals and their slopes there."""
        jacobian = slopes(self, x, *self.bounds, self.coloured)[:, : len(self.space)]
        joints = len(self.data.twin.joints)
        count = np.cumsum([0] + [w for w, _ in self._shapes])
        block = [np.repeat(np.arange(w) + count[i], s * joints) for i, (w, s) in enumerate(self._shapes)]
        return Part(self.space.names, self(x[None])[0], jacobian, np.concatenate(block), joints)


def solve(objective: Objective, iterations: int = 8, prior: float = 3.0) -> Array:
    """Minimise it; scaled parameters, then zeros."""
    low, high = objective.bounds
    return least_squares(objective, objective.start, low, high, prior, iterations, 1e-2, objective.coloured).x


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
    """Typical error of each joint, large ones left aside [rad]. Shape: (joints,)."""
    flat = np.concatenate([e.reshape(-1, e.shape[-1]) for e in data.errors(values[None])])
    return np.asarray(np.maximum(1.5 * np.nanmedian(np.abs(flat), axis=0), SMALLEST))


def _every(replayer: Replayer) -> int:
    return max(1, round(replayer.log.rate("q") / STRIDE))


def _reach(twin: Twin, names: Sequence[str], tree: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which joints a parameter can move: those of its own kinematic tree; all for what has no place. Shape: (joints,)."""
    out = np.zeros(len(tree), dtype=bool)
    for name in names:
        _, _, place = name.partition("/")
        if place in twin.joints:
            out |= tree == tree[twin.joints.index(place)]
        elif place:
            out |= tree == twin.model.body_treeid[twin.model.body(place).id]
        else:
            out[:] = True
    return out
