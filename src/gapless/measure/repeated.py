"""Repeats: where a robot was told the same thing twice, within a log or between two.

for r in repeats(logs):
    times = r.times(rate=100.0)                           # of the first, on its log's clock
    logs[r.first].at("q", times), logs[r.second].at("q", times + r.lag)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from gapless.arrays import Array, Ints
from gapless.logs import Log

PERIOD = 0.02  # s: of the grid on which commands are compared; longer where commands are rarer
SEED = 2.0  # s: what must be the same at least
POINTS = 9  # of a seed, to look it up by
SHORTEST = 0.5  # s: of logs that begin alike
SAME = 0.002  # of how far a joint is ever told to go: two commands that differ by less are the same
MOVES = 0.02  # of the same: a seed in which no joint is told to move by more says nothing
QUERIES = 400  # seeds that are looked up at most, and
NEIGHBOURS = 64  # places that each is compared with
MOST = 400  # repeats
NEAR = 0.25  # s: in slow motion the same repeat is found at several lags


@dataclass(frozen=True)
class Repeat:
    """The same command at two places."""

    first: int
    """Number of the log."""
    start: float
    """On that log's clock [s]."""
    second: int
    lag: float
    """What to add to a time of the first to get that of the second [s]."""
    length: float
    """[s]"""

    @property
    def end(self) -> float:
        return self.start + self.length

    def times(self, rate: float) -> Array:
        """Times on the first log's clock at so many samples a second."""
        return np.asarray(self.start + np.arange(int(self.length * rate) + 1) / rate)


def repeats(logs: Sequence[Log]) -> list[Repeat]:
    """Every stretch of at least `SEED` in which something moves and that was commanded again; the longest first."""
    period, start, commands = _commands(logs)
    length = round(SEED / period)
    which, sample, points = _seeds(commands, length)
    repeated: list[Repeat] = []
    between: dict[tuple[int, int], list[Repeat]] = {}
    for i, a, j, b in _candidates(which, sample, points, length):
        begin, lag = start[i] + a * period, start[j] - start[i] + (b - a) * period
        known = between.setdefault((i, j), [])
        if any(abs(r.lag - lag) < NEAR and r.start <= begin <= r.end for r in known):
            continue
        first, last, shift = _extended(commands[i], commands[j], a, b, length)
        if last - first + 1 >= length:
            repeated.append(Repeat(i, start[i] + first * period, j, lag + shift * period, (last - first) * period))
            known.append(repeated[-1])
            if len(repeated) >= MOST:
                break
    return sorted(repeated, key=lambda r: -r.length)


def from_the_start(logs: Sequence[Log]) -> list[Repeat]:
    """Pairs of logs that were told the same from their first command on, for half a second or more, even to stand still."""
    period, start, commands = _commands(logs)
    repeated = []
    for i, j in combinations(range(len(commands)), 2):
        most = min(len(commands[i]), len(commands[j]))
        same = np.abs(commands[i][:most] - commands[j][:most]).max(axis=1) < SAME
        length = most if same.all() else int(np.argmin(same))
        if length * period >= SHORTEST:
            repeated.append(Repeat(i, start[i], j, start[j] - start[i], (length - 1) * period))
    return repeated


def command_of(logs: Sequence[Log]) -> str | None:
    """The command that all logs have."""
    return next((s for s in ("q_cmd", "dq_cmd", "tau_cmd") if logs and all(s in log for log in logs)), None)


def _commands(logs: Sequence[Log]) -> tuple[float, list[float], list[Array]]:
    """The period of a grid [s], when it starts in each log [s], and the commands on it; nothing where logs share none.

    Commands are in shares of how far each joint is ever told to go. Shape of each: (samples, joints).
    """
    signal = command_of(logs)
    joints = [j for j in logs[0][signal].columns if all(j in log[signal].columns for log in logs)] if signal else []
    rate = min(log.rate(signal) for log in logs) if signal else 0.0
    if signal is None or not joints or rate <= 0:
        return PERIOD, [], []
    period, start, commands = max(PERIOD, 1 / rate), [], []
    for log in logs:
        clock = log[signal].time
        grid = clock[0] + period * np.arange(int((clock[-1] - clock[0]) / period + 1e-6) + 1)
        start.append(float(clock[0]))
        commands.append(log.at(signal, grid, hold=False)[:, [log[signal].columns.index(j) for j in joints]])
    low, high = (f([f(c, axis=0) for c in commands], axis=0) for f in (np.nanmin, np.nanmax))
    return period, start, [c / np.where(high - low > 1e-9, high - low, 1.0) for c in commands]


