"""Windows of logs replayed in a twin for many vectors of parameters at once: what fits, causes and scores are judged by.

data = windows(twin, logs)                    # 2 s each where drives hold positions, half a second elsewhere
data.errors(values)                           # (vectors, samples, columns)
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from gapless.arrays import Array, Bools, Ints
from gapless.errors import BadInput
from gapless.logs import Log
from gapless.measure.signals import difference
from gapless.measure.split import BLOCK, PIECE, Split, Stretch, evenly, split_logs
from gapless.twin import Twin
from gapless.worlds import BASE_SIGNALS, Replayer

FREE_WINDOW = 0.5  # s: what no position loop or no frame holds drifts away from any measurement
RATE = 200.0  # Hz: samples closer than this tell nothing more
BROKEN = np.pi  # rad, or a signal's own unit: the error of a replay whose physics broke
WORLDS = 512  # simulated together: more take memory and are no faster


@dataclass(frozen=True)
class Windows:
    """Windows of several logs, each replayed from its measured first state. Samples are flat, log after log."""

    twin: Twin
    replayers: tuple[Replayer, ...]
    logs: tuple[int, ...]
    """Number of each replayer's log."""
    length: float | None
    """Of the windows [s]; None where each log is one."""
    split: Split
    blocks: Bools
    """Blocks whose samples are compared. Shape: (blocks,)."""
    signals: tuple[str, ...] = ("q",)
    """What is compared, side by side."""
    rate: float = RATE
    """Samples a second that are compared at most."""

    def __post_init__(self) -> None:
        for r in self.replayers:
            for signal in set(self.signals) - set(r.columns):
                name, has = r.log.provenance.source or "the log", ", ".join(r.columns)
                raise BadInput(f"{name}: no {signal} of every joint to compare with, only {has}")

    @cached_property
    def _numbers(self) -> list[Ints]:
        """The block of every sample, by replayer; a window's last sample is of the block that the others are of."""
        last = np.inf if self.length is None else self.length - 1e-6
        return [
            self.split.numbers(i, (r.starts - r.log["q"].time[0])[:, None] + np.minimum(np.nan_to_num(r.time), last))
            for i, r in zip(self.logs, self.replayers, strict=True)
        ]

    @cached_property
    def seen(self) -> list[Bools]:
        """Which samples are compared, by replayer. Shape of each: (windows, samples)."""
        out = []
        for r, number in zip(self.replayers, self._numbers, strict=True):
            keep = np.isfinite(r.time) & np.isfinite(r.measured["q"]).all(axis=2) & self.blocks[number]
            keep[:, np.arange(keep.shape[1]) % max(1, round(r.log.rate("q") / self.rate)) != 0] = False
            out.append(keep)
        return out

    def _flat(self, parts: Sequence[Any]) -> Any:
        """Something about every sample, by replayer (windows, samples, ...), of those that are compared (samples, ...)."""
        return np.concatenate([np.broadcast_to(p, (*s.shape, *p.shape[2:]))[s] for p, s in zip(parts, self.seen, strict=True)])

    @cached_property
    def since(self) -> Array:
        """Since the start of its window [s]. Shape of this and the next four: (samples,)."""
        return self._flat([r.time for r in self.replayers])

    @cached_property
    def clock(self) -> Array:
        """Since the first sample of its log [s]."""
        return self._flat([r.starts[:, None] - r.log["q"].time[0] + r.time for r in self.replayers])

    @cached_property
    def log(self) -> Ints:
        """Place of its log among the replayers."""
        return np.repeat(np.arange(len(self.seen)), [int(seen.sum()) for seen in self.seen])

    @cached_property
    def window(self) -> Ints:
        """Number of its window, over all logs."""
        every = np.split(np.arange(self.count), np.cumsum([len(r.starts) for r in self.replayers])[:-1])
        return self._flat([numbers[:, None] for numbers in every])

    @cached_property
    def block(self) -> Ints:
        """Number of its block."""
        return self._flat(self._numbers)

    @cached_property
    def window_blocks(self) -> Ints:
        """Number of the block that each window begins in. Shape: (windows,)."""
        pairs = zip(self.logs, self.replayers, strict=True)
        return np.concatenate([self.split.numbers(i, r.starts - r.log["q"].time[0]) for i, r in pairs])

    @property
    def count(self) -> int:
        """Of windows."""
        return len(self.window_blocks)

    @cached_property
    def trees(self) -> Ints:
        """The kinematic tree that each column of the errors belongs to; -1 for the base's, which everything moves."""
        joints = [int(self.twin.model.dof_treeid[d.dof]) for d in self.twin.drives]
        return np.array([t for s in self.signals for t in ([-1] * 3 if s in BASE_SIGNALS else joints)], dtype=np.int64)

    @cached_property
    def command(self) -> Array:
        """The commanded positions in force, NaN where there are none. Shape: (samples, joints)."""
        return self._flat([r.command for r in self.replayers])

    def has(self, signal: str) -> bool:
        """Whether every log measured a signal."""
        return all(signal in r.measured for r in self.replayers)

    def measured(self, signal: str) -> Array:
        """A signal of the logs. Shape: (samples, columns)."""
        return self._flat([r.measured[signal] for r in self.replayers])

    def predicted(self, values: Array, shifts: Sequence[Array] | None = None) -> dict[str, Array]:
        """What the twin does, by signal that is compared; NaN where physics broke. Shape of each: (k, samples, columns).

        Args:
            values: over the twin's space, (k, parameters), or by log, (logs, k, parameters).
            shifts: how far off each window starts, by log; see `Replayer`.
        """
        out: dict[str, list[Array]] = {s: [] for s in self.signals}
        for i, (r, seen) in enumerate(zip(self.replayers, self.seen, strict=True)):
            vectors, shift = values[i] if values.ndim == 3 else values, None if shifts is None else shifts[i]
            few = max(1, WORLDS // len(r.starts))
            some = [slice(first, first + few) for first in range(0, len(vectors), few)]
            results = [r(vectors[s], shift=None if shift is None else shift[s]).replayed for s in some]
            for signal, parts in out.items():
                parts.append(np.concatenate([result[signal][:, seen] for result in results]))
        return {signal: np.concatenate(parts, axis=1) for signal, parts in out.items()}

    def errors(self, values: Array, shifts: Sequence[Array] | None = None) -> Array:
        """Predicted minus measured, signal after signal, 0 where nothing was measured. Shape: (k, samples, columns)."""
        parts = []
        for signal, replayed in self.predicted(values, shifts).items():
            measured = self.measured(signal)
            error = np.nan_to_num(difference(signal, replayed, measured), nan=BROKEN)
            error[:, ~np.isfinite(measured).all(axis=1)] = 0.0
            parts.append(error)
        return np.concatenate(parts, axis=2)

    def only(self, blocks: Bools) -> Windows:
        """The same windows, compared in other blocks."""
        return replace(self, blocks=blocks)

    def halved(self) -> Windows:
        """The same windows in the same twin with half the time step."""
        model = copy.copy(self.twin.model)
        model.opt.timestep /= 2
        return self.like(replace(self.twin, model=model))

    def like(self, twin: Twin) -> Windows:
        """The same windows in another twin of the same robot."""
        made = tuple(Replayer(twin, r.log, self.length, starts=r.starts if self.length else None) for r in self.replayers)
        return replace(self, twin=twin, replayers=made)


def holds(twin: Twin) -> bool:
    """Whether drives hold all joints and a frame the base, so that a replay may run free for long."""
    return not twin.floating and twin.all_servos


def windows(
    twin: Twin,
    logs: Sequence[Log],
    split: Split | None = None,
    blocks: Bools | None = None,
    length: float | None = None,
    most: int = 0,
    starts: Sequence[Array] | None = None,
    signals: tuple[str, ...] = ("q",),
    rate: float = RATE,
) -> Windows:
    """Cut logs into windows of at most a block each.

    Args:
        twin: the model.
        logs: what was measured.
        split: of the logs; made unless given.
        blocks: in which windows begin; all unless given.
        length: of the windows [s]; a block where drives hold positions, half a second elsewhere, unless given.
        most: at most so many windows of all logs, evenly spread; 0 for all.
        starts: when windows start instead, by log, on its clock [s].
        signals: what is compared: q, dq, tau, and a floating base's quat, gyro, base_pos, base_vel; every log must have them.
        rate: samples a second that are compared at most.
    """
    split = split or split_logs(logs, twin.joints)
    blocks = np.ones(len(split), dtype=bool) if blocks is None else blocks
    length = length or (BLOCK if holds(twin) else FREE_WINDOW)
    begin = [_starts(twin, log, i, split, blocks, length) for i, log in enumerate(logs)] if starts is None else list(starts)
    count = [len(b) for b in begin]
    if not sum(count):
        raise BadInput("no window of the logs starts with a position of every joint, so the full model cannot be fitted")
    kept = np.isin(np.arange(sum(count)), evenly(sum(count), most))
    begin = [b[k] for b, k in zip(begin, np.split(kept, np.cumsum(count)[:-1]), strict=True)]
    used = tuple(i for i, b in enumerate(begin) if len(b))
    made = tuple(Replayer(twin, logs[i], length, starts=begin[i]) for i in used)
    return Windows(twin, made, used, length, split, blocks, signals, rate)


def runs(
    twin: Twin,
    logs: Sequence[Log],
    split: Split,
    stretches: Sequence[Stretch],
    signals: tuple[str, ...] = ("q",),
    rate: float = RATE,
) -> Windows:
    """Stretches of logs as windows that run free from their first sample: whole logs, or pieces of them."""
    blocks = split.blocks(stretches)
    if all(s.first == split.begin[s.log] and s.end == split.begin[s.log + 1] for s in stretches):
        made = tuple(Replayer(twin, logs[s.log]) for s in stretches)
        return Windows(twin, made, tuple(s.log for s in stretches), None, split, blocks, signals, rate)
    starts = []
    for i, log in enumerate(logs):
        since = [BLOCK * (s.first - split.begin[i]) for s in stretches if s.log == i]
        clock = log["q"].time
        starts.append(clock[np.searchsorted(clock, clock[0] + np.array(since) - 1e-9)])
    return windows(twin, logs, split, blocks, PIECE * BLOCK, starts=starts, signals=signals, rate=rate)


def _starts(twin: Twin, log: Log, number: int, split: Split, blocks: Bools, length: float) -> Array:
    """When windows start in a log, end to end, each from a sample of every joint and at least half of it in the log [s]."""
    clock = log["q"].time
    whole = np.isfinite(log["q"].of(twin.joints)).all(axis=1)
    since = np.asarray(length * np.arange(max(1, int((clock[-1] - clock[0] + 1e-6) / length))), float)
    rows = np.searchsorted(clock, clock[0] + since - 1e-9)
    return clock[rows[whole[rows] & (clock[-1] - clock[rows] >= 0.5 * length) & blocks[split.numbers(number, since)]]]


def mean_by(numbers: Ints, values: Array, count: int) -> Array:
    """Mean of rows with the same number, NaN where there are none. values: (rows, columns); shape: (count, columns)."""
    rows = np.bincount(numbers, minlength=count)[:, None]
    total = np.stack([np.bincount(numbers, weights=c, minlength=count) for c in values.T], axis=1)
    return np.where(rows > 0, total / np.maximum(rows, 1), np.nan)
