"""How far a twin is from its logs: by signal, joint and horizon, beside what needs no model and what no model can reach.

gap = measure(twin, logs)
gap["q"].of("twin", "0.5")                    # root mean square error half a second ahead, by joint [rad]
gap["q"].of("command", "free")                # the same of the command as prediction, over whole logs
gap["q"].noise, gap["q"].moves                # below which no model can go, and how much there is to predict
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from rich.console import RenderableType

from gapless.arrays import Array
from gapless.gap import baselines, page
from gapless.gap.admission import admit
from gapless.gap.distribution import Distances, distances
from gapless.gap.noise import Floor, floors
from gapless.gap.signals import difference, named, signals_of, units
from gapless.logs import Log
from gapless.plain import NOT_SAVED, plain
from gapless.report import Result, Section, Verdict
from gapless.twin import Origin, Twin, origin_of
from gapless.worlds import Replay, Replayer

WINDOW = 1.0  # s: windows start anew from the measured state this often
MOST_WINDOWS = 800  # of all logs: more do not make the errors better known
HORIZONS = {"step": 0.0, "0.1": 0.1, "0.5": 0.5, "1": 1.0, "free": np.inf}
"""How far ahead [s]: one sample, within windows, and free-running from the first sample of a log to its end."""
PREDICTIONS = ("twin", "given", "delay", "command", "hold")
"""The twin at the given values and as given, the command as late as fits best and as it is, and the last state held."""
STRETCH = 3.0  # s: free-running motion is shown in pieces this long


@dataclass(frozen=True)
class Errors:
    """Errors of one signal. Quaternions differ by a rotation vector [rad]."""

    columns: tuple[str, ...]
    units: tuple[str, ...]
    size: dict[str, Array]
    """Prediction to its root mean square error, NaN where there is no such prediction and infinite where physics broke.

    Shape of each: (horizons, columns).
    """
    moves: Array
    """Standard deviation of what was measured, around each log's mean. Shape: (columns,)."""
    floor: Floor

    @property
    def noise(self) -> Array:
        """What no model can predict. Shape: (columns,)."""
        return self.floor.size

    def of(self, prediction: str, horizon: str) -> Array:
        """Error by column. Shape: (columns,)."""
        return np.asarray(self.size[prediction][list(HORIZONS).index(horizon)])

    def relative(self, prediction: str, horizon: str) -> Array:
        """Error over how much the signal moves, NaN where it does not. Shape: (columns,)."""
        return np.divide(self.of(prediction, horizon), self.moves, out=np.full(len(self.columns), np.nan), where=self.moves > 0)


@dataclass(frozen=True)
class Trace:
    """Positions of one log beside predictions, in the windows that `Gap.horizon` is about. Joints that turn in rad."""

    name: str
    joints: tuple[str, ...]
    time: Array
    """Since the log's start [s]. Shape: (samples,); of what follows, unless stated: (samples, joints)."""
    measured: Array
    command: Array
    given: Array
    twin: Array
    dq: Array
    """Measured velocity, or the slope of positions."""
    load: Array
    """What the drive had to do: its torque where that was measured, else how far it was from its command."""
    shock: Array
    """How quickly the turning of a free base changed [rad/s2]; NaN where there is no such base. Shape: (samples,)."""
    window: NDArray[np.int64]
    """Which window, or stretch of free-running motion, a sample belongs to. Shape: (samples,)."""