def _seeds(commands: Sequence[Array], length: int) -> tuple[Ints, Ints, Array]:
    """Log and sample of every seed in which something moves, and a few points of it to look it up by."""
    offsets = np.linspace(0, length, POINTS).astype(np.int64)
    which, sample, points = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], []
    for i, values in enumerate(commands):
        starts = np.arange(max(0, len(values) - length))
        some = values[starts[:, None] + offsets]  # (seeds, points, joints)
        use = np.isfinite(some).all(axis=(1, 2)) & (np.ptp(some, axis=1).max(axis=1) > MOVES)
        which.append(np.full(use.sum(), i))
        sample.append(starts[use])
        points.append(some[use].reshape(int(use.sum()), offsets.size * values.shape[1]))
    return np.concatenate(which), np.concatenate(sample), np.concatenate(points) if points else np.zeros((0, 1))


def _candidates(which: Ints, sample: Ints, points: Array, length: int) -> list[tuple[int, int, int, int]]:
    """Pairs of seeds whose points nearly agree: log and sample of the earlier and of the later one; the nearest first."""
    from scipy.spatial import cKDTree

    if not len(which):
        return []
    tree = cKDTree(points)
    asked = np.unique(np.linspace(0, len(points) - 1, QUERIES).astype(np.int64))
    # half a sample beside a repeat the points of a quick motion differ by more than commands that are the same may
    radius = 10 * SAME * np.sqrt(points.shape[1])
    distance, hit = (
        np.atleast_2d(a) for a in tree.query(points[asked], k=min(NEIGHBOURS, len(points)), distance_upper_bound=radius)
    )
    rows, columns = np.nonzero(np.isfinite(distance))
    order = np.argsort(distance[rows, columns], kind="stable")
    out = []
    for r, c in zip(rows[order], columns[order], strict=True):
        seeds = [(int(which[k]), int(sample[k])) for k in (asked[r], hit[r, c])]
        (i, a), (j, b) = sorted(seeds)
        if i != j or b - a >= length:
            out.append((i, a, j, b))
    return out


def _extended(one: Array, other: Array, a: int, b: int, length: int) -> tuple[int, int, float]:
    """First and last sample of the first in which both are the same, and by what share of a sample the second is later."""
    shift = _shift(one[a : a + length], other, b)
    if np.abs(one[a : a + length] - _later(other, b, length, shift)).max() >= SAME:
        return a, a, shift
    begin, end = max(0, a - b), min(len(one), len(other) + a - b)
    off = np.abs(one[begin:end] - _later(other, begin + b - a, end - begin, shift)).max(axis=1)
    broken = np.append(np.flatnonzero(~(off < SAME)), end - begin)
    after = np.searchsorted(broken, a - begin)
    first = int(broken[after - 1]) + 1 if after else 0
    return begin + first, begin + int(broken[after]) - 1, shift


def _shift(one: Array, other: Array, b: int) -> float:
    """The share of a sample by which the other must be read later to agree best."""
    before, unshifted, after = (_later(other, b, len(one), s) for s in (-1.0, 0.0, 1.0))
    slope = (after - before) / 2
    size = float((slope**2).sum())
    return float(np.clip(((one - unshifted) * slope).sum() / size, -1, 1)) if size > 0 else 0.0


def _later(values: Array, start: int, count: int, shift: float) -> Array:
    """So many samples from `start` on, each a share of a sample later; the last ones stand. Shape: (count, joints)."""
    whole = int(np.floor(shift))
    rows = np.arange(start + whole, start + whole + count + 1).clip(0, len(values) - 1)
    return np.asarray(values[rows[:-1]] + (shift - whole) * np.diff(values[rows], axis=0))
