"""The usable part of a log: missing, garbled and unreadable samples are left out, and named."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from gapless.arrays import Array, Bools
from gapless.delay import rows_in_force
from gapless.errors import BadInput
from gapless.logs import HELD, Log, Signal

FAR = 1000.0  # rad, m or Nm: beyond are bytes that are no measurement
FASTEST, SMALL = 50.0, 0.05  # rad/s that no joint goes and comes back with from sample to sample; rad that noise may do so
DAMAGED = 0.2  # share of impossible samples from which on the others around them are chance
HOLE = 0.5  # s without a readable command: longer, and nobody knows what the robot was told
WORTH = 0.01  # share of samples that is worth a sentence


def usable(log: Log, joints: Sequence[str], commands: Mapping[str, Sequence[str]]) -> tuple[Log, list[str]]:
    """The longest stretch without damage, and sentences on what was left out; the same log if it has none.

    Args:
        log: with rising clocks.
        joints: whose positions count.
        commands: signals that the joints were told, and the joints of each.
    """
    name, clock = log.name, log["q"].time
    q = log["q"].of(joints)
    wild = _wild(clock, q)
    gone = ~np.isfinite(q).all(axis=1) | wild.any(axis=1)
    jumps = f"q of {joints[int(wild.sum(axis=0).argmax())]} jumps as no joint does"
    bad = [(a, b, jumps) for a, b in _damaged(clock, wild)]
    bad += [(a, b, "nothing was recorded") for a, b in _pauses(clock, [log[signal] for signal in commands])]
    held: dict[str, Array] = {}
    for signal, driven in commands.items():
        held[signal], holes = _held(log[signal], driven)
        bad += [(a, b, f"{signal} is not readable") for a, b in holes]
    first, last = _longest(clock[0], clock[-1], [(a, b) for a, b, _ in bad])
    good = (clock >= first) & (clock <= last) & ~gone
    for a, b, _ in bad:
        good &= (clock < a) | (clock > b)
    if good.sum() < 2:
        why = bad[0][2] if bad else "no sample has a position of every joint (NaN)"
        raise BadInput(f"{name}: {why}, and no usable stretch is left; record it again")
    first, last = clock[good][[0, -1]]
    kept = (clock >= first) & (clock <= last)
    if kept.all() and not gone.any() and not bad and all(held[s] is log[s].values for s in held):
        return log, []
    notes = []
    if last - first < np.ptp(clock) - HOLE:
        why = " and ".join(dict.fromkeys([w for _, _, w in bad] or ["q is missing (NaN)"]))
        used = f"{first - clock[0]:.1f} to {last - clock[0]:.1f} s of its {np.ptp(clock):.1f} s"
        notes.append(f"{name}: only {used} are used; elsewhere {why}")
    for signal, values in held.items():
        during = (log[signal].time >= first) & (log[signal].time <= last)
        lost = int((values != log[signal].values)[during].any(axis=1).sum())
        if lost > WORTH * during.sum():
            notes.append(f"{name}: {lost} of {during.sum()} commands ({signal}) are not readable: the ones before were kept")
    missing = int((gone & kept).sum())
    if missing > WORTH * kept.sum():
        notes.append(f"{name}: {missing} of {kept.sum()} samples are missing or impossible, and were left out")
    q = log["q"].values.copy()
    q[:, [log["q"].columns.index(j) for j in joints]] = np.where(wild, np.nan, log["q"].of(joints))
    return _cut(log, {"q": q, **held}, first, last), notes


def _wild(clock: Array, q: Array) -> Bools:
    """Values that no joint can have: far off, or away and back between neighbours. Shape: that of q (samples, joints)."""
    with np.errstate(invalid="ignore", over="ignore"):
        wild = np.abs(q) > FAR
    step = np.diff(np.where(wild, np.nan, q), axis=0)
    least = np.maximum(FASTEST * np.diff(clock), SMALL)[:, None]
    fast = np.abs(step) > least
    wild[1:-1] |= fast[1:] & fast[:-1] & (step[1:] * step[:-1] < 0)
    return wild


def _pauses(clock: Array, commands: Sequence[Signal]) -> Iterator[tuple[float, float]]:
    """Stretches without positions and without commands, which came often otherwise: what was told there is not known."""
    often = [c.time for c in commands if len(c.time) > 1 and np.median(np.diff(c.time)) < HOLE / 2]
    for row in np.flatnonzero(np.diff(clock) > HOLE):
        a, b = clock[row], clock[row + 1]
        if any(not np.any((times > a) & (times < b)) for times in often):
            yield float(a), float(b)


def _damaged(clock: Array, wild: Bools) -> Iterator[tuple[float, float]]:
    """Stretches in which so many samples are impossible that the others are chance."""
    number = ((clock - clock[0]) / HOLE).astype(np.int64)
    share = np.bincount(number, weights=wild.any(axis=1)) / np.maximum(np.bincount(number), 1)
    much = np.convolve(share > DAMAGED, np.ones(3), mode="same") > 0  # it may begin within the stretch before
    rows = np.flatnonzero(much[number])
    for run in np.split(rows, np.flatnonzero(np.diff(rows) > 1) + 1):
        if len(run):
            yield float(clock[run[0]]), float(clock[run[-1]])


def _held(signal: Signal, joints: Sequence[str]) -> tuple[Array, list[tuple[float, float]]]:
    """Commands, where one is unreadable the last one before, as a drive would; and stretches too long for that."""
    places = [signal.columns.index(j) for j in joints]
    with np.errstate(invalid="ignore"):
        fine = np.abs(signal.values[:, places]) <= FAR
    if fine.all():
        return signal.values, []
    values, holes = signal.values.copy(), []
    for place, ok in zip(places, fine.T, strict=True):
        rows = np.flatnonzero(ok)
        values[:, place] = values[rows[np.maximum(np.cumsum(ok) - 1, 0)], place] if len(rows) else 0.0
        for a, b in pairwise([-1, *rows.tolist(), len(ok)]):
            start, end = float(signal.time[max(a, 0)]), float(signal.time[min(b, len(ok) - 1)])
            if b - a > 1 and (end - start > HOLE or a < 0):  # what is before the first command was never said
                holes.append((start, end))
    return values, holes


def _longest(start: float, end: float, bad: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """The longest stretch between others."""
    best, free = (start, start), start
    for a, b in [*sorted(bad), (end, end)]:
        best = max(best, (free, a), key=lambda s: s[1] - s[0])
        free = max(free, b)
    return best


def _cut(log: Log, cleaned: Mapping[str, Array], first: float, last: float) -> Log:
    """A stretch of a log, some of its signals with other values; the command in force at its start stays."""
    signals = {}
    for name, signal in log.signals.items():
        since = signal.time[rows_in_force(signal.time, first)] if name in HELD else first
        keep = (signal.time >= since) & (signal.time <= last)
        host = None if signal.host_time is None else signal.host_time[keep]
        values = cleaned.get(name, signal.values)[keep]
        signals[name] = replace(signal, time=signal.time[keep], values=values, host_time=host)
    return replace(log, signals=signals)
