"""Log: commands and measurements of a robot by named signal, each on its own clock."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gapless.checks import put
from gapless.delay import rows_in_force
from gapless.errors import BadInput, must_exist
from gapless.report import Printed, Section, Table, few

UNITS = {
    "q": "rad",
    "dq": "rad/s",
    "tau": "N m",
    "q_cmd": "rad",
    "dq_cmd": "rad/s",
    "tau_cmd": "N m",
    "tau_ff": "N m",
    "kp": "N m/rad",
    "kd": "N m s/rad",
    "current": "A",
    "temperature": "degC",
    "voltage": "V",
    "load": "count",
    "duty": "1",
    "enabled": "1",
    "quat": "wxyz",
    "gyro": "rad/s",
    "acc": "m/s^2",
    "base_pos": "m",
    "base_vel": "m/s",
}
"""Every signal a log may hold, and its unit. Slide joints have m, m/s, N instead of rad, rad/s, N m."""

AXES = {"quat": ("w", "x", "y", "z")} | dict.fromkeys(("gyro", "acc", "base_pos", "base_vel"), ("x", "y", "z"))
"""The signals of the base and their columns; all other signals have one column a joint."""

HELD = ("q_cmd", "dq_cmd", "tau_cmd", "tau_ff", "kp", "kd", "enabled")
"""Signals that hold their value until the next message; all others vary in between."""


@dataclass(frozen=True, eq=False, repr=False)
class Signal(Printed):
    """One quantity over time, on its own clock. A missing value is NaN; infinity is refused."""

    name: str
    time: np.ndarray
    """Device clock in s. Shape: (n,). It may be out of order, which `gapless inspect` reports."""
    values: np.ndarray
    """Shape: (n, number of columns), in the unit of UNITS."""
    columns: tuple[str, ...]
    """Joint names, or the axes of AXES."""
    host_time: np.ndarray | None = None
    """When the computer sent or received each sample, in s. Shape: (n,)."""

    def __post_init__(self) -> None:
        must_exist("signal", [self.name], UNITS)
        columns = tuple(self.columns)
        time, values = _frozen(self.time), _frozen(self.values)
        values = values.reshape(len(time), 1) if values.ndim == 1 and values.shape == time.shape else values
        if time.ndim != 1 or values.shape != (len(time), len(columns)):
            raise BadInput(f"signal {self.name}: values {values.shape} do not fit time {time.shape} x {len(columns)} columns")
        if len(set(columns)) != len(columns):
            raise BadInput(f"signal {self.name}: a column is named twice in {', '.join(columns)}")
        if self.name in AXES and columns != AXES[self.name]:
            raise BadInput(f"signal {self.name}: the columns must be {', '.join(AXES[self.name])}, not {', '.join(columns)}")
        host = None if self.host_time is None else _frozen(self.host_time)
        if host is not None and host.shape != time.shape:
            raise BadInput(f"signal {self.name}: {len(host)} host times for {len(time)} samples")
        for what, clock in (("time", time), ("host time", host)):
            if clock is not None and not np.isfinite(clock).all():
                bad = int(np.flatnonzero(~np.isfinite(clock))[0])
                raise BadInput(f"signal {self.name}, sample {bad}: {what} is {clock[bad]}")
        if endless(values):
            row, column = np.argwhere(np.isinf(values))[0]
            raise BadInput(f"signal {self.name}, sample {row}: infinite for {columns[column]}")
        for attribute, value in (("time", time), ("values", values), ("columns", columns), ("host_time", host)):
            put(self, attribute, value)

    def described(self) -> Section:
        spans = [(np.nanmin(c), np.nanmax(c)) if np.isfinite(c).any() else (np.nan, np.nan) for c in self.values.T]
        rows = [[column, f"{low:.4g}", f"{high:.4g}"] for column, (low, high) in zip(self.columns, spans, strict=True)]
        title = f"{self.name} [{self.unit}], {len(self.time)} samples of {len(self.columns)} columns"
        return Section(title, table=Table(("column", "least", "largest"), [*rows]))

    @property
    def unit(self) -> str:
        return UNITS[self.name]

    @property
    def ordered(self) -> bool:
        """Whether time never runs backwards."""
        return not np.any(np.diff(self.time) < 0)

    def column(self, name: str) -> np.ndarray:
        """The samples of one joint or axis. Shape: (n,)."""
        must_exist(f"column of signal {self.name}", [name], self.columns)
        return self.values[:, self.columns.index(name)]

    def of(self, names: Iterable[str]) -> np.ndarray:
        """The samples of several joints or axes, side by side. Shape: (n, names)."""
        return np.column_stack([self.column(name) for name in names])


@dataclass(frozen=True)
class Provenance:
    """Where a log came from, and every conversion that was made while reading it."""

    source: str = ""
    sha256: str = ""
    format: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, repr=False, eq=False)
class Log(Printed):
    """Named signals, their joints, where they came from, and constants (`meta`: gains, supply, known mass)."""

    signals: Mapping[str, Signal]
    joints: tuple[str, ...]
    provenance: Provenance = Provenance()
    meta: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        put(self, "joints", tuple(self.joints))
        for name, signal in self.signals.items():
            if name != signal.name:
                raise BadInput(f"signal {signal.name} is stored under the name {name}")
            must_exist(f"joint of signal {name}", signal.columns, AXES.get(name, self.joints))

    @classmethod
    def from_arrays(
        cls,
        joints: tuple[str, ...] | list[str],
        time: np.ndarray,
        signals: Mapping[str, np.ndarray],
        host_time: np.ndarray | None = None,
        meta: Mapping[str, Any] | None = None,
        provenance: Provenance | None = None,
    ) -> "Log":
        """A log whose signals share one clock. time: (n,); each signal: (n, number of joints or axes)."""
        made = {k: Signal(k, time, v, AXES.get(k, tuple(joints)), host_time) for k, v in signals.items()}
        return cls(made, tuple(joints), provenance or Provenance(), dict(meta or {}))

    def described(self) -> Section:
        rows = []
        for name, signal in self.signals.items():
            rows.append([name, signal.unit, few(signal.columns), f"{len(signal.time)}", f"{self.rate(name):.1f}"])
        title = f"{self.name}: {self.duration:.1f} s, {len(self.joints)} joints"
        return Section(title, table=Table(("signal", "unit", "columns", "samples", "Hz"), [*rows], words=3))

    def __getitem__(self, name: str) -> Signal:
        if name not in self.signals:
            raise BadInput(f"{self.name} has no signal {name!r}, only {', '.join(self.signals)}")
        return self.signals[name]

    @property
    def name(self) -> str:
        """The path that the log was read from, as messages name it; "the log" for one that was made in memory."""
        return self.provenance.source or "the log"

    def __contains__(self, name: str) -> bool:
        return name in self.signals

    @property
    def start(self) -> float:
        """Time of the earliest sample of any signal [s]."""
        return min((float(s.time.min()) for s in self.signals.values() if len(s.time)), default=0.0)

    @property
    def end(self) -> float:
        """Time of the latest sample of any signal [s]."""
        return max((float(s.time.max()) for s in self.signals.values() if len(s.time)), default=0.0)

    @property
    def duration(self) -> float:
        return self.end - self.start

    def shared(self, name: str, other: str) -> list[str]:
        """The joints that are columns of both signals, in the order of the first."""
        return [column for column in self[name].columns if column in self[other].columns]

    def rate(self, name: str) -> float:
        """Samples per second of a signal, from the median period, or the mean where most times repeat; 0 for fewer than two."""
        periods = np.diff(self[name].time)
        middle = float(np.median(periods) or np.mean(periods)) if len(periods) else 0.0
        return 1.0 / middle if middle > 0 else 0.0

    def at(self, name: str, times: np.ndarray, hold: bool | None = None) -> np.ndarray:
        """A signal at other times. Shape: (len(times), columns).

        hold: keep the last sample (None: commands and gains are held, measurements interpolated linearly).
        Before the first sample and after the last one, the nearest sample is used.
        """
        signal, times = self[name], np.asarray(times, float)
        if len(signal.time) == 0:
            raise BadInput(f"signal {name} has no samples")
        if not signal.ordered:
            raise BadInput(f"the time of signal {name} runs backwards; `gapless inspect` shows where")
        if hold if hold is not None else name in HELD:
            return signal.values[rows_in_force(signal.time, times)]
        values = np.column_stack([np.interp(times, signal.time, c) for c in signal.values.T])
        return values / np.linalg.norm(values, axis=1, keepdims=True) if name == "quat" else values

    def slice(self, start: float, end: float) -> "Log":
        """The samples of every signal with start <= time < end [s]."""

        def cut(signal: Signal) -> Signal:
            keep = (signal.time >= start) & (signal.time < end)
            host = None if signal.host_time is None else signal.host_time[keep]
            return replace(signal, time=signal.time[keep], values=signal.values[keep], host_time=host)

        return replace(self, signals={k: cut(s) for k, s in self.signals.items()})

    def rename(self, names: Mapping[str, str]) -> "Log":
        """The same log with joints renamed, {old: new}; other joints keep their names."""
        must_exist("joint", names, self.joints)

        def new(columns: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(names.get(c, c) for c in columns)

        if len(set(new(self.joints))) != len(self.joints):
            raise BadInput(f"two joints would have the same name: {', '.join(new(self.joints))}")
        signals = {k: s if k in AXES else replace(s, columns=new(s.columns)) for k, s in self.signals.items()}
        return replace(self, signals=signals, joints=new(self.joints))


def endless(values: np.ndarray) -> bool:
    """Whether a value is infinite, without a temporary array, which long logs have no memory for."""
    return values.size > 0 and bool(np.isinf([np.fmax.reduce(values, axis=None), np.fmin.reduce(values, axis=None)]).any())


def by_clock(log: Log) -> list[list[Signal]]:
    """Signals grouped by the clock they share."""
    groups: list[list[Signal]] = []
    for signal in log.signals.values():
        for group in groups:
            if _same(group[0].time, signal.time) and _same(group[0].host_time, signal.host_time):
                group.append(signal)
                break
        else:
            groups.append([signal])
    return groups


def _same(a: np.ndarray | None, b: np.ndarray | None) -> bool:
    if a is None or b is None:
        return a is b
    return a is b or (a.shape == b.shape and bool(np.array_equal(a, b)))


def _frozen(array: np.ndarray) -> np.ndarray:
    """A read-only float64 view (no copy where none is needed)."""
    view = np.asarray(array, np.float64).view()
    view.flags.writeable = False
    return view