@dataclass(frozen=True, repr=False)
class Gap(Result):
    """What is left between a twin and its logs."""

    NAME: ClassVar[str] = "gap"

    robot: str
    joints: tuple[str, ...]
    errors: dict[str, Errors]
    """By signal."""
    horizon: str
    """The one to look at first: free-running where drives hold positions, half a second where they do not."""
    delays: dict[str, float]
    """The best pure delay of each joint [s]; empty where no positions are commanded."""
    windows: int
    broken: int
    """Windows and free runs in which the twin's physics broke."""
    distances: Distances
    """Between the states that the robot and the free-running twin were in, whenever that was."""
    seconds: float
    """Robot time in the logs [s]."""
    origin: Origin
    traces: tuple[Trace, ...] = field(default=(), metadata=NOT_SAVED)
    """For plots; a loaded gap has none."""

    @property
    def title(self) -> str:
        return f"Gap of {self.robot or 'a robot'}"

    def verdict(self) -> Verdict:
        return page.verdict(self)

    def sections(self) -> Iterable[Section | None]:
        return page.sections(self)

    def glance(self) -> Iterable[RenderableType]:
        return [page.strip(self)]

    def json(self) -> dict[str, Any]:
        """With figures that are means over joints: errors by prediction and horizon, and the noise floor."""
        means = {p: {h: self.mean(p, h) for h in HORIZONS} for p in PREDICTIONS}
        figures = {"error": self.mean("given"), "noise": self.over_joints(self["q"].noise), "unit": self.unit, "means": means}
        return super().json() | {"figures": plain(figures)}

    @property
    def with_causes(self) -> bool:
        """Whether the twin was measured at other values than those given."""
        q = self.errors["q"]
        return not np.array_equal(q.size["twin"], q.size["given"], equal_nan=True)

    def __getitem__(self, signal: str) -> Errors:
        return self.errors[signal]

    def mean(self, prediction: str, horizon: str | None = None) -> float:
        """Position error, mean over the joints that turn (or slide, if none turns)."""
        return self.over_joints(self.errors["q"].of(prediction, horizon or self.horizon))

    def over_joints(self, values: Array) -> float:
        """Mean of a figure of positions over the joints that turn (or slide, if none turns)."""
        unit = np.array(self.errors["q"].units)
        return float(np.mean(values[unit == self.unit]))

    @property
    def unit(self) -> str:
        """Of `mean`."""
        return "rad" if "rad" in self.errors["q"].units else "m"


def measure(
    twin: Twin,
    logs: Sequence[Log],
    values: ArrayLike | None = None,
    end: float | None = None,
    rng: np.random.Generator | None = None,
    tick: Callable[[], object] = lambda: None,
) -> Gap:
    """Replay every log free-running and in windows, and compare.

    Args:
        twin: the model and its mechanisms.
        logs: of one robot.
        values: parameters over the twin's space; as given unless stated.
        end: how much of each log to use [s].
        rng: for distances between distributions; seeded with 0 unless given.
        tick: called once a log, for a progress bar.
    """
    admit(twin, logs)
    vectors = np.stack([twin.space.nominal, *([] if values is None else [np.asarray(values, float)])])
    used = [log if end is None else log.slice(log["q"].time[0], log["q"].time[0] + end + 1e-9) for log in logs]
    delays = baselines.best_delays(used, twin.joints)
    servo = twin.all_servos
    most = max(1, round(MOST_WINDOWS / len(used)))
    sums: dict[str, _Sums] = {}
    traces, states, windows, broken = [], [], 0, 0
    for number, log in enumerate(used):
        free, cut = Replayer(twin, log)(vectors), _cut(twin, log, most)(vectors)
        for result, at in ((free, {len(HORIZONS) - 1: np.isfinite(free.time)}), (cut, _at_horizons(cut.time))):
            _add(sums, log, result, delays, at)
            windows += result.failed.shape[1]
            broken += int(result.failed[-1].sum())
        name = log.provenance.source or f"log {number + 1}"
        traces.append(_trace(name, free, STRETCH) if servo else _trace(name, cut, WINDOW))
        states.append(free)
        tick()
    signals = [s for s in signals_of(twin) if all(s in r.measured for r in states)]
    noise = floors(used, signals)
    errors = {}
    for s in signals:
        columns = named(s, states[0].columns[s])
        floor = noise[s]
        order = [floor.columns.index(c) for c in columns]
        errors[s] = Errors(
            columns,
            units(twin, s, columns),
            {p: sums[s].size(p) for p in PREDICTIONS},
            _moves(s, [r.measured[s][0] for r in states]),
            Floor(columns, floor.size[order], floor.repeated[order]),
        )
    return Gap(
        twin.name,
        twin.joints,
        errors,
        "free" if servo else "0.5",
        dict(zip(twin.joints, delays["q"].tolist(), strict=True)) if "q" in delays else {},
        windows,
        broken,
        distances(states, rng or np.random.default_rng(0)),
        float(sum(np.nanmax(r.time) for r in states)),
        origin_of(twin, logs),
        tuple(traces),
    )


def _cut(twin: Twin, log: Log, most: int) -> Replayer:
    """A log in windows end to end; of a long one, so many of them, evenly over its length."""
    every = Replayer(twin, log, WINDOW)
    if len(every.starts) <= most:
        return every
    return Replayer(twin, log, WINDOW, starts=every.starts[np.linspace(0, len(every.starts) - 1, most).astype(int)])


