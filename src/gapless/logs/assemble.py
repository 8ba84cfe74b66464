"""A log from the arrays of a file: units converted, joints named, bad values located."""

from collections.abc import Mapping as Table, Sequence
from pathlib import Path

import numpy as np

from gapless import files as disk
from gapless.errors import BadInput, must_exist, unknown
from gapless.logs.log import AXES, UNITS, Log, Provenance, Signal, endless
from gapless.logs.mapping import FACTORS, File, Mapping

SAMPLES = {"csv": ("line", 2), "sage": ("line", 2), "bam": ("entry", 0), "lerobot": ("frame", 0)}
"""What formats call a sample, and the number of the first one; others count samples from 0."""
Part = tuple[Path, File, Table[str, np.ndarray]]
"""A file, what its arrays are, and the arrays by source column, (n,) or (n, k), times among them."""


def log_of(
    path: Path, format: str, parts: Sequence[Part], mapping: Mapping, notes: Sequence[str] = (), more: Sequence[Path] = ()
) -> Log:
    """The log that the arrays of its files make. notes: on what was done to them before; more: other files that were read."""
    signals, said = list[Signal](), list(notes)
    for part in parts:
        made, converted = _signals(*part, mapping, *SAMPLES.get(format, ("sample", 0)))
        signals += made
        said += [note for note in converted if note not in said]
    return finish(path, format, signals, said, mapping, [*more, *(file for file, _, _ in parts)])


def _signals(
    path: Path, file: File, raw: Table[str, np.ndarray], mapping: Mapping, place: str, first: int
) -> tuple[list[Signal], list[str]]:
    """Signals, and notes on what was converted, from the arrays of one file."""
    must_exist("array", file.sources, raw)
    factor = FACTORS["s"][file.time_unit]
    clocks: dict[str, np.ndarray] = {}
    for source in file.clocks:
        clock = raw[source].reshape(-1)
        if len(clock) == 0:
            raise BadInput(f"{path}: there are no samples in it")
        bad = np.flatnonzero(~np.isfinite(clock))
        if len(bad):
            raise BadInput(f"{path}: {place} {first + bad[0]}: time {source!r} is {clock[bad[0]]}, not a number of seconds")
        clocks[source] = clock if factor == 1.0 else clock * factor
    time, host = clocks[file.time], clocks.get(file.host_time)
    notes = [f"time: converted from {file.time_unit} to s"] if factor != 1.0 else []
    signals = []
    for name in dict.fromkeys(c.signal for c in file.columns):
        parts: list[np.ndarray] = []
        joints: list[str] = []
        columns = [c for c in file.columns if c.signal == name]
        alike = len({c.conversion for c in columns}) == 1
        for column in columns:
            values = raw[column.source]
            values = values.reshape(len(values), -1)
            names = column.joints or AXES.get(name) or mapping.joint_names or tuple(f"joint{i}" for i in range(values.shape[1]))
            if len(values) != len(time) or values.shape[1] != len(names):
                raise BadInput(
                    f"{path}: {column.source!r} holds {len(values)} x {values.shape[1]} values, "
                    f"but there are {len(time)} times and {len(names)} names ({', '.join(names)})"
                )
            with np.errstate(over="ignore", invalid="ignore"):
                values = column.conversion.apply(name, values)
            if endless(values):
                row, which = np.argwhere(np.isinf(values))[0]
                raise BadInput(f"{path}: {place} {first + row}: {column.source!r} is infinite for {names[which]}")
            parts.append(values)
            joints += names
            if not alike or column is columns[0]:
                notes.append(column.conversion.note(name if alike else f"{name} ({column.source})", UNITS[name]))
        values = parts[0] if len(parts) == 1 else np.hstack(parts)
        if name in AXES and set(joints) == set(AXES[name]):
            values, joints = values[:, [joints.index(a) for a in AXES[name]]], list(AXES[name])
        signals.append(Signal(name, time, values, tuple(joints), host))
    return signals, [n for n in notes if n]


def finish(path: Path, format: str, signals: list[Signal], notes: list[str], mapping: Mapping, files: list[Path]) -> Log:
    """The log, with conversions by signal and joint, names of the model's joints, constants and provenance."""
    joints = tuple(dict.fromkeys(c for s in signals if s.name not in AXES for c in s.columns))
    made = {}
    for signal in signals:
        if signal.name in made:
            raise BadInput(f"{path}: signal {signal.name} is given twice")
        made[signal.name] = signal
    for key, conversion in mapping.convert.items():
        name, _, joint = key.partition("/")
        if name not in made:
            continue
        signal = made[name]
        if joint and joint not in signal.columns:
            raise BadInput(f"{path}: mapping {mapping.name}: convert: {unknown('joint', joint, signal.columns)}")
        which = [signal.columns.index(joint)] if joint else list(range(len(signal.columns)))
        values = signal.values.copy()
        values[:, which] = conversion.apply(name, values[:, which])
        made[name] = Signal(name, signal.time, values, signal.columns, signal.host_time)
        notes = [*notes, conversion.note(key, UNITS[name])]
    source = Provenance(str(path), disk.sha256(*files), format, tuple(n for n in (*notes, *mapping.notes) if n))
    log = Log(made, joints, source, dict(mapping.meta))
    return log.rename({old: new for old, new in mapping.rename.items() if old in joints and old != new})
