"""Mapping: a small TOML file that says what the columns of a foreign log mean, in which unit, for which joint."""

import tomllib
from collections.abc import Mapping as Table, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from math import pi
from pathlib import Path
from typing import Any

import numpy as np

from gapless import files as disk
from gapless.checks import Checked, checked, listed, mapping, number, numbers, part_of, text, texts
from gapless.errors import BadInput, must_exist
from gapless.logs.log import UNITS

JOINT = "{joint}"
"""Stands for the name of a joint in the pattern of a column."""
FACTORS = {
    "s": {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9},
    "rad": {"rad": 1.0, "deg": pi / 180, "mrad": 1e-3, "rev": 2 * pi, "m": 1.0, "mm": 1e-3},
    "rad/s": {"rad/s": 1.0, "deg/s": pi / 180, "rev/s": 2 * pi, "rpm": 2 * pi / 60, "m/s": 1.0},
    "N m": {"N m": 1.0, "mN m": 1e-3, "kgf cm": 0.0980665, "N": 1.0},
    "N m/rad": {"N m/rad": 1.0, "N m/deg": 180 / pi},
    "N m s/rad": {"N m s/rad": 1.0, "N m s/deg": 180 / pi},
    "A": {"A": 1.0, "mA": 1e-3},
    "V": {"V": 1.0, "mV": 1e-3},
    "degC": {"degC": 1.0},
    "count": {"count": 1.0},
    "1": {"1": 1.0, "%": 0.01},
    "wxyz": {"wxyz": 1.0, "xyzw": 1.0},
    "m/s^2": {"m/s^2": 1.0, "g": 9.80665},
    "m": {"m": 1.0, "mm": 1e-3},
    "m/s": {"m/s": 1.0, "mm/s": 1e-3},
}
"""Units that a file may use, by the unit a log holds."""


def _time_unit(value: Any, what: str) -> str:
    with disk.within(what):
        must_exist("unit", [str(value)] if value != "" else [], FACTORS["s"])
    return str(value)


def _sign(value: Any, what: str) -> float:
    if number(value, what) not in (1.0, -1.0):
        raise BadInput(f"{what} must be 1 or -1, not {value!r}")
    return float(value)


def _names(value: Any, what: str) -> dict[str, str]:
    return {old: text(new, f"{what} of {old}") for old, new in mapping(value, what).items()}


@dataclass(frozen=True)
class Conversion(Checked):
    """value = raw * factor of the unit * sign * scale + offset."""

    unit: str = checked(text, "")
    sign: float = checked(_sign, 1.0)
    scale: float = checked(number, 1.0)
    offset: float = checked(number, 0.0)

    def apply(self, signal: str, raw: np.ndarray) -> np.ndarray:
        """raw: (n, k) of one signal. Returns the same shape in the log's unit."""
        if self.unit == "xyzw":
            if raw.shape[1] != 4:
                raise BadInput("unit xyzw is for a column of four numbers; name the axis of single columns instead")
            raw = raw[:, [3, 0, 1, 2]]
        factor = FACTORS[UNITS[signal]][self.unit or UNITS[signal]] * self.sign * self.scale
        return raw if factor == 1.0 and self.offset == 0.0 else raw * factor + self.offset

    def note(self, what: str, unit: str) -> str:
        """The conversion in words; empty for none."""
        done = [f"converted from {self.unit} to {unit}"] if self.unit not in ("", unit) else []
        done += ["sign flipped"] if self.sign < 0 else []
        if self.scale != 1 and self.offset:
            done.append(f"0..1 converted to {self.offset:g}..{self.offset + self.scale:g} {unit}")
        else:
            done += [f"multiplied by {self.scale:g}"] if self.scale != 1 else []
            done += [f"shifted by {self.offset:g} {unit}"] if self.offset else []
        return f"{what}: {', '.join(done)}" if done else ""


@dataclass(frozen=True)
class Column:
    """One column (or array) of a file: which signal it is and for which joints (or axes, w x y z)."""

    source: str
    signal: str
    joints: tuple[str, ...] | None = None
    """None: one a joint, in the order of the file."""
    conversion: Conversion = Conversion()


@dataclass(frozen=True)
class File(Checked):
    """One file of a log: its clock and its columns. A log may be several files that differ in their suffix."""

    time: str = checked(text)
    columns: tuple[Column, ...] = ()
    suffix: str = checked(text, "")
    host_time: str = checked(text, "")
    time_unit: str = checked(_time_unit, "s")

    @property
    def clocks(self) -> list[str]:
        """The columns that are times."""
        return [clock for clock in (self.time, self.host_time) if clock]

    def spread(self, names: Sequence[str]) -> "File":
        """The same file with every pattern such as "{joint}_pos" in the place of the columns that it matches, each a joint.

        A column that several patterns match is one of the longest, which says most: qd1 of "qd{joint}", not of "q{joint}".
        """
        stated = {c.source for c in self.columns} | {*self.clocks}
        given = sorted((c.source for c in self.columns if JOINT in c.source), key=len)
        longest = {n: source for source in given for n in names if _matches(source, n)}
        columns: list[Column] = []
        for column in self.columns:
            if JOINT not in column.source:
                columns.append(column)
                continue
            before, _, after = column.source.partition(JOINT)
            matches = [n for n in names if longest.get(n) == column.source and n not in stated]
            if not matches:
                raise BadInput(f"no column is called {column.source!r}; there are {', '.join(names[:12])}")
            ends = len(before), len(after)
            columns += [replace(column, source=n, joints=(n[ends[0] : len(n) - ends[1]],)) for n in matches]
        return replace(self, columns=tuple(columns))

    @property
    def sources(self) -> list[str]:
        """All columns that are read."""
        return [*self.clocks, *(c.source for c in self.columns)]