class _Sums:
    """Squares and counts of one signal's errors, over logs as they come."""

    def __init__(self, columns: int):
        self._square = {p: np.zeros((len(HORIZONS), columns)) for p in PREDICTIONS}
        self._count = {p: np.zeros((len(HORIZONS), columns)) for p in PREDICTIONS}

    def add(self, prediction: str, horizon: int, error: Array) -> None:
        """error: (samples, columns), NaN where nothing was measured or predicted."""
        self._square[prediction][horizon] += np.nansum(error**2, axis=0)
        self._count[prediction][horizon] += np.isfinite(error).sum(axis=0) + np.isinf(error).sum(axis=0)

    def size(self, prediction: str) -> Array:
        """Root mean square. Shape: (horizons, columns)."""
        count = self._count[prediction]
        return np.sqrt(np.where(count > 0, self._square[prediction] / np.maximum(count, 1), np.nan))


def _add(sums: dict[str, _Sums], log: Log, result: Replay, delays: baselines.Delays, at: dict[int, NDArray[np.bool_]]) -> None:
    """Count one replay's errors. at: the samples (windows, samples) of each horizon that it is about."""
    made = {
        "twin": {s: v[-1] for s, v in result.replayed.items()},
        "given": {s: v[0] for s, v in result.replayed.items()},
        "delay": baselines.command(log, result, delays) if delays else {},
        "command": baselines.command(log, result),
        "hold": baselines.hold(result),
    }
    for signal, measured in result.measured.items():
        for prediction, by_signal in made.items():
            if signal not in by_signal:
                continue
            error = difference(signal, by_signal[signal], measured)
            if prediction in ("twin", "given"):
                error[result.failed[-1 if prediction == "twin" else 0]] = np.inf
            total = sums.setdefault(signal, _Sums(error.shape[-1]))
            for horizon, where in at.items():
                total.add(prediction, horizon, error[where & np.isfinite(measured).all(axis=2)])


def _at_horizons(time: Array) -> dict[int, NDArray[np.bool_]]:
    """Samples of windows that are a horizon after the start, give or take a tenth. Shape of each: (windows, samples)."""
    period = float(np.nanmedian(np.diff(time, axis=1)))
    out = {}
    for k, ahead in enumerate(list(HORIZONS.values())[:-1]):
        if ahead == 0:
            out[k] = np.zeros(time.shape, dtype=bool)
            out[k][:, 1] = np.isfinite(time[:, 1])
        else:
            out[k] = np.abs(time - ahead) <= max(0.1 * ahead, 0.51 * period) + 1e-9
    return out


def _moves(signal: str, measured: Sequence[Array]) -> Array:
    """Standard deviation around each log's mean. measured: (samples, columns) of each log."""
    square, count = 0.0, 0
    for m in measured:
        m = m[np.isfinite(m).all(axis=1)]
        centre = m.mean(axis=0)
        centre = centre / np.linalg.norm(centre) if signal == "quat" else centre
        square = square + (difference(signal, m, centre) ** 2).sum(axis=0)
        count += len(m)
    return np.sqrt(square / max(count, 1))


def _trace(name: str, result: Replay, stretch: float) -> Trace:
    """Windows after one another, or a free run in stretches."""
    since = result.starts[:, None] - result.starts[0] + result.time
    seen = np.isfinite(since)
    if len(result.starts) > 1:
        window = np.repeat(np.arange(len(since))[:, None], since.shape[1], axis=1)
    else:
        window = np.minimum(np.nan_to_num(since) // stretch, max(0, round(float(np.nanmax(since)) / stretch) - 1)).astype(int)
    q, measured = result.replayed["q"], result.measured
    period = float(np.nanmedian(np.diff(result.time, axis=1)))
    dq = measured["dq"] if "dq" in measured else np.gradient(measured["q"], period, axis=1)
    turning = np.gradient(measured["gyro"], period, axis=1) if "gyro" in measured else np.full((*since.shape, 3), np.nan)
    return Trace(
        name,
        result.joints,
        since[seen],
        measured["q"][seen],
        result.command[seen],
        q[0][seen],
        q[-1][seen],
        dq[seen],
        measured["tau"][seen] if "tau" in measured else (result.command - measured["q"])[seen],
        np.linalg.norm(turning, axis=-1)[seen],
        window[seen],
    )
