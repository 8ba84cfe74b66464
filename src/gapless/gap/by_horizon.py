"""How far a twin is from its logs: by signal, joint and horizon, beside what needs no model and what no model can reach.

gap = measure(twin, logs)
gap["q"].of("twin", "0.5")                    # root mean square error half a second ahead, by joint [rad]
gap["q"].of("command", "free")                # the same of the command as prediction, over whole logs
gap["q"].noise, gap["q"].moves                # below which no model can go, and how much there is to predict
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gapless.arrays import Array, Bools
from gapless.gap import page
from gapless.gap.distribution import Distances, between
from gapless.logs import Log
from gapless.measure import (
    Floor,
    Trace,
    Windows,
    best_delays,
    delayed_command,
    difference,
    difference_columns,
    evenly,
    floors,
    is_commanded,
    must_compare,
    runs,
    signals_of,
    split_logs,
    traces,
    units,
    windows,
)
from gapless.plain import NOT_SAVED, plain
from gapless.report import Film, Result
from gapless.twin import Origin, Twin, origin_of
from gapless.worlds import Replayer, film

WINDOW = 1.0  # s: windows start anew from the measured state this often
MOST_WINDOWS = 800  # of all logs: more do not make the errors better known
HORIZONS = {"step": 0.0, "0.1": 0.1, "0.5": 0.5, "1": 1.0, "free": np.inf}
"""How far ahead [s]: one sample, within windows, and free-running from the first sample of a log to its end."""
PREDICTIONS = ("twin", "given", "delay", "command", "hold")
"""The twin at the given values and as given, the command as late as fits best and as it is, and the last state held."""


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


@dataclass(frozen=True, repr=False)
class Gap(Result):
    """What is left between a twin and its logs."""

    NAME = "errors"
    PAGE = page

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
    seconds_used: float
    """Of the logs that were compared [s]."""
    seconds_given: float
    """That the logs last [s]."""
    origin: Origin
    traces: tuple[Trace, ...] = field(default=(), metadata=NOT_SAVED)
    """For plots; a loaded gap has none."""
    moving: Film | None = field(default=None, metadata=NOT_SAVED)
    """The robot of the first log, and the twin as given and with the values as ghosts."""

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


def measure(twin: Twin, logs: Sequence[Log], values: ArrayLike | None = None, end: float | None = None) -> Gap:
    """Replay every log free-running and in windows, and compare.

    Args:
        twin: the model and its mechanisms.
        logs: of one robot.
        values: parameters over the twin's space; as given unless stated.
        end: how much of each log to use [s].
    """
    must_compare(twin, logs)
    vectors = np.stack([twin.space.nominal, *([] if values is None else [np.asarray(values, float)])])
    used = [log if end is None else log.slice(log["q"].time[0], log["q"].time[0] + end + 1e-9) for log in logs]
    signals = signals_of(twin, used)
    delays = best_delays(used, twin.joints)
    sums: dict[str, Array] = {}
    traced: list[Trace] = []
    measured, replays = [], []
    count = broken = 0
    for log in used:
        split = split_logs([log], twin.joints)
        free = runs(twin, [log], split, split.logs, signals, np.inf)
        starts = Replayer(twin, log, WINDOW).starts
        starts = starts[evenly(len(starts), max(1, round(MOST_WINDOWS / len(used))))]
        cut = windows(twin, [log], split, length=WINDOW, starts=[starts], signals=signals, rate=np.inf)
        for data, horizons in ((free, {len(HORIZONS) - 1: np.ones(len(free.since), dtype=bool)}), (cut, _horizons(cut))):
            replayed = data.predicted(vectors)
            _add(sums, data, replayed, delays, horizons)
            count += data.count
            broken += len(np.unique(data.window[np.isnan(replayed["q"][-1]).any(axis=1)]))
            if data is free:
                measured.append(({s: data.measured(s) for s in signals}, data.block))
                replays.append(({s: v[-1] for s, v in replayed.items()}, data.block))
            if (data is free) == twin.all_servos:
                traced += traces(data, replayed["q"][0], replayed["q"][-1], delays=delays.get("q"))
    columns = free.replayers[0].columns
    noise = floors(used, signals)
    errors = {s: _errors(twin, s, columns[s], sums[s], [m[s] for m, _ in measured], noise[s]) for s in signals}
    return Gap(
        robot=twin.name,
        joints=twin.joints,
        errors=errors,
        horizon="free" if twin.all_servos else "0.5",
        delays=dict(zip(twin.joints, delays["q"].tolist(), strict=True)) if "q" in delays else {},
        windows=count,
        broken=broken,
        distances=between(measured, replays, columns, np.random.default_rng(0)),
        origin=origin_of(twin, logs),
        traces=tuple(traced),
        moving=_film(twin, traced, values is not None),
        seconds_used=float(sum(np.ptp(log["q"].time) for log in used)),
        seconds_given=float(sum(np.ptp(log["q"].time) for log in logs)),
    )


def _film(twin: Twin, traced: Sequence[Trace], fitted: bool) -> Film | None:
    """The first log: a free base stays at home, since traces are of joints."""
    if not traced:
        return None
    first = traced[0]
    motions = {"measured": first.measured, "model": first.given} | ({"with the causes": first.twin} if fitted else {})
    return film(twin, first.time, motions)


def _errors(twin: Twin, signal: str, columns: tuple[str, ...], sums: Array, measured: Sequence[Array], floor: Floor) -> Errors:
    names = difference_columns(signal, columns)
    square, count = sums
    size = np.sqrt(np.where(count > 0, square / np.maximum(count, 1), np.nan))
    order = [floor.columns.index(c) for c in names]
    return Errors(
        names,
        units(twin, signal, names),
        dict(zip(PREDICTIONS, size, strict=True)),
        _moves(signal, measured),
        Floor(names, floor.size[order], floor.repeated[order]),
    )


def _add(
    sums: dict[str, Array], data: Windows, replayed: dict[str, Array], delays: Mapping[str, Array], horizons: dict[int, Bools]
) -> None:
    """Count the errors of one log.

    sums: squares and counts of each signal's errors, to add to. Shape of each: (2, predictions, horizons, columns).
    horizons: the samples that are about each.
    """
    log = data.replayers[0].log
    times = log["q"].time[0] + data.clock
    _, first, window = np.unique(data.window, return_index=True, return_inverse=True)
    for signal, values in replayed.items():
        columns, measured = data.replayers[0].columns[signal], data.measured(signal)
        # where physics broke, nothing that was predicted is right
        made = {p: np.where(np.isnan(v), np.inf, v) for p, v in (("given", values[0]), ("twin", values[-1]))}
        made["hold"] = measured[first][window]
        if is_commanded(log, signal, columns):
            made["command"] = delayed_command(log, signal, columns, times, np.zeros(len(columns)))
            if signal in delays:
                made["delay"] = delayed_command(log, signal, columns, times, delays[signal])
        whole = np.isfinite(measured).all(axis=1)
        for prediction, predicted in made.items():
            broken = np.asarray(np.isinf(predicted).any(axis=1))
            error = difference(signal, np.where(broken[:, None], 1.0, predicted), measured)
            error[broken] = np.inf
            total = sums.setdefault(signal, np.zeros((2, len(PREDICTIONS), len(HORIZONS), error.shape[-1])))
            for horizon, rows in horizons.items():
                known = error[rows & whole]
                total[:, PREDICTIONS.index(prediction), horizon] += np.nansum(known**2, axis=0), (~np.isnan(known)).sum(axis=0)


def _horizons(data: Windows) -> dict[int, Bools]:
    """Samples of windows that are a horizon after the start, give or take a tenth. Shape of each: (samples,)."""
    period = 1 / data.replayers[0].log.rate("q")
    out = {}
    for k, ahead in enumerate(list(HORIZONS.values())[:-1]):
        if ahead == 0:
            second = np.append(False, data.since[:-1] == 0.0)
            out[k] = second & np.append(False, np.diff(data.window) == 0)
        else:
            out[k] = np.abs(data.since - ahead) <= max(0.1 * ahead, 0.51 * period) + 1e-9
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