@dataclass(frozen=True)
class TopicUse:
    """What a topic of a bag is: fields of its messages to signals, and the joints that its numbers belong to."""

    fields: Table[str, str]
    joints: tuple[str, ...] = ()
    """In the order of the message; empty where it names them itself."""


@dataclass(frozen=True)
class Mapping(Checked):
    """What a user states about a log; every field may be left out where the format says it itself."""

    name: str = ""
    about: str = checked(text, "")
    notes: tuple[str, ...] = checked(texts, ())
    time_unit: str = checked(_time_unit, "")
    joint_names: tuple[str, ...] = checked(texts, ())
    rename: Table[str, str] = checked(_names, factory=dict)
    units: Table[str, str] = checked(_names, factory=dict)
    """Of a signal wherever no column states one; that of q, dq and tau is that of their commands too."""
    convert: Table[str, Conversion] = checked(mapping, factory=dict)
    meta: Table[str, Any] = checked(mapping, factory=dict)
    topics: Table[str, TopicUse] = checked(mapping, factory=dict)
    files: tuple[File, ...] = ()


def built_in() -> dict[str, Path]:
    """The mappings that come with the project, by name."""
    folder = Path(str(resources.files("gapless.logs") / "mappings"))
    return {p.stem: p for p in sorted(folder.glob("*.toml"))}


def load(source: str | Path) -> Mapping:
    """A built-in mapping by name, or a TOML file by path."""
    path = Path(source)
    if path.suffix != ".toml":
        names = built_in()
        must_exist("mapping", [str(source)], names)
        path = names[str(source)]
    with disk.within(path):
        return parsed(disk.text(path, 1 << 20), path.stem)


def parsed(content: str, name: str) -> Mapping:
    """A mapping from the text of a TOML file, and what it is called."""
    with disk.refusing("not TOML", tomllib.TOMLDecodeError, RecursionError):
        table = tomllib.loads(content)
    files = table.pop("file", [])
    if not isinstance(files, list):
        raise BadInput("write [[file]], not [file]")
    convert = mapping(table.pop("convert", {}), "convert")
    table["convert"] = {key: _conversion(f"convert {key!r}", key.split("/", 1)[0], entry) for key, entry in convert.items()}
    topics = mapping(table.pop("topics", {}), "topics")
    table["topics"] = {name: _topic(f"topic {name!r}", entry) for name, entry in topics.items()}
    made: Mapping = part_of({**table, "name": name}, "the mapping", Mapping)
    units = _units(made.units)
    read = tuple(_file(f, made.time_unit, units) for f in files)
    stated = {} if read else {signal: Conversion(unit) for signal, unit in units.items()}
    return replace(made, files=read, convert={**stated, **made.convert})


def _units(stated: Table[str, str]) -> dict[str, str]:
    """The unit of every signal that has one stated, for itself or for what it commands."""
    must_exist("signal", stated, UNITS)
    units = {s: stated.get(s) or stated.get(s.partition("_")[0], "") for s in UNITS}
    for signal, unit in units.items():
        with disk.within(f"units: {signal}"):
            must_exist("unit", [unit] if unit else [], FACTORS[UNITS[signal]])
    return {signal: unit for signal, unit in units.items() if unit}


def _file(table: Any, time_unit: str, units: Table[str, str]) -> File:
    table = {"time_unit": time_unit or "s"} | dict(mapping(table, "[[file]]"))
    if "time" not in table:
        raise BadInput('[[file]] does not say which column is the time (time = "...")')
    columns = mapping(table.get("columns", {}), "columns")
    with disk.within("[[file]]"):
        file: File = part_of(table | {"columns": tuple(_column(*c, units) for c in columns.items())}, "[[file]]", File)
    return file


def _topic(where: str, entry: Any) -> TopicUse:
    """What a topic is, as in { position = "q" } or { data = "q_cmd", joints = ["hip", "knee"] }."""
    table = dict(mapping(entry, where))
    joints = texts(table.pop("joints", []), f"{where}: joints")
    with disk.within(where):
        fields = _names(table, "signal")
        must_exist("signal", fields.values(), UNITS)
        if not fields:
            raise BadInput('say which field is which signal, as in { position = "q" }')
    return TopicUse(fields, joints)


def _column(source: str, entry: Any, units: Table[str, str]) -> Column:
    where = f"column {source!r}"
    if not isinstance(entry, dict) or not isinstance(entry.get("signal"), str):
        raise BadInput(f'{where} needs a signal, as in {{ signal = "q", joint = "knee" }}')
    rest = {k: v for k, v in entry.items() if k not in ("signal", "joint", "joints")}
    rest = ({"unit": units[entry["signal"]]} if entry["signal"] in units else {}) | rest
    named = [entry["joint"]] if "joint" in entry else entry.get("joints")
    joints = None if named is None else texts(named, where)
    return Column(source, entry["signal"], joints, _conversion(where, entry["signal"], rest))


def _conversion(where: str, signal: str, entry: Any) -> Conversion:
    """A conversion of a signal; `range` turns 0..1 into low..high."""
    with disk.within(where):
        must_exist("signal", [signal], UNITS)
        table = dict(mapping(entry, where))
        if "range" in table:
            if len(listed(table["range"], "range")) != 2:
                raise BadInput("range must be [low, high]")
            low, high = numbers(table.pop("range"), "range")
            table |= {"scale": high - low, "offset": low}
        must_exist("unit", [str(table.get("unit") or UNITS[signal])], FACTORS[UNITS[signal]])
        return part_of(table, where, Conversion)


def _matches(pattern: str, name: str) -> bool:
    """Whether a column is one of a pattern."""
    before, _, after = pattern.partition(JOINT)
    return name.startswith(before) and name.endswith(after) and len(name) > len(before) + len(after)
