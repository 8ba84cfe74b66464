"""Replay experiments: the same commands played again, on the same robot or in its twin, and how the two runs part.

    found = experiment([read("monday.mcap"), read("tuesday.mcap")])           # how much does the robot differ from itself?
    found = experiment([read("twin.mcap"), read("robot.mcap")])               # a log with meta "twin" was recorded in the twin
    found = experiment([read("monday.mcap"), read("tuesday.mcap")], twin)     # both

A log's commands in the twin, from the robot's first state, are the twin's commands on the robot with the start set right.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gapless.arrays import Array
from gapless.errors import BadInput, PhysicsError
from gapless.gap import divergence_page
from gapless.gap.distribution import Distances, between
from gapless.gap.growth import SHARE, Growth, growth, smoothed
from gapless.logs import Log
from gapless.measure import SETTLE, Repeat, command_of, from_the_start, must_compare, one_robot, repeats, same_drive, split_logs
from gapless.report import Result
from gapless.twin import Origin, Twin, origin_of
from gapless.worlds import replay

MOST_PAIRS = 40
MOST_POINTS = 300  # of a curve
RATE = 100.0  # Hz: of the curves
STILL = 0.01  # of how much the liveliest joint moves
ALIKE = 0.05  # s: in which runs must not be apart yet


@dataclass(frozen=True)
class Curve:
    """Root mean square distance over joints, as a share of how much each moves, over time: the range of all pairs, and the
    middle one. Shape of each: (points,)."""

    time: Array
    """Since the start [s]."""
    low: Array
    middle: Array
    high: Array


@dataclass(frozen=True)
class Divergence:
    """How runs of the same commands part."""

    pairs: tuple[str, ...]
    """Which runs."""
    joints: tuple[str, ...]
    size: Array
    """Root mean square difference of positions over time and pairs, by joint [rad]. Shape: (joints,)."""
    growth: Growth
    curve: Curve

    @property
    def seconds(self) -> float:
        """How long runs were compared."""
        return float(self.curve.time[-1])


@dataclass(frozen=True, repr=False)
class Experiment(Result):
    """What the logs allow to say."""

    NAME = "experiment"
    PAGE = divergence_page

    itself: Divergence | None
    """The robot beside itself."""
    twin: Divergence | None
    """The twin beside the robot."""
    distances: Distances | None
    """Between the states of the first log and of the others, where there is nothing to compare over time."""
    note: str
    """Why there is not."""
    origin: Origin


@dataclass(frozen=True)
class _Pair:
    """Two runs of the same commands at the same times."""

    label: str
    time: Array
    one: Array
    """Positions. Shape: (samples, joints)."""
    other: Array


def experiment(logs: Sequence[Log], twin: Twin | None = None) -> Experiment:
    """Find what was commanded twice, and compare.

    Args:
        logs: of one robot; those with `twin` in their meta were recorded in its twin.
        twin: plays every log's commands too, if given.
    """
    one_robot(logs)
    if twin is not None:
        must_compare(twin, logs)
    joints = logs[0]["q"].columns if twin is None else twin.joints
    scale, servo = _scale(logs, joints), command_of(logs) == "q_cmd"
    itself: list[_Pair] = []
    other: list[_Pair] = []
    for r in _again(logs):
        pair = _pair(logs, r, joints)
        # drives that hold positions bring runs together, all others must start together
        if pair is not None and (servo or _apart(pair, scale)[: int(ALIKE * RATE)].max() < SHARE):
            mixed = bool(logs[r.first].meta.get("twin")) != bool(logs[r.second].meta.get("twin"))
            (other if mixed else itself).append(pair)
    if twin is not None:
        other += [_played(twin, log) for log in logs if not log.meta.get("twin")]
    if itself or other:
        ours, theirs = (_divergence(pairs, joints, scale) for pairs in (itself, other))
        return Experiment(ours, theirs, None, "", origin_of(twin, logs))
    if len(logs) < 2:
        raise BadInput(
            f"{logs[0].name}: nothing in it was commanded twice from the same state: name a second log of the same commands"
        )
    other_gains = [r for r in from_the_start(logs) if not same_drive(logs[r.first], logs[r.second])]
    note = "nothing was commanded twice from the same state"
    if other_gains:
        one, two = (logs[k].name for k in (other_gains[0].first, other_gains[0].second))
        note = f"{one} and {two} have the same commands, but drives with other gains"
    return Experiment(None, None, _unaligned(logs), note, origin_of(twin, logs))


def _again(logs: Sequence[Log]) -> list[Repeat]:
    """What was commanded twice: from the start of two logs where that is so, else wherever it was; the longest first."""
    starts = from_the_start(logs)
    known = {(r.first, r.second) for r in starts}
    # a drive that does not hold positions is elsewhere by the time that a command is repeated
    found = [r for r in repeats(logs) if (r.first, r.second) not in known] if command_of(logs) == "q_cmd" else []
    settled = [replace(r, start=r.start + SETTLE, length=r.length - SETTLE) for r in found if r.length > 2 * SETTLE]
    alike = [r for r in starts + settled if same_drive(logs[r.first], logs[r.second])]
    return sorted(alike, key=lambda r: -r.length)[:MOST_PAIRS]


def _pair(logs: Sequence[Log], r: Repeat, joints: Sequence[str]) -> _Pair | None:
    one, other = logs[r.first], logs[r.second]
    times = r.times(RATE)
    inside = (times >= one["q"].time[0]) & (times <= one["q"].time[-1])
    inside &= (times + r.lag >= other["q"].time[0]) & (times + r.lag <= other["q"].time[-1])
    times = times[inside]
    if len(times) < RATE / 2:
        return None
    ours, theirs = (
        log.at("q", t)[:, [log["q"].columns.index(j) for j in joints]] for log, t in ((one, times), (other, times + r.lag))
    )
    where = f" at {r.start - one.start:.1f} and {r.start + r.lag - one.start:.1f} s" if one is other else ""
    label = f"{one.name}{where}" if one is other else f"{one.name} and {other.name}"
    return _Pair(label, times - times[0], ours, theirs)


def _played(twin: Twin, log: Log) -> _Pair:
    """A log beside the twin that is told the same."""
    result = replay(twin, log)
    if result.broke:
        raise PhysicsError(
            f"{log.name}: the physics of {twin.name} breaks when it plays these commands ({result.broke}): use a smaller time "
            "step, or check its inertias, armature and gains"
        )
    seen = np.isfinite(result.time[0])
    since = result.time[0][seen]
    grid = np.arange(int(since[-1] * RATE) + 1) / RATE
    ours, theirs = (
        np.stack([np.interp(grid, since, c) for c in rows[seen].T], axis=1)
        for rows in (result.measured["q"][0], result.replayed["q"][0, 0])
    )
    return _Pair(f"{log.name} and {twin.name}", grid, ours, theirs)


def _scale(logs: Sequence[Log], joints: Sequence[str]) -> Array:
    """How much each joint moves, infinite where it stands still and says nothing. Shape: (joints,)."""
    columns = ([log["q"].column(j) for log in logs] for j in joints)
    size = np.array([np.nanstd(np.concatenate([c - np.nanmean(c) for c in each])) for each in columns])
    return np.where(size > STILL * max(float(size.max()), 1e-9), size, np.inf)


def _apart(pair: _Pair, scale: Array) -> Array:
    """Share of the motion by which both runs differ, over time. Shape: (samples,)."""
    moving = np.isfinite(scale)
    return np.sqrt(np.nanmean(((pair.one - pair.other)[:, moving] / scale[moving]) ** 2, axis=1))


def _divergence(pairs: Sequence[_Pair], joints: Sequence[str], scale: Array) -> Divergence | None:
    if not pairs:
        return None
    length = max(len(p.time) for p in pairs)
    apart = np.full((len(pairs), length), np.nan)
    square, count = np.zeros(len(joints)), 0
    for k, p in enumerate(pairs):
        apart[k, : len(p.time)] = _apart(p, scale)
        square += np.nansum((p.one - p.other) ** 2, axis=0)
        count += len(p.time)
    time = np.arange(length) / RATE
    # of pairs of different lengths only what most of them have: the rest is the motion of a few
    most = np.isfinite(apart).sum(axis=0) >= max(1, len(pairs) // 2)
    found = growth(time[most], apart[:, most])
    size = np.sqrt(square / max(count, 1))
    return Divergence(tuple(p.label for p in pairs), tuple(joints), size, found, _curve(time, apart))


def _curve(time: Array, apart: Array) -> Curve:
    rows = np.unique(np.linspace(0, len(time) - 1, MOST_POINTS).astype(int))
    near = smoothed(time, apart)[:, rows]
    seen = np.isfinite(near).any(axis=0)
    figures = np.full((3, len(rows)), np.nan)
    figures[:, seen] = np.nanquantile(near[:, seen], [0.0, 0.5, 1.0], axis=0)
    return Curve(time[rows], *figures)


def _unaligned(logs: Sequence[Log]) -> Distances:
    """Distances between the states of the first log and those of all others."""
    columns = {s: logs[0][s].columns for s in ("q", "dq", "quat", "gyro") if all(s in log for log in logs)}
    motions, split = [], split_logs(logs, columns["q"])
    for i, log in enumerate(logs):
        clock = log["q"].time
        signals = {s: log.at(s, clock)[:, [log[s].columns.index(c) for c in of]] for s, of in columns.items()}
        motions.append((signals, split.numbers(i, clock - clock[0])))
    return between(motions[:1], motions[1:], columns, np.random.default_rng(0))
